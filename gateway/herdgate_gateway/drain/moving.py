"""Closes sockets: oldest first, each at a firm slot of its own; what is left at the deadline, with hints.

    asked for a slot, at the pace -> slot close by -> close 1012 with the time that is left, and the ticket

So a client is without a socket for a moment, however long the queue of others is: it waits for its slot with its socket
open. A slot that is further away than the time there is does not keep its socket.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from herdgate.core.answers import Invitation
from herdgate.denial import close_reason
from herdgate_gateway.close_codes import SERVICE_RESTART
from herdgate_gateway.drain.plan import LEAD_S, Pace, Schedule
from herdgate_gateway.drain.sockets import Movable, OpenSockets

__all__ = ["TICK_S", "Mover"]

TICK_S = 0.02
ANSWER_S = 0.5
"""Seconds that a hint may take; then a time is drawn."""

LEAST_S = 0.001

LOT = 250
"""Hints asked for at once."""

HINTING_S = 0.5
"""Seconds in which hints are asked for the rest, half of what it has to hang up; then times are drawn."""

SOON_S, LATEST_S = 5.0, 60.0
"""Least and greatest bound of times that are drawn, by how many there are."""


class Mover:
    """Of one drain.

    Args:
        sockets: what is open.
        schedule: when the time is up.
        per_s: tells how many may be closed a second, now; None: no limit.
        message: text for each client before its close.
    """

    def __init__(
        self,
        sockets: OpenSockets,
        schedule: Schedule,
        per_s: Callable[[], float | None],
        message: str | None,
    ) -> None:
        self._sockets, self._schedule, self._per_s, self._message = sockets, schedule, per_s, message
        self._waiting: deque[Movable] = deque()
        self._asked: set[asyncio.Task[None]] = set()
        self._seen: set[Movable] = set()
        self._drawn_s = SOON_S
        self._now = asyncio.get_running_loop().time

    @property
    def left(self) -> int:
        """Sockets that are not told yet."""
        return len(self._waiting) + len(self._asked)

    def look(self) -> None:
        """Take note of what is open and not known yet."""
        new = [socket for socket in self._sockets if not socket.is_leaving and socket not in self._seen]
        self._seen.update(new)
        self._waiting.extend(new)

    async def move(self, is_done: Callable[[], bool]) -> None:
        """Close one after the other until the time is up, or none is left and `is_done` says that none will come."""
        pace = Pace(self._now())
        while (now := self._now()) < self._schedule.rest_at:
            if not self._waiting:
                self.look()
            if not self.left and is_done():
                return
            for _ in range(pace.take(now, self._per_s())):
                self._ask_next()
            await asyncio.sleep(TICK_S)

    async def close_rest(self, per_s: float | None) -> int:
        """Close all that is left; how many those were.

        Args:
            per_s: at how many a second those come back whom the calendar tells no time.
        """
        self.look()
        rest = [socket for socket in self._waiting if not socket.is_leaving]
        self._waiting.clear()
        if per_s:
            self._drawn_s = min(LATEST_S, max(SOON_S, len(rest) / per_s))
        asks_until = self._now() + HINTING_S
        for first in range(0, len(rest), LOT):
            is_in_time = self._now() < asks_until
            await asyncio.gather(*(self._hint(socket, asks=is_in_time) for socket in rest[first : first + LOT]))
        if self._asked:
            await asyncio.wait(self._asked)
        return len(rest)

    def cut(self) -> int:
        """Cut who was told, and has not hung up; how many those were."""
        told = [socket for socket in self._sockets if socket in self._seen]
        for socket in told:
            socket.abort()
        return len(told)

    def _ask_next(self) -> None:
        while self._waiting:
            socket = self._waiting.popleft()
            if not socket.is_leaving:
                task = asyncio.get_running_loop().create_task(self._at_its_slot(socket))
                self._asked.add(task)
                task.add_done_callback(self._asked.discard)
                return

    async def _at_its_slot(self, socket: Movable) -> None:
        if socket.invite is None:
            self._close(socket, None)
            return
        invitation = await self._in_time(socket, firm=True)
        slot = self._now() + (invitation.retry_s if invitation else 0.0)
        while not socket.is_leaving:
            wait_s = min(slot - LEAD_S, self._schedule.rest_at) - self._now()
            if wait_s <= 0:
                break
            await asyncio.sleep(min(wait_s, LEAD_S))
        if invitation is not None:
            invitation = Invitation(max(LEAST_S, slot - self._now()), invitation.ticket)
        self._close(socket, invitation)

    async def _hint(self, socket: Movable, *, asks: bool) -> None:
        self._close(socket, await self._in_time(socket, firm=False) if asks else None)

    async def _in_time(self, socket: Movable, *, firm: bool) -> Invitation | None:
        if socket.invite is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWER_S):
                    return await socket.invite(firm=firm)
        return None

    def _close(self, socket: Movable, invitation: Invitation | None) -> None:
        told = invitation or Invitation(random.uniform(1, self._drawn_s), None)
        socket.close(SERVICE_RESTART, close_reason(told), self._message)
