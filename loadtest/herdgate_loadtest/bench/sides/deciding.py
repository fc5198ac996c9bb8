"""What a decision costs in this process, in nanoseconds of CPU time, and in steps of the plainest keyed rate limiter.

Each case and the plain step take turns of a thousand steps, so that whatever else the machine does meets both, and all
cases take part in each round. A ratio is the median over rounds of the ratio within one.
"""

import itertools
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator

from herdgate_loadtest.bench.figures import at_most
from herdgate_loadtest.bench.sides.decisions import CASES, UNTIMED, Steps, check_crowd, plain_step, turns
from herdgate_loadtest.bench.sides.outcome import Outcome

__all__ = ["measure"]

_ROUNDS, _FAST_ROUNDS = 8, 2
_BOUNDS = {"calendar/plain": at_most(8, 5), "denial/plain": at_most(60, 45)}


def measure(*, fast: bool) -> Outcome:
    """ns of a decision, for all cases; `plain` is that of the plain step."""
    outcome = Outcome(_BOUNDS)
    ratios: dict[str, list[float]] = {}
    check_crowd()
    plain = _plain_turns()
    for _ in range(_FAST_ROUNDS if fast else _ROUNDS):
        plain_s = []
        for case in CASES:
            own, beside = _time(case.prepare, 1 if fast else case.loops, plain)
            outcome.add(case.name, own * 1e9)
            ratios.setdefault(case.name, []).append(own / beside)
            plain_s.append(beside)
        outcome.add("plain", statistics.median(plain_s) * 1e9)
    outcome.ratios = {f"{name}/plain": statistics.median(values) for name, values in ratios.items()}
    return outcome


def _plain_turns() -> Iterator[Steps]:
    while True:
        yield from turns(plain_step())


def _time(prepare: Callable[[], Steps], loops: int, plain: Iterator[Steps]) -> tuple[float, float]:
    """CPU seconds of an average step, and of a plain one beside it."""
    own, beside = [], []
    for _ in range(loops):
        for turn in turns(prepare()):
            own.append(_time_turn(turn))
            _time_turn(next(plain))  # so that the plain step is as fast beside the case as it is alone
            beside.append(_time_turn(next(plain)))
    return statistics.mean(own), statistics.mean(beside)


def _time_turn(turn: Steps) -> float:
    """CPU seconds of an average step. `map` and `deque` call without a line of Python between two steps.

    The first steps bring back to the processor's caches what the turn of the other evicted; they are not timed.
    """
    call, first, second = turn
    steps = map(call, first, second)
    deque(itertools.islice(steps, UNTIMED), maxlen=0)
    began = time.process_time()
    deque(steps, maxlen=0)
    return (time.process_time() - began) / (len(first) - UNTIMED)
