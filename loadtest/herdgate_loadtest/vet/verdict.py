"""The verdict on one client: what the rules find, what its fleet does, and what to call that."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from herdgate_loadtest.vet.clients import Known
from herdgate_loadtest.vet.fleet import Exceeded, Figures, exceeded, play
from herdgate_loadtest.vet.rules import Finding, findings

__all__ = ["EXIT_CODES", "Unreadable", "Verdict", "Vetted", "vet_client", "worst"]

Verdict = Literal["safe", "unsafe", "unreadable"]
EXIT_CODES = {"safe": 0, "unsafe": 1, "unreadable": 2}


@dataclass(frozen=True, slots=True)
class Vetted:
    """A client that was judged. `source`: the file, or what stands for it."""

    source: str
    known: Known
    findings: tuple[Finding, ...]
    figures: Figures
    exceeded: tuple[Exceeded, ...]

    @property
    def verdict(self) -> Verdict:
        """Unsafe by an error of the rules, or by what the fleet did."""
        return "unsafe" if self.exceeded or any(each.severity == "error" for each in self.findings) else "safe"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A source without settings that could be judged, and every reason for it."""

    source: str
    faults: tuple[str, ...]
    verdict: Verdict = "unreadable"


def vet_client(source: str, known: Known, seed: int) -> Vetted:
    """Judge a client, from both sides."""
    figures = play(known.client, seed)
    return Vetted(source, known, findings(known.client), figures, exceeded(figures))


def worst(results: Sequence[Vetted | Unreadable]) -> Verdict:
    """The worst verdict of several; unreadable is worse than unsafe."""
    return max((result.verdict for result in results), key=EXIT_CODES.__getitem__)
