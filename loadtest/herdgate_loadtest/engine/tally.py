"""What the clients recorded since a phase of the run began: since the first dial, or since the cut.

Rules: counts and moments only, no judgement (`herdgate_loadtest.engine.record` does that); a try costs some 10 bytes,
so that a million of them fit.
"""

import math
from array import array
from collections import Counter

__all__ = ["Tally"]

_MOST_LABELS = 50


class Tally:
    """One phase.

    Attributes:
        began: monotonic seconds.
        tries: dials.
        admitted: admissions, those lost again included.
        denied: orderly denials.
        failed: tries with neither admission nor denial.
        lost: open sockets that ended unasked.
        answers: what the tries came to: `101`, `429 rate`, `reset`, ...
        denials_s: latency of each denial, from the intended moment of its try.
        ended_admissions: moments of admission of sockets that were lost again.
    """

    def __init__(self, began: float) -> None:
        self.began = began
        self.tries = 0
        self.admitted = 0
        self.denied = 0
        self.failed = 0
        self.lost = 0
        self.answers: Counter[str] = Counter()
        self.denials_s = array("f")
        self.ended_admissions = array("d")
        self._tries_in: Counter[int] = Counter()

    def tried(self, now: float) -> None:
        """A client dials."""
        self.tries += 1
        self._tries_in[math.floor(now - self.began)] += 1

    def tries_per_s(self, now: float) -> int:
        """Dials in the last whole second since the phase began."""
        return self._tries_in[math.floor(now - self.began) - 1]

    def answered(self, label: str) -> None:
        """Count an answer. Labels come from the server: the fifty first ones are kept, the rest is `other`."""
        self.answers[label if label in self.answers or len(self.answers) < _MOST_LABELS else "other"] += 1
