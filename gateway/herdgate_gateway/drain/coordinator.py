"""A drain, from its trigger to its end.

    trigger -> deadline, said first; readiness fails
            -> its turn (by anything but SIGTERM at most so many gateways at once); until then who comes is let in
            -> arrivals are refused with hints; the listeners stay open
            -> sockets one by one (`moving`), at most share x R for all drains of the fleet
            -> the rest at the deadline, with hints; handshakes under way too; who does not answer is cut
            -> drained; after a SIGTERM the process ends

Rules: one drain a process, whatever triggers come and however often; a SIGTERM on the way brings its own deadline, if
that is earlier, and waits for no turn; only a second SIGTERM or SIGINT shortens it; each step is a line in the log,
with the seconds since the trigger and the sockets that are open.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from herdgate_gateway.drain.moving import TICK_S, Mover
from herdgate_gateway.drain.options import DrainSettings
from herdgate_gateway.drain.plan import HANG_UP_S, Schedule, Trigger, named, needed_s, outlook
from herdgate_gateway.drain.sockets import Cuts, OpenSockets
from herdgate_gateway.drain.status import DrainState, DrainStatus
from herdgate_gateway.drain.turns import Turns

__all__ = ["Drain", "Host"]

QUIET_S = 0.1
"""For verdicts that are on their way when the last socket is gone."""

ANSWER_S = 0.5
"""After which a fleet that says nothing has said no."""

_logger = logging.getLogger("herdgate.gateway")


class Host(Protocol):
    """The gateway that drains."""

    @property
    def is_serving(self) -> bool:
        """True once it accepts connections."""
        ...

    @property
    def sockets(self) -> OpenSockets:
        """What is open."""
        ...

    @property
    def cuts(self) -> Cuts:
        """Clients that vanished."""
        ...

    def rate(self) -> float | None:
        """Admissions per second, of the whole fleet as far as it is known; None: no limit."""
        ...

    def under_way(self) -> int:
        """Handshakes that are let in, or held, and not over."""
        ...

    def refuse(self) -> None:
        """Let nobody in from now on."""
        ...

    def turn_away(self) -> None:
        """Give handshakes that are under way a word."""
        ...

    def end(self, within_s: float) -> None:
        """End the process; what is open may take so long."""
        ...


class Drain:
    """Of one process.

    Args:
        host: what is drained.
        settings: how.
        turns: when, beside others.
    """

    def __init__(self, host: Host, settings: DrainSettings, turns: Turns) -> None:
        self._host, self._settings, self._turns = host, settings, turns
        self._schedule: Schedule | None = None
        self._triggers: list[Trigger] = []
        self._mover: Mover | None = None
        self._state: DrainState = "waiting"
        self._task: asyncio.Task[None] | None = None

    @property
    def is_begun(self) -> bool:
        """True from the first trigger on: no new arrivals should be sent here."""
        return self._schedule is not None

    @property
    def status(self) -> DrainStatus | None:
        """How far it is; None: there was no trigger."""
        if self._schedule is None:
            return None
        left_s = 0.0 if self._state == "drained" else max(0.0, self._schedule.ends_at - self._now())
        return DrainStatus(self._state, self._triggers[0], self._since_s, left_s, len(self._host.sockets))

    def begin(self, trigger: Trigger, within_s: float | None = None) -> None:
        """Drain, in the running loop; without effect on a drain that is begun, but for its first SIGTERM.

        Args:
            within_s: seconds that it may take. None: those of the settings.
        """
        within_s = self._settings.within_s(trigger) if within_s is None else within_s
        if self._schedule is None:
            self._schedule = Schedule(self._now(), within_s)
            self._triggers.append(trigger)
            self._task = asyncio.get_running_loop().create_task(self._run(within_s))
        elif trigger not in self._triggers:
            self._triggers.append(trigger)
            self._take_over(self._schedule, trigger, within_s)

    def stop(self) -> None:
        """A sign to stop: the first one begins a drain, each further one hurries it."""
        if "sigterm" not in self._triggers:
            self.begin("sigterm")
        elif self._schedule is not None and self._state != "drained":
            self._schedule.shorten(self._now(), 0.0)
            self._say("told again to stop: the rest is closed at once")

    async def aclose(self) -> None:
        """Leave nothing behind."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))
        await self._turns.aclose()

    def _take_over(self, schedule: Schedule, trigger: Trigger, within_s: float) -> None:
        if trigger != "sigterm":
            self._say(f"told by {named(trigger)} too, which changes nothing")
        elif self._state == "drained":
            self._say("SIGTERM: the process ends")
            self._task = asyncio.get_running_loop().create_task(self._end_drained())
        else:
            schedule.shorten(self._now(), within_s)
            self._say(f"SIGTERM on the way: over within {schedule.ends_at - self._now():.1f} s")

    async def _run(self, within_s: float) -> None:
        assert self._schedule is not None
        try:
            await self._drain(self._schedule, within_s)
        except Exception:
            _logger.exception("a drain failed; what is open is closed with the process")
        self._state = "drained"
        if "sigterm" in self._triggers:
            self._host.end(max(QUIET_S, self._schedule.ends_at - self._now()))  # who is left had its second

    async def _end_drained(self) -> None:
        """Who came after the drain, past all limits, hears when to come back."""
        try:
            if self._mover is not None and len(self._host.sockets):
                await self._mover.close_rest(self._per_s())
        finally:
            self._host.end(HANG_UP_S)

    async def _drain(self, schedule: Schedule, within_s: float) -> None:
        await _while(lambda: not self._host.is_serving)
        mover = self._mover = Mover(self._host.sockets, schedule, self._per_s, self._settings.message)
        self._say(f"{named(self._triggers[0])}: to be over within {within_s:g} s{self._too_late()}")
        self._turns.start(
            lambda: mover.left if self._state == "draining" else len(self._host.sockets),
            lambda: self._state == "waiting" and self._waits(),
        )
        await self._wait_for_turn(schedule)
        self._state = "draining"
        self._host.refuse()
        mover.look()
        self._say("arrivals are refused with a time to come back")
        await self._settle(schedule)
        await self._move(mover, schedule)
        await self._hang_up(mover, schedule)
        await self._turns.aclose()
        self._say("drained")

    async def _wait_for_turn(self, schedule: Schedule) -> None:
        began, is_said = self._now(), False
        while not self._turns.has_turn and self._waits():
            if self._now() >= schedule.latest_start(needed_s(len(self._host.sockets), self._whole_per_s())):
                self._say("its turn has not come, and there is no more time to wait for it")
                return
            if not is_said and self._now() > began + ANSWER_S:
                self._say("waits for its turn: other gateways drain")
                is_said = True
            await asyncio.sleep(TICK_S)

    async def _settle(self, schedule: Schedule) -> None:
        """Let balancers notice: nobody who is moved should be sent here again, and nobody new find a closed door."""
        settled_at = schedule.began + self._settings.settle_s
        await _while(lambda: self._now() < min(settled_at, schedule.rest_at))

    async def _move(self, mover: Mover, schedule: Schedule) -> None:
        left_s = schedule.rest_at - self._now()
        if mover.left:
            # Until the fleet has answered.
            await _while(lambda: self._turns.part == 0.0 and self._now() < schedule.rest_at)
            self._say(f"moving {mover.left:,} sockets: {outlook(mover.left, self._per_s(), left_s)}")
        await mover.move(lambda: not self._host.under_way())
        if rest := await mover.close_rest(self._per_s()):
            self._say(f"time is up: the rest, {rest:,} sockets, was closed together")

    async def _hang_up(self, mover: Mover, schedule: Schedule) -> None:
        """Give the last ones their time, and handshakes a word; then cut who does not answer."""
        await asyncio.sleep(QUIET_S)
        self._host.turn_away()
        await _while(lambda: self._is_occupied() and self._now() < schedule.ends_at)
        if late := mover.cut():
            self._say(f"{late:,} that did not answer were cut")
            await asyncio.sleep(QUIET_S)  # for their connections to be gone

    def _is_occupied(self) -> bool:
        return bool(self._host.sockets) or self._host.under_way() > 0

    def _waits(self) -> bool:
        return "sigterm" not in self._triggers

    def _whole_per_s(self) -> float | None:
        rate = self._host.rate()
        return None if rate is None else rate * self._settings.share

    def _per_s(self) -> float | None:
        whole = self._whole_per_s()
        return None if whole is None else whole * self._turns.part

    def _too_late(self) -> str:
        """What a SIGTERM has to hear that may have come after a balancer's cut; nobody can see who cut them."""
        cut, left = self._host.cuts.recent(self._now()), len(self._host.sockets)
        if self._triggers[0] != "sigterm" or cut <= left:
            return ""
        return (
            f"; {cut:,} clients were gone without a close frame in the last 30 s: if a balancer cut them, this came"
            " too late for them, and a call, the file or an early sign has to begin the drain before it cuts"
        )

    @property
    def _since_s(self) -> float:
        return 0.0 if self._schedule is None else self._now() - self._schedule.began

    def _say(self, what: str) -> None:
        _logger.info("drain, %.1f s, %d sockets open: %s", self._since_s, len(self._host.sockets), what)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


async def _while(condition: Callable[[], bool]) -> None:
    """Wait as long as it holds."""
    while True:
        if not condition():
            return
        await asyncio.sleep(TICK_S)
