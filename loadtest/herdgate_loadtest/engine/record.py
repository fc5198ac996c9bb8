"""The result record: what a run of a crowd came to.

Rules: pure, and computed only from what clients and workers recorded; the gateway's own counts are compared, never
copied. Every figure that needs all clients is infinite when one of them never came back.

- `ideal_s`: (clients - burst) / rate, at least 0: nobody can be faster.
- `t95_s`, `t100_s`: seconds from the cut until 95 %, 100 % of the clients were back.
- `recovery_ratio`: t100 of the clients that obey / `ideal_s`. Infinite if any client, obedient or not, never came back;
  else null without an obedient client or without a queue (`ideal_s` = 0).
- `attempts_per_client`: dials since the cut / clients.
- `peak_admitted_per_s`: most admissions in an aligned second since the cut, the burst taken from the first, at least 0.
- `denied`: tries with an orderly denial: a whole HTTP refusal, or a close 1013 right after the 101.
- `failed`: tries with neither admission nor orderly denial: refused, reset, timed out, garbage.
- `denial_p99_ms`: from the *intended* moment of a try to its denial; null if nobody was denied.
- `leaked_permits`: permits the server still counts after every socket was closed; null if nobody asked it.
- `valid`, `reasons`: false, and why, if the generator spoiled the run or the server's counts disagree.
- `wait_p50_s`, `wait_max_s`: per behaviour, from the *intended* first try to the admission; whoever is not back waits
  for ever.

In JSON an infinite figure is the string "Infinity" (JSON has no such number): `float()` and `Number()` read it, and
a comparison with a bound is never true by mistake, as it would be for null in jq or JavaScript. Null: does not apply.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from herdgate_loadtest.counted import counted

__all__ = ["BehaviourRecord", "Outcome", "Record", "ServerCounts", "compute_record", "disagreements", "percentile"]

OBEDIENT = "obey"
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one client.

    Attributes:
        behaviour: its name.
        attempts: dials since the cut.
        back_s: seconds from the cut to its admission; None: never.
        wait_s: seconds from its intended first try to its admission; None: never.
    """

    behaviour: str
    attempts: int
    back_s: float | None = None
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class ServerCounts:
    """What gateway and workers counted in the same time; None: not asked.

    Attributes:
        admitted: admissions.
        denied: denials.
        permits: permits still taken after every socket was closed.
        admitted_at: moments of admission as the workers recorded them, monotonic seconds of the same machine.
    """

    admitted: int | None = None
    denied: int | None = None
    permits: int | None = None
    admitted_at: Sequence[float] | None = None


@dataclass(frozen=True, slots=True)
class BehaviourRecord:
    """The clients of one behaviour; the fields are explained above."""

    clients: int
    back: int
    attempts_per_client: float
    wait_p50_s: float
    wait_max_s: float


