"""Plays a script on a crowd, and has it recorded from the first cut on.

those who are there come up -> what comes before the first cut -> a new phase -> the rest, until all are in
"""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from herdgate_loadtest.counted import counted
from herdgate_loadtest.engine import Attempt, Crowd, CrowdConfig, Record
from herdgate_loadtest.engine.play import Step
from herdgate_loadtest.engine.recorded import Recorded
from herdgate_loadtest.replay.ideal import beyond_bucket, ideal_s
from herdgate_loadtest.replay.scaling import Script

__all__ = ["BUCKET_S", "Result", "replay"]

BUCKET_S = 0.5
"""Width of the buckets in which answers are counted, seconds."""


@dataclass(frozen=True, slots=True)
class Result:
    """What came of it.

    Attributes:
        record: the result record, from the first cut on.
        recorded: what it was computed from.
        cuts_s: moments of the cuts and of newcomers, seconds from the first cut.
        beyond_bucket: see `herdgate_loadtest.replay.ideal.beyond_bucket`.
        missed: steps that had nothing to do.
        series: tries by outcome and bucket.
    """

    record: Record
    recorded: Recorded
    cuts_s: Sequence[float]
    beyond_bucket: float
    missed: Mapping[str, int]
    series: Mapping[str, Mapping[int, int]]

    def as_dict(self) -> dict[str, Any]:
        """Ready for `json.dumps`."""
        return self.record.as_dict() | {
            "cuts": len(self.cuts_s),
            "beyond_bucket": round(self.beyond_bucket, 1),
            "missed": dict(self.missed),
        }


async def replay(
    script: Script, config: CrowdConfig, *, rate: float, burst: float, ramp: float, deadline_s: float
) -> Result:
    """Play it.

    Args:
        script: what happens; somebody is cut off in it.
        config: of the crowd that it happens to, as many clients as the script has.
        rate: admissions per second the fleet may do.
        burst: admissions at once.
        ramp: clients per second to begin with.
        deadline_s: to come up, on top of the ramp, and after the last step.

    Raises:
        CrowdError: the crowd did not come up.
    """
    first = script.first_cut_s
    assert first is not None
    before = [step for step in script.steps if step.at_s < first]
    after = [step._replace(at_s=step.at_s - first) for step in script.steps if step.at_s >= first]
    counting = _Counting()
    async with Crowd(config, counting.attempt) as crowd:
        await crowd.bring_up_some(script.present, ramp, deadline_s + len(script.present) / ramp)
        began = crowd.begin()
        await crowd.play(before, began=began, deadline_s=max(0.0, first - (before[-1].at_s if before else 0.0)))
        await asyncio.sleep(max(0.0, began + first - time.monotonic()))
        counting.begin(crowd.begin())
        played = await crowd.play(after, began=counting.began, deadline_s=deadline_s)
        await crowd.close()
    return _result(crowd.recorded(), after, counting.series, played.missed, rate=rate, burst=burst)


def _result(
    recorded: Recorded,
    steps: Sequence[Step],
    series: Mapping[str, Mapping[int, int]],
    missed: Mapping[str, int],
    *,
    rate: float,
    burst: float,
) -> Result:
    cuts = [step.at_s for step in steps if step.act != "leave"]
    lost = missed.get("reset", 0) + missed.get("close", 0)
    if lost * 10 > len(cuts):
        many = f"{counted(lost, 'cut')} of {len(cuts):,} met a client that was still outside: the rest is not the trace"
        recorded = replace(recorded, reasons=[*recorded.reasons, many])
    if not recorded.outcomes:
        nobody = "everybody who was cut off had left in the end, so that no return is counted: end the trace earlier"
        recorded = replace(recorded, reasons=[*recorded.reasons, nobody])
    best_s = ideal_s(cuts, rate=rate, burst=burst)
    return Result(
        record=recorded.record(rate=rate, burst=burst, ideal_s=best_s),
        recorded=recorded,
        cuts_s=cuts,
        beyond_bucket=beyond_bucket(recorded.admissions_s, rate=rate, burst=burst),
        missed=missed,
        series=series,
    )


class _Counting:
    """Tries by outcome and time, since a phase began."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.series: dict[str, Counter[int]] = {}

    def begin(self, now: float) -> None:
        """Forget the past."""
        self.began, self.series = now, {}

    def attempt(self, attempt: Attempt) -> None:
        """One more."""
        bucket = int((time.monotonic() - self.began) / BUCKET_S)
        self.series.setdefault(attempt.outcome, Counter())[bucket] += 1
