"""Keeps the time for all joints of a relay: one task, which ends when there is none.

    watched     ending, or with a leg that does not read: looked at every tick
    all         for idle and old ones, and only if there are such limits: looked at now and then, some at a time

A tick is an eighth of the shortest limit, so deadlines are kept that much too late at most, and never too early.
"""

import asyncio
from collections.abc import Collection, Coroutine

from herdgate_gateway.bridge import RelaySettings
from herdgate_gateway.drain.sockets import Cuts
from herdgate_gateway.splice.joint import Joint

__all__ = ["Sweeper"]

PART = 1 / 8
LONGEST_TICK_S, LONGEST_ROUND_S = 1.0, 5.0

AT_ONCE = 500
"""Joints looked at before others of the loop get their turn."""


class Sweeper:
    """Of one relay.

    Args:
        settings: the limits.
        cuts: counts clients that vanish.
    """

    def __init__(self, settings: RelaySettings, cuts: Cuts | None = None) -> None:
        self._cuts = cuts
        for_all = [limit for limit in (settings.idle_s, settings.max_age_s) if limit is not None]
        self._round_s = min(LONGEST_ROUND_S, *(PART * limit for limit in for_all)) if for_all else None
        self._tick_s = PART * min(settings.close_s, settings.stall_s, *for_all, LONGEST_TICK_S / PART)
        self._joints: dict[Joint, None] = {}  # oldest first
        self._watched: set[Joint] = set()
        self._task: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._none_left = asyncio.Event()
        self._none_left.set()

    @property
    def joints(self) -> Collection[Joint]:
        """Those that are open, oldest first."""
        return self._joints.keys()

    def now(self) -> float:
        """The loop's seconds."""
        return asyncio.get_running_loop().time()

    def add(self, joint: Joint) -> None:
        """A new one."""
        self._joints[joint] = None
        self._none_left.clear()
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._sweep())

    def cut_off(self) -> None:
        """A client has vanished."""
        if self._cuts is not None:
            self._cuts.note(self.now())

    def watch(self, joint: Joint) -> None:
        """Look at this one at every tick, as long as there is reason to."""
        self._watched.add(joint)

    def run(self, work: Coroutine[None, None, None]) -> None:
        """What a joint has to wait for."""
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    def forget(self, joint: Joint) -> None:
        """This one is over."""
        self._joints.pop(joint, None)
        self._watched.discard(joint)
        if not self._joints:
            self._none_left.set()

    async def wait_empty(self, within_s: float) -> None:
        """Wait until none is left, or the time is up."""
        try:
            async with asyncio.timeout(within_s):
                await self._none_left.wait()
        except TimeoutError:
            return

    async def _sweep(self) -> None:
        next_round = self.now()
        while self._joints:
            await asyncio.sleep(self._tick_s)
            now = self.now()
            self._look(now)
            if self._round_s is not None and now >= next_round:
                next_round = now + self._round_s
                await self._look_around()

    def _look(self, now: float) -> None:
        for joint in tuple(self._watched):
            if not joint.look(now):
                self._watched.discard(joint)

    async def _look_around(self) -> None:
        for number, joint in enumerate(tuple(self._joints), 1):
            joint.look_around(self.now())
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