@dataclass(frozen=True, slots=True)
class Record:
    """The result record; the fields are explained above."""

    clients: int
    rate: float
    burst: float
    ideal_s: float
    t95_s: float
    t100_s: float
    recovery_ratio: float | None
    attempts_per_client: float
    peak_admitted_per_s: float
    denied: int
    failed: int
    denial_p99_ms: float | None
    leaked_permits: int | None
    valid: bool
    reasons: tuple[str, ...]
    behaviours: Mapping[str, BehaviourRecord]

    def as_dict(self) -> dict[str, Any]:
        """Ready for `json.dumps`: floats rounded to four digits, infinite ones as "Infinity"."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    def to_json(self) -> str:
        """One line of strict JSON."""
        return json.dumps(self.as_dict(), allow_nan=False)


def compute_record(
    outcomes: Sequence[Outcome],
    *,
    rate: float,
    burst: float,
    denied: int,
    failed: int,
    denials_s: Sequence[float],
    admissions_s: Sequence[float],
    leaked_permits: int | None = None,
    reasons: Sequence[str] = (),
    ideal_s: float | None = None,
) -> Record:
    """Compute the record.

    Args:
        outcomes: one per client that was cut off.
        rate: admissions per second the fleet may do, more than 0.
        burst: admissions at once.
        denied: number of orderly denials.
        failed: number of failed tries.
        denials_s: latency of each denial.
        admissions_s: moment of each admission, seconds from the cut, recorded by either side.
        leaked_permits: see above.
        reasons: why the run is not valid; none: it is.
        ideal_s: in place of the one above, for clients that were not cut off in one instant.
    """
    backs = sorted(_forever(outcome.back_s) for outcome in outcomes)
    if ideal_s is None:
        ideal_s = max(0.0, (len(outcomes) - burst) / rate)
    return Record(
        clients=len(outcomes),
        rate=rate,
        burst=burst,
        ideal_s=ideal_s,
        t95_s=percentile(backs, 95),
        t100_s=percentile(backs, 100),
        recovery_ratio=_recovery_ratio(outcomes, ideal_s),
        attempts_per_client=_mean([outcome.attempts for outcome in outcomes]),
        peak_admitted_per_s=_peak(admissions_s, burst),
        denied=denied,
        failed=failed,
        denial_p99_ms=percentile(sorted(denials_s), 99) * 1e3 if len(denials_s) else None,
        leaked_permits=leaked_permits,
        valid=not reasons,
        reasons=tuple(reasons),
        behaviours=_behaviours(outcomes),
    )


def disagreements(server: ServerCounts, *, tries: int, admitted: int, denied: int) -> list[str]:
    """Compare the server's counts with the clients'; empty if they agree.

    A try without an orderly answer may have been anything to the server, so that many may differ.
    """
    unknown = tries - admitted - denied
    unanswered = f"{counted(unknown, 'try', 'tries')} had no orderly answer"
    pairs = (("admission", server.admitted, admitted), ("denial", server.denied, denied))
    return [
        f"the server counted {counted(theirs, what)}, the clients {ours:,} ({unanswered})"
        for what, theirs, ours in pairs
        if theirs is not None and abs(theirs - ours) > unknown
    ]


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Nearest-rank percentile of sorted values: always one of them; 0.0 of none."""
    if not ordered:
        return 0.0
    rank = math.ceil(len(ordered) * percent / 100)
    return ordered[max(rank, 1) - 1]


def _recovery_ratio(outcomes: Sequence[Outcome], ideal_s: float) -> float | None:
    if any(outcome.back_s is None for outcome in outcomes):
        return math.inf
    obedient = [_forever(outcome.back_s) for outcome in outcomes if outcome.behaviour == OBEDIENT]
    return max(obedient) / ideal_s if obedient and ideal_s > 0 else None


def _peak(admissions_s: Sequence[float], burst: float) -> float:
    seconds = Counter(math.floor(moment) for moment in admissions_s)
    first = max(0.0, seconds.pop(0, 0) - burst)
    return max(chain((first,), seconds.values()))


def _behaviours(outcomes: Sequence[Outcome]) -> dict[str, BehaviourRecord]:
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(outcome.behaviour, []).append(outcome)
    return {name: _behaviour(group) for name, group in sorted(groups.items())}


def _behaviour(group: Sequence[Outcome]) -> BehaviourRecord:
    waits = sorted(_forever(outcome.wait_s) for outcome in group)
    return BehaviourRecord(
        clients=len(group),
        back=sum(outcome.back_s is not None for outcome in group),
        attempts_per_client=_mean([outcome.attempts for outcome in group]),
        wait_p50_s=percentile(waits, 50),
        wait_max_s=waits[-1],
    )


def _forever(seconds: float | None) -> float:
    return math.inf if seconds is None else seconds


def _mean(counts: Sequence[int]) -> float:
    return sum(counts) / len(counts) if counts else 0.0


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, float):
        return round(value, _DIGITS) if math.isfinite(value) else "Infinity"
    return value
