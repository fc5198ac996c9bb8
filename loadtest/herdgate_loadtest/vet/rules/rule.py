"""What a rule is: a question about a client, with the reason for it and the way out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from herdgate_loadtest.vet.model import Client

__all__ = ["Rule", "Severity"]

Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        id: its name, for reports.
        reason: what happens to a fleet of such clients.
        fix: what to do.
        fault: what is wrong with a client, with its numbers; None: nothing.
        settings: those it reads. None of them said: what it finds is a warning.
        asks: none of them said, and nothing wrong: a warning still, with what is assumed.
        severity: the most it can be.
        spares: whether what it finds in a client is a warning.
    """

    id: str
    reason: str
    fix: str
    fault: Callable[[Client], str | None]
    settings: frozenset[str]
    asks: str | None = None
    severity: Severity = "error"
    spares: Callable[[Client], bool] = lambda _: False
