"""News between owners, and from owners to gateways: what was given to whom, who has died, who owns what now.

Whoever hears a notice looks into the table. Without Redis everything is found by polls and sweeps. What stands on the
wire: `channel`.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

from herdgate_gateway.leases.channel import Channel, News
from herdgate_gateway.leases.rows import WorkerRow

__all__ = ["Hearer", "Notices"]

_GATHER_S = 0.01  # shards that are gained within so long are told together


def _ignore(shards: Iterable[int]) -> None:
    """Whoever only holds shards does not care."""


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
        channel: of its fleet; closed with it.
        worker: what is addressed to it is heard.
    """

    def __init__(self, channel: Channel, worker: str) -> None:
        self._channel, self._worker = channel, worker
        self._given: dict[str, list[int]] = defaultdict(list)
        self._owned: dict[str, dict[int, int]] = defaultdict(dict)
        self._sending: set[asyncio.Task[None]] = set()

    def tell(self, row: WorkerRow, shard: int) -> None:
        """A shard is this worker's; sent soon, with the others that it is told of."""
        if not self._given:
            self._start(self._send_given())
        self._given[row.worker].append(shard)

    def tell_owned(self, row: WorkerRow, shard: int, epoch: int) -> None:
        """A shard is served here; sent to gateways within a moment, with the others that are gained in it."""
        if not self._owned:
            self._start(self._send_owned())
        self._owned[json.dumps({"worker": row.worker, "inc": row.inc, "addr": row.addr})][shard] = epoch

    async def tell_death(self, inc: str) -> None:
        """A life is over."""
        await self._channel.publish({"dead": inc})

    async def run(self, hearer: Hearer, wants: Callable[[Iterable[int]], None] = _ignore) -> None:
        """Hear, until cancelled; a connection that breaks is made anew.

        Args:
            wants: told of shards in which rows of connections have changed.
        """
        await self._channel.run(lambda news: self._hear(hearer, wants, news))

    async def aclose(self) -> None:
        """Send what is to be sent, and close."""
        await asyncio.gather(*self._sending)
        await self._channel.aclose()

    def _hear(self, hearer: Hearer, wants: Callable[[Iterable[int]], None], news: News) -> None:
        if news.get("to") == self._worker:
            hearer.notice(_numbers(news.get("shards")))
        elif "dead" in news:
            hearer.news()
        elif "wants" in news:
            wants(_numbers(news["wants"]))

    def _start(self, sending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(sending)
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _send_given(self) -> None:
        await asyncio.sleep(0)
        given, self._given = self._given, defaultdict(list)
        for worker, shards in given.items():
            await self._channel.publish({"to": worker, "shards": shards})

    async def _send_owned(self) -> None:
        await asyncio.sleep(_GATHER_S)
        owned, self._owned = self._owned, defaultdict(dict)
        for owner, epochs in owned.items():
            await self._channel.publish({"owner": json.loads(owner), "epochs": epochs})


def _numbers(told: Any) -> list[int]:
    return [each for each in told if isinstance(each, int)] if isinstance(told, list) else []
