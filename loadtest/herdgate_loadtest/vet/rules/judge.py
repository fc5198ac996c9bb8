"""Asks every rule about a client."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from herdgate_loadtest.vet.model import Client
from herdgate_loadtest.vet.rules.rule import Rule, Severity
from herdgate_loadtest.vet.rules.table import RULES

__all__ = ["Finding", "findings"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found; `detail` has the numbers."""

    rule: str
    severity: Severity
    detail: str
    reason: str
    fix: str


def findings(client: Client, rules: Sequence[Rule] = RULES) -> tuple[Finding, ...]:
    """What the rules find, errors first. A client that never comes back is no herd: nothing."""
    if client.max_retries == 0:
        return ()
    found = [finding for rule in rules for finding in _asked(rule, client)]
    return tuple(sorted(found, key=lambda finding: finding.severity))


def _asked(rule: Rule, client: Client) -> Iterator[Finding]:
    fault, is_said = rule.fault(client), not rule.settings.isdisjoint(client.said)
    if fault is not None:
        severity = rule.severity if is_said and not rule.spares(client) else "warning"
        yield Finding(rule.id, severity, fault, rule.reason, rule.fix)
    elif rule.asks is not None and not is_said:
        yield Finding(rule.id, "warning", f"not said; assumed: {rule.asks}", rule.reason, rule.fix)
