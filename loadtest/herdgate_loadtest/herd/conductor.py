"""Leads the processes of a herd: all come up, hold, are cut off in the same instant, recover; round after round.

Theory of operation. It gives orders and hears news, both plain dictionaries, and is asked to `step` about once a
second. What comes when is a generator: it yields wherever it has to wait. An order for a moment leaves more than a
second before it, so that nobody's timing depends on how long it was on its way: that moment is the barrier.

Rules: no Locust, no sockets, no clock of its own. Moments are the master's, until `_order` translates them.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from herdgate_loadtest.counted import counted
from herdgate_loadtest.engine.recorded import Recorded
from herdgate_loadtest.errors import CrowdError, LoadtestError
from herdgate_loadtest.herd.clocks import ENOUGH, Offset, offset_of
from herdgate_loadtest.herd.plan import Plan, Share
from herdgate_loadtest.herd.rounds import Round, Told, round_of

__all__ = ["Conductor", "Stage"]

_LEAD_S = 1.5  # an order is on its way for less: one turn of a process of Locust that is busy
_BEFORE_KILL_S = 0.05
_START_S = 60.0
_SILENT_S = 20.0
_ANSWER_S = 60.0
_CALM_S = 2.0
_SETTLE_S = 30.0
_NOT_STARTED = 2


@dataclass(frozen=True, slots=True)
class Stage:
    """What a conductor acts through.

    Attributes:
        send: an order to the process of a name.
        now: monotonic seconds.
        at: calls a function at a moment.
        kill: ends a process at once.
        drain: tells a gateway to drain.
        is_drained: that gateway has nobody left.
        permits: taken at the gateways, as of a moment or later; None: not known yet.
        boot_id: see `herdgate_loadtest.herd.clocks.boot_id`.
    """

    send: Callable[[str, dict[str, Any]], None]
    now: Callable[[], float]
    at: Callable[[float, Callable[[], None]], None]
    kill: Callable[[int], None]
    drain: Callable[[], None]
    is_drained: Callable[[], bool]
    permits: Callable[[float], int | None]
    boot_id: str


@dataclass(slots=True)
class _Swarm:
    """One process, as far as is known."""

    name: str
    heard_at: float
    share: Share | None = None
    clock: Offset | None = None
    questions: list[Offset] = field(default_factory=list)
    is_up: bool = False
    snapshot: Mapping[str, Any] | None = None
    cut: Mapping[str, float] | None = None
    told: Told | None = None
    has_left: bool = False


class Conductor:
    """Plays a plan with so many processes.

    Attributes:
        plan: as given.
        rounds: those that are over.
        warnings: what is disturbing, but no reason to stop.
        is_over: nothing is left to do.
        error: why it ended early; "": it did not.
        exit_code: 0 all rounds ended with everybody back and were valid; 1 not so; 2 nothing was run.
        phase: what is going on, a few words.
    """

    def __init__(self, plan: Plan, processes: int, stage: Stage) -> None:
        self.plan = plan
        self.rounds: list[Round] = []
        self.warnings: list[str] = []
        self.is_over = False
        self.error = ""
        self.exit_code = 1
        self.phase = "starting"
        self._shares = plan.shares(processes)
        self._processes = processes
        self._stage = stage
        self._swarms: dict[str, _Swarm] = {}
        self._script = self._play()

    def step(self) -> bool:
        """Do what is due; False: it is over."""
        if self.is_over:
            return False
        try:
            self._check_silent()
            next(self._script)
        except StopIteration:
            self._end("", 0 if all(map(_went_well, self.rounds)) else 1)
        except CrowdError as error:
            self._end(str(error), 1)
        except LoadtestError as error:
            self._end(str(error), _NOT_STARTED)
        return not self.is_over

    def hear(self, name: str, event: str, **fields: Any) -> None:
        """News of a process."""
        if event == "ready":
            self._swarms[name] = _Swarm(name, self._stage.now(), clock=self._clock(**fields))
            return
        swarm = self._swarms.get(name)
        if swarm is None or self.is_over:
            return
        swarm.heard_at = self._stage.now()
        if event == "clock":
            swarm.questions.append(offset_of(fields["asked_at"], fields["now"], swarm.heard_at))
        elif event == "up":
            swarm.is_up = True
            self.warnings += fields["warnings"]
        elif event == "snapshot":
            swarm.snapshot = fields
        elif event == "cut":
            swarm.cut, swarm.snapshot = fields, None
        elif event == "told":
            swarm.told = self._translated(swarm, **fields)
        elif event == "left":
            swarm.has_left = True
        elif event == "error":
            self._end(fields["message"], fields["code"])

    def counts(self) -> tuple[int, int]:
        """Clients that are in now, and that have been cut off since the cut began; before it, nobody has."""
        shown = [(swarm.snapshot, swarm.cut) for swarm in self._swarms.values() if swarm.snapshot]
        return sum(one["open"] for one, _ in shown), sum(one["cut_off"] for one, cut in shown if cut)

    # What comes when.

    def _play(self) -> Iterator[None]:
        yield from self._until(lambda: len(self._swarms) >= self._processes, _START_S, "not all processes started")
        yield from self._ask_clocks()
        permits = yield from self._ask_permits()
        for swarm, share in zip(self._swarms.values(), self._shares, strict=False):
            swarm.share = share
        self.phase = "coming up"
        at = self._stage.now() + _LEAD_S
        for swarm in self._playing():
            assert swarm.share is not None
            self._order(swarm, swarm.share.as_order(at, self.plan.up_deadline_s))
        yield from self._until(
            lambda: all(swarm.is_up for swarm in self._playing()), self.plan.up_deadline_s + _START_S, "did not come up"
        )
        for _ in range(self.plan.rounds):
            yield from self._play_round()
        self._leave()
        if permits is not None:
            yield from self._see_permits_back(permits)

    def _play_round(self) -> Iterator[None]:
        self.phase = "holding"
        end = self._stage.now() + self.plan.hold_s
        while self._stage.now() < end - _LEAD_S:
            yield
        self._cut()
        yield from self._until(lambda: all(swarm.cut for swarm in self._playing()), _ANSWER_S, "did not cut")
        self.phase = "recovering"
        began = self._stage.now()
        calm = _Calm(began)
        while self._stage.now() < began + self.plan.deadline_s:
            if self._is_recovered(calm):
                break
            yield
        for swarm in self._playing():
            swarm.told = None
            self._order(swarm, {"order": "tell"})
        yield from self._until(lambda: all(swarm.told for swarm in self._playing()), _ANSWER_S, "did not tell")
        told = [swarm.told for swarm in self._playing() if swarm.told]
        plan = self.plan
        least = plan.crowd.total if plan.is_ours else plan.expect or 1
        played = round_of(told, rate=plan.rate, burst=plan.burst, most_skew_s=plan.most_skew_s, least_cut_off=least)
        self.rounds.append(played)

    def _cut(self) -> None:
        at = self._stage.now() + _LEAD_S
        how = self.plan.cut if self.plan.is_ours else "observe"
        for swarm in self._playing():
            swarm.cut = None
            self._order(swarm, {"order": "cut", "at": at, "how": how})
        for pid in self.plan.kill_pids:
            self._stage.at(at + _BEFORE_KILL_S, lambda pid=pid: self._kill(pid))  # type: ignore[misc]
        if self.plan.cut == "drain":
            self._stage.at(at + _BEFORE_KILL_S, self._drain)

    def _kill(self, pid: int) -> None:
        try:
            self._stage.kill(pid)
        except OSError as error:
            self._end(f"process {pid} was not killed ({error.strerror}): give the id of a process of your own", 1)

    def _drain(self) -> None:
        try:
            self._stage.drain()
        except LoadtestError as error:
            self._end(str(error), 1)

    def _is_recovered(self, calm: "_Calm") -> bool:
        if not all(swarm.snapshot and swarm.snapshot["is_back"] for swarm in self._playing()):
            return False
        _, cut_off = self.counts()
        if self.plan.is_ours:
            return cut_off == self.plan.crowd.total
        if self.plan.expect is not None:
            return cut_off >= self.plan.expect
        if self.plan.cut == "drain":
            return calm.lasts(cut_off, self._stage.now()) and self._is_drained()
        return cut_off > 0 and calm.lasts(cut_off, self._stage.now())

    def _is_drained(self) -> bool:
        try:
            return self._stage.is_drained()
        except LoadtestError as error:
            raise CrowdError(str(error)) from None

    def _ask_permits(self) -> Generator[None, None, int | None]:
        """Those that others have taken; None: nobody is to be asked."""
        if not self.plan.gateways:
            return None
        since = self._stage.now()
        while (taken := self._stage.permits(since)) is None:
            if self._stage.now() > since + _START_S:
                raise CrowdError(f"the counts of the gateway are {_START_S:g} s old: its main loop is blocked")
            yield
        return taken

    def _see_permits_back(self, before: int) -> Iterator[None]:
        """Once everybody has left the gateways have what they had before; sockets take a while to end at workers."""
        self.phase = "leaving"
        yield from self._until(lambda: all(swarm.has_left for swarm in self._playing()), _ANSWER_S, "did not leave")
        since, left = self._stage.now(), None
        try:
            while left != 0 and self._stage.now() < since + _SETTLE_S:
                taken = self._stage.permits(since)
                left = left if taken is None else max(0, taken - before)
                if left != 0:
                    yield
        except LoadtestError as error:
            self.warnings.append(str(error))
        if left is not None:
            self.rounds[-1] = self.rounds[-1].with_permits(left)
        if left:
            self.warnings.append(
                f"{counted(left, 'permit')} more than before the herd came, {_SETTLE_S:g} s after it left"
            )

    def _ask_clocks(self) -> Iterator[None]:
        """Machines other than this one are asked for their time, a few times."""
        for _ in range(ENOUGH + 2):
            foreign = [swarm for swarm in self._swarms.values() if swarm.clock is None]
            for swarm in foreign:
                self._stage.send(swarm.name, {"order": "clock", "asked_at": self._stage.now()})
            if foreign:
                yield
        for swarm in self._swarms.values():
            if swarm.clock is None and not swarm.questions:
                raise CrowdError(f"process {swarm.name} does not tell its time")
            swarm.clock = swarm.clock or min(swarm.questions, key=lambda offset: offset.error_s)

    def _until(self, condition: Callable[[], bool], within_s: float, otherwise: str) -> Iterator[None]:
        end = self._stage.now() + within_s
        while not condition():
            if self._stage.now() > end:
                raise CrowdError(f"{otherwise} within {within_s:g} s: {self._who_is_where()}")
            yield

    def _playing(self) -> list[_Swarm]:
        return [swarm for swarm in self._swarms.values() if swarm.share is not None]

    def _order(self, swarm: _Swarm, order: dict[str, Any]) -> None:
        assert swarm.clock is not None
        if "at" in order:
            order = order | {"at": order["at"] + swarm.clock.seconds}
        self._stage.send(swarm.name, order)

    def _clock(self, boot_id: str) -> Offset | None:
        return Offset() if boot_id and boot_id == self._stage.boot_id else None

    def _translated(self, swarm: _Swarm, recorded: dict[str, Any], **fields: Any) -> Told:
        assert swarm.clock is not None
        assert swarm.cut is not None
        answers, series = fields.pop("answers"), fields.pop("series")
        mine = Recorded.of(recorded | {"began": recorded["began"] - swarm.clock.seconds})
        return Told(
            mine,
            cut_at=swarm.cut["began"] - swarm.clock.seconds,
            clock_error_s=swarm.clock.error_s,
            took_s=swarm.cut["took_s"],
            answers=answers,
            series=[(outcome, bucket, times) for outcome, bucket, times in series],
            generator=fields,
        )

    def _check_silent(self) -> None:
        for swarm in self._playing():
            if not swarm.has_left and self._stage.now() - swarm.heard_at > _SILENT_S:
                raise CrowdError(f"process {swarm.name} has said nothing for {_SILENT_S:g} s: look at its machine")

    def _who_is_where(self) -> str:
        inside, _ = self.counts()
        up = sum(swarm.is_up for swarm in self._swarms.values())
        there = f"{len(self._swarms)} of {counted(self._processes, 'process', 'processes')}"
        return f"{there} there, {up} up, {inside:,} of {counted(self.plan.crowd.total, 'client')} in"

    def _leave(self) -> None:
        for swarm in self._swarms.values():
            self._stage.send(swarm.name, {"order": "leave"})

    def _end(self, error: str, code: int) -> None:
        if not self.is_over:
            self.is_over, self.error, self.exit_code, self.phase = True, error, code, "over"
            self._leave()


class _Calm:
    """Has a number been the same for a while?"""

    def __init__(self, now: float) -> None:
        self._number, self._since = -1, now

    def lasts(self, number: int, now: float) -> bool:
        if number != self._number:
            self._number, self._since = number, now
        return now - self._since >= _CALM_S


def _went_well(played: Round) -> bool:
    record = played.record
    return record.valid and record.t100_s != float("inf") and not record.leaked_permits
