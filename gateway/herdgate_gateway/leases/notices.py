"""News between workers over Redis: what was given to whom, and who has died. It only makes things quicker.

A notice may be lost, late or told twice; whoever hears one looks into the table. Without Redis everything is found by
polls and sweeps.

On the wire: channel `<prefix>:leases:<fleet>`, JSON `{"to": "worker-3", "shards": [17, 40]}` or `{"dead": "inc"}`.
"""

import asyncio
import json
import logging
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Protocol

from herdgate_gateway.leases.rows import WorkerRow

__all__ = ["Hearer", "Notices"]

_AGAIN_S, _PUBLISH_S = 1.0, 0.5
_logger = logging.getLogger("herdgate.leases")


class Hearer(Protocol):
    """As `owner.ShardOwner`."""

    def notice(self, shards: Iterable[int]) -> None:
        """These shards may be mine."""
        ...

    def news(self) -> None:
        """A worker has died."""
        ...


class Notices:
    """Of one worker.

    Args:
        redis: a client of redis-py's asyncio kind, which is closed with it.
        channel: see above.
        worker: what is addressed to it is heard.
    """

    def __init__(self, redis: Any, channel: str, worker: str) -> None:
        self._redis = redis
        self._channel, self._worker = channel, worker
        self._given: dict[str, list[int]] = defaultdict(list)
        self._sending: set[asyncio.Task[None]] = set()

    def tell(self, row: WorkerRow, shard: int) -> None:
        """A shard is this worker's; sent soon, with the others that it is told of."""
        if not self._given:
            self._send_soon()
        self._given[row.worker].append(shard)

    async def tell_death(self, inc: str) -> None:
        """A life is over."""
        await self._publish({"dead": inc})

    async def run(self, hearer: Hearer) -> None:
        """Hear, until cancelled; a connection that breaks is made anew."""
        is_well = True
        while True:
            try:
                async with self._redis.pubsub() as channel:
                    await channel.subscribe(self._channel)
                    is_well = True
                    async for message in channel.listen():
                        self._hear(hearer, message)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is only slower without
                if is_well:
                    _logger.warning("no news from Redis, leases are found more slowly: %s", error)
                is_well = False
            await asyncio.sleep(_AGAIN_S)

    async def aclose(self) -> None:
        """Send what is to be sent, and close."""
        await asyncio.gather(*self._sending)
        await self._redis.aclose()

    def _hear(self, hearer: Hearer, message: Any) -> None:
        if message["type"] != "message":
            return
        told: Any = None
        with suppress(ValueError):
            told = json.loads(message["data"])
        if not isinstance(told, dict):
            return
        if told.get("to") == self._worker and isinstance(told.get("shards"), list):
            hearer.notice(shard for shard in told["shards"] if isinstance(shard, int))
        elif "dead" in told:
            hearer.news()

    def _send_soon(self) -> None:
        task = asyncio.ensure_future(self._send())
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send(self) -> None:
        await asyncio.sleep(0)
        given, self._given = self._given, defaultdict(list)
        for worker, shards in given.items():
            await self._publish({"to": worker, "shards": shards})

    async def _publish(self, news: dict[str, Any]) -> None:
        with suppress(Exception):  # it is only slower without
            async with asyncio.timeout(_PUBLISH_S):
                await self._redis.publish(self._channel, json.dumps(news))
