"""What one crowd recorded of a phase, in a form that travels: crowds in several processes become one record.

Rules: moments are seconds from the beginning of the phase. Where crowds began at different moments, the earliest is the
beginning of all, so whoever was cut off late counts as back late: skew makes figures worse, not better.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from herdgate_loadtest.engine.record import Outcome, Record, ServerCounts, compute_record, disagreements

__all__ = ["Recorded", "together"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """One phase of one crowd, or of several together.

    Attributes:
        began: monotonic seconds.
        outcomes: one per client that was cut off.
        tries: dials.
        admitted: admissions.
        denied: orderly denials.
        failed: tries with neither.
        denials_s: latency of each denial, seconds.
        admissions_s: moment of each admission, seconds from the beginning.
        reasons: why the generator has spoiled the run; none: it has not.
    """

    began: float
    outcomes: Sequence[Outcome]
    tries: int
    admitted: int
    denied: int
    failed: int
    denials_s: Sequence[float]
    admissions_s: Sequence[float]
    reasons: Sequence[str]

    def record(
        self, *, rate: float, burst: float, server: ServerCounts | None = None, ideal_s: float | None = None
    ) -> Record:
        """The result; see `Crowd.record`.

        Args:
            ideal_s: in place of that of a crowd that was cut off in one instant, seconds.
        """
        server = server or ServerCounts()
        moments = self.admissions_s
        if server.admitted_at is not None:
            moments = [moment - self.began for moment in server.admitted_at]
        ours = {"tries": self.tries, "admitted": self.admitted, "denied": self.denied}
        return compute_record(
            self.outcomes,
            rate=rate,
            burst=burst,
            denied=self.denied,
            failed=self.failed,
            denials_s=self.denials_s,
            admissions_s=moments,
            leaked_permits=server.permits,
            reasons=[*self.reasons, *disagreements(server, **ours)],
            ideal_s=ideal_s,
        )

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON and for `of`."""
        return {
            "began": self.began,
            "outcomes": [[who.behaviour, who.attempts, who.back_s, who.wait_s] for who in self.outcomes],
            "tries": self.tries,
            "admitted": self.admitted,
            "denied": self.denied,
            "failed": self.failed,
            "denials_s": list(self.denials_s),
            "admissions_s": list(self.admissions_s),
            "reasons": list(self.reasons),
        }

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> "Recorded":
        """What `as_dict` made."""
        return cls(**{**told, "outcomes": [Outcome(*who) for who in told["outcomes"]]})

    def since(self, began: float) -> "Recorded":
        """The same, counted from another beginning."""
        late_s = self.began - began
        return replace(
            self,
            began=began,
            outcomes=[_later(who, late_s) for who in self.outcomes],
            admissions_s=[moment + late_s for moment in self.admissions_s],
        )


def together(parts: Sequence[Recorded]) -> Recorded:
    """Several crowds as one; at least one."""
    began = min(part.began for part in parts)
    parts = [part.since(began) for part in parts]
    return Recorded(
        began,
        [who for part in parts for who in part.outcomes],
        tries=sum(part.tries for part in parts),
        admitted=sum(part.admitted for part in parts),
        denied=sum(part.denied for part in parts),
        failed=sum(part.failed for part in parts),
        denials_s=[latency for part in parts for latency in part.denials_s],
        admissions_s=[moment for part in parts for moment in part.admissions_s],
        reasons=[reason for part in parts for reason in part.reasons],
    )


def _later(who: Outcome, late_s: float) -> Outcome:
    return who if who.back_s is None else replace(who, back_s=who.back_s + late_s)
