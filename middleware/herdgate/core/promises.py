"""What a calendar remembers of its promises: how many it made and how many were kept, per 100 ms of refill time.

A bucket is closed once what is in it can no longer be kept. Nothing is kept per promise.
"""

from collections.abc import Sequence

from herdgate.core.classes import AdmissionClass

__all__ = ["BUCKET_MS", "ClassHints", "Promises", "hints_of"]

BUCKET_MS = 100

_LEAST_SHOW_RATE = 0.01
_SHOW_RATE_MEMORY = 200  # hints after which an old show rate weighs 1/e


class Promises:
    """Promises of one kind."""

    def __init__(self) -> None:
        self.issued: dict[int, int] = {}
        self.kept: dict[int, int] = {}

    def keep(self, bucket: int) -> int:
        """One more of this bucket was kept; how many of it are still out."""
        kept = self.kept[bucket] = self.kept.get(bucket, 0) + 1
        return self.issued.get(bucket, 0) - kept

    def close(self, before: int, since: int) -> list[tuple[int, int, int]]:
        """Forget the buckets before one, oldest first: each with what was issued and kept.

        Args:
            since: those before it were closed already. It costs what has passed since, or what there is, if less.
        """
        issued = self.issued
        if before - since <= len(issued):
            over = [bucket for bucket in range(since, before) if bucket in issued]
        else:
            over = sorted(bucket for bucket in issued if bucket < before)
        return [(bucket, issued.pop(bucket), self.kept.pop(bucket, 0)) for bucket in over]


class ClassHints(Promises):
    """The hints of one class of arrivals.

    Attributes:
        outstanding: hints given and not yet due.
        show_rate: share of hints that are kept, EWMA.
        allowance: tokens its newcomers may take while a class before it waits.
    """

    def __init__(self, klass: AdmissionClass) -> None:
        super().__init__()
        self.name = klass.name
        self.share = klass.share
        self.outstanding = 0
        self.show_rate = 1.0
        self.allowance = 0.0

    @property
    def expected(self) -> float:
        """Hints outstanding that will be kept, as far as can be told."""
        return self.outstanding * self.least_show_rate

    @property
    def least_show_rate(self) -> float:
        """The show rate to count with: however many stay away, hints do not all fall on one moment."""
        return self.show_rate if self.show_rate > _LEAST_SHOW_RATE else _LEAST_SHOW_RATE

    def settle(self, before: int, since: int) -> None:
        """Learn from the buckets before one; see `close`."""
        for _, issued, kept in self.close(before, since):
            self.outstanding = max(0, self.outstanding - (issued - kept))
            weight = 1 - (1 - 1 / _SHOW_RATE_MEMORY) ** issued
            self.show_rate += (kept / issued - self.show_rate) * weight

    def refill(self, tokens: float, most: float) -> None:
        """Its share of `tokens` that have accrued; one second of its share of the rate `most` at a time."""
        self.allowance = min(max(1.0, most * self.share), self.allowance + tokens * self.share)

    def spend(self) -> None:
        """One token or slot went to the class."""
        self.allowance = max(0.0, self.allowance - 1)


def hints_of(classes: Sequence[AdmissionClass], before: Sequence[ClassHints] = ()) -> list[ClassHints]:
    """The hints of these classes; those of a name that was there `before` go on."""
    known = {hints.name: hints for hints in before}
    made = []
    for klass in classes:
        hints = known.get(klass.name) or ClassHints(klass)
        hints.share = klass.share
        made.append(hints)
    return made
