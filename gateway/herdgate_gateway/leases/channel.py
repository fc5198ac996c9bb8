"""A channel of the fleet's Redis: news that may be lost, late or told twice. It only makes things quicker.

On the wire: channel `herdgate:leases:<fleet>`, JSON objects. What is none is ignored; so is, by whoever hears, what it
does not know:

    {"to": "worker-3", "shards": [17, 40]}      these are yours
    {"dead": "inc"}                             this life is over
    {"owner": {"worker": ..., "inc": ..., "addr": ...}, "epochs": {"17": 3}}      served there from now on
    {"wants": [17]}                             rows of connections in these shards have changed
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from herdgate.stores.redis.address import Address

__all__ = ["Channel", "News", "Publishing", "open_channel", "open_redis"]

News = Mapping[str, Any]

_AGAIN_S, _PUBLISH_S = 1.0, 0.5
_logger = logging.getLogger("herdgate.leases")


class Publishing(Protocol):
    """Where news is told: as `Channel`."""

    async def publish(self, news: News) -> bool:
        """Tell everybody, or nobody; never raises. True if Redis has taken it."""
        ...

    async def aclose(self) -> None:
        """Let go of what is held open."""
        ...


class Channel:
    """One end of it.

    Args:
        redis: a client of redis-py's asyncio kind, which is closed with it.
        name: of the channel.
    """

    def __init__(self, redis: Any, name: str) -> None:
        self._redis, self._name = redis, name

    async def publish(self, news: News) -> bool:
        """Tell everybody, or nobody. True if Redis has taken it, whoever hears it there."""
        with suppress(Exception):  # it is only slower without
            async with asyncio.timeout(_PUBLISH_S):
                await self._redis.publish(self._name, json.dumps(news))
                return True
        return False

    async def run(self, hear: Callable[[News], None], begun: Callable[[], None] = lambda: None) -> None:
        """Hear, until cancelled; a connection that breaks is made anew.

        Args:
            begun: called whenever it hears again; what was told before is missed.
        """
        is_well = True
        while True:
            try:
                async with self._redis.pubsub() as channel:
                    await channel.subscribe(self._name)
                    async for message in channel.listen():
                        if message["type"] == "subscribe":
                            is_well = True
                            begun()
                        elif message["type"] == "message" and (news := _read(message["data"])) is not None:
                            hear(news)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is only slower without
                if is_well:
                    _logger.warning("no news from Redis, changes of leases are found more slowly: %s", error)
                is_well = False
            await asyncio.sleep(_AGAIN_S)

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._redis.aclose()


def open_channel(url: str, fleet: str, field: str = "redis") -> Channel:
    """That of a fleet; as `open_redis`."""
    return Channel(open_redis(url, field), f"herdgate:leases:{fleet}")


def open_redis(url: str, field: str = "redis") -> Any:
    """A client of redis-py's asyncio kind, not connected yet.

    Args:
        url: as for `herdgate.Fleet`.
        field: named by errors.

    Raises:
        ConfigurationError: the URL cannot be one, or redis-py is missing.
    """
    address = Address.parse(url, field)
    make = address.connection_class  # names what is missing
    from redis.asyncio import ConnectionPool, Redis, Sentinel

    if address.kind == "sentinel":
        make_sentinel: Callable[..., Any] = Sentinel
        sentinel = make_sentinel(address.nodes, sentinel_kwargs={}, ssl=address.has_tls, **address.options)
        return sentinel.master_for(address.service)
    # Every node of a cluster passes on what is published at any of them.
    place: dict[str, Any] = dict(zip(("host", "port"), address.nodes[0], strict=True)) if address.nodes else {}
    return Redis.from_pool(ConnectionPool(connection_class=make, **place, **address.options))


def _read(data: Any) -> News | None:
    with suppress(ValueError, RecursionError):
        told = json.loads(data)
        return told if isinstance(told, dict) else None
    return None
