"""A worker: an owner of shards and the duty that it has, side by side, from the start to a good end.

start -> owns and works -> told to stop: gives all away -> ends
                        -> told to drain: the same, then stays, with nothing and taking nothing, until told to stop
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from herdgate_gateway.drain.plan import Trigger, named
from herdgate_gateway.leases.notices import Notices
from herdgate_gateway.leases.owner import Setup, ShardOwner
from herdgate_gateway.leases.registration import wait_for_name
from herdgate_gateway.tasks import reap
from herdgate_gateway.worker_kit.duty import Duty, Parts
from herdgate_gateway.worker_kit.stopping import Stopping

__all__ = ["Worker"]

_CLOSE_S = 1.0
"""Seconds that the duty has to close at least, even if the time to stop is over."""

_logger = logging.getLogger("herdgate.worker")


class Worker:
    """See above.

    Args:
        setup: of the owner; made with what tells the load, in any thread.
        duty: makes it.
        notices: news over Redis; None: there is none.
        rate: tells the fleet's admissions per second; None: not known.
        stop_s: longest time of a good end, seconds.

    Attributes:
        owner: of the shards.
    """

    def __init__(
        self,
        setup: Callable[[Callable[[], int]], Setup],
        duty: Callable[[Parts], Duty],
        notices: Notices | None,
        rate: Callable[[], Awaitable[float | None]],
        stop_s: float,
    ) -> None:
        self._setup = made = setup(self._load)
        self._notices = notices
        self.owner = ShardOwner(made, self._gained, self._lost, self._release)
        self._duty = duty(Parts(self.owner, made.table, made.clock, made.fleet, made.row.worker))
        self._stopping = Stopping(self.owner, self._duty.weights, rate, stop_s)
        self._starting: asyncio.Task[None] | None = None
        self._draining: asyncio.Task[None] | None = None
        self._is_wanted = True
        self._may_end = asyncio.Event()

    async def run(self) -> None:
        """Until stopped, or until the duty ends by itself.

        Raises:
            NameInUseError: another process of this name is alive.
            HerdgateError: the duty cannot start.
        """
        self._starting = asyncio.ensure_future(self._start())
        try:
            await asyncio.wait((self._starting,))
            if self._is_wanted:
                self._starting.result()
                await self._live()
        finally:
            await reap(self._starting, *filter(None, (self._draining,)))
            with suppress(TimeoutError):
                async with asyncio.timeout(max(self._stopping.left_s, _CLOSE_S)):
                    await self._duty.aclose()

    async def stop(self) -> None:
        """End in good order; called again, at once."""
        self._may_end.set()
        if self._starting is not None and self._starting.done():
            await self._stopping.stop()
            return
        self._is_wanted = False
        if self._starting is not None:
            self._starting.cancel()

    def begin_drain(self, trigger: Trigger, within_s: float) -> None:
        """Give all away as `stop` does, and stay until that is called; without effect on what has begun to end.

        Args:
            within_s: seconds that it may take.
        """
        if not self._stopping.is_begun:
            self._draining = asyncio.ensure_future(self._drain(trigger, within_s))

    async def _drain(self, trigger: Trigger, within_s: float) -> None:
        began = asyncio.get_running_loop().time()
        _say_step(0.0, self._duty.load(), f"{named(trigger)}: to be over within {within_s:g} s")
        try:
            await self._stopping.drain(within_s)
        except Exception:
            _logger.exception("a drain failed; SIGTERM ends what is left")
            return
        took_s = asyncio.get_running_loop().time() - began
        _say_step(took_s, self._duty.load(), "drained: owns nothing, and takes nothing any more")

    def _load(self) -> int:
        return self._duty.load()

    async def _start(self) -> None:
        setup = self._setup
        if not self._is_wanted:
            return
        await wait_for_name(setup.table, setup.clock, setup.fleet, setup.row)
        await self._duty.start()

    async def _live(self) -> None:
        owning = asyncio.ensure_future(self._own())
        working = asyncio.ensure_future(self._duty.run())
        hearing = asyncio.ensure_future(self._hear())
        try:
            await asyncio.wait((owning, working), return_when=asyncio.FIRST_COMPLETED)
            self._may_end.set()
            if not owning.done():
                await self.owner.stop()
            await owning
            if working.done():
                working.result()
        finally:
            await reap(owning, working, hearing)

    async def _own(self) -> None:
        """Until all is given away, and it was told to stop."""
        await self.owner.run()
        await self._may_end.wait()

    async def _hear(self) -> None:
        if self._notices is not None:
            await self._notices.run(self.owner, self._duty.wants_changed)

    def _gained(self, shard: int, epoch: int) -> None:
        self._duty.gained(shard, epoch)
        life = self.owner.life
        if self._notices is not None and life is not None:
            self._notices.tell_owned(life.row, shard, epoch)

    def _lost(self, shard: int, epoch: int) -> None:
        self._duty.lost(shard, epoch)

    async def _release(self, shard: int) -> None:
        await self._duty.release(shard)


def _say_step(since_s: float, load: int, what: str) -> None:
    _logger.info("drain, %.1f s, %d sockets open: %s", since_s, load, what)
