"""Refusals per CPU second, a new TCP connection each: over HTTP (`reject`), or by accept and close 1013 (`close`)."""

from collections.abc import Sequence
from dataclasses import dataclass

from herdgate_loadtest.bench.figures import at_least
from herdgate_loadtest.bench.sides.contenders import PEERS, Contender, Duty, echo_worker, run_contenders
from herdgate_loadtest.bench.sides.outcome import Outcome
from herdgate_loadtest.bench.sides.slots import Slot, available, fill, measured
from herdgate_loadtest.bench.sides.visit import Manner
from herdgate_loadtest.bench.sides.visits import Visits

__all__ = ["measure_close", "measure_reject"]

_REJECT_BOUNDS = {"herdgate/uvicorn": at_least(5, 8), "herdgate/nginx": at_least(0.6, 1)}
_CLOSE_BOUNDS = {"herdgate/uvicorn": at_least(5, 8)}


@dataclass(frozen=True, slots=True)
class _Plan:
    slots: int
    slot_s: float


_FULL, _FAST = _Plan(7, 2.0), _Plan(1, 0.3)


def measure_reject(*, fast: bool) -> Outcome:
    """By HTTP, of all contenders."""
    outcome = Outcome(_REJECT_BOUNDS)
    names = ["herdgate", "uvicorn", "naive", *PEERS]
    _measure(outcome, names, "refuse", "http", _FAST if fast else _FULL)
    return outcome


def measure_close(*, fast: bool) -> Outcome:
    """By a close frame, of those that speak WebSocket."""
    outcome = Outcome(_CLOSE_BOUNDS)
    _measure(outcome, ["herdgate", "uvicorn", "naive"], "close", "close", _FAST if fast else _FULL)
    return outcome


def _measure(outcome: Outcome, names: Sequence[str], duty: Duty, manner: Manner, plan: _Plan) -> None:
    here, outcome.absent = available(names)
    with echo_worker() as worker, run_contenders(here, duty, worker) as contenders:
        fill(outcome, contenders, plan.slots, lambda contender: _slot(contender, manner, plan.slot_s))
    for name in names[1:]:
        outcome.compare("herdgate", name)


def _slot(contender: Contender, manner: Manner, seconds: float) -> Slot:
    visits = Visits(manner, with_ticket=contender.name == "herdgate")
    admissions_per_s = 1.0 if contender.name in PEERS else 0.0

    def work() -> tuple[int, list[str]]:
        tally = visits.run(contender.port, seconds)
        return tally.done, tally.faults(admissions_per_s)

    return measured(contender, work)
