"""Where rules and simulation agree on 1,000 random clients, and where not.

`python -m tests.herdgate_loadtest.vet.agreement` prints it, with an example of each kind of disagreement.

A kind of disagreement is one rule, or one figure, that stood alone against the other side; several at once are named
together.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from herdgate_loadtest.errors import HerdgateError
from herdgate_loadtest.vet.clients import client_in
from herdgate_loadtest.vet.fleet import exceeded, play
from herdgate_loadtest.vet.rules import findings
from tests.herdgate_loadtest.vet.configurations import configuration

__all__ = ["Agreement", "compare"]

SEED = 8
CONFIGURATIONS = 1000


@dataclass
class Agreement:
    """Counts over all clients: both say safe, both say unsafe, and the kinds of disagreement."""

    safe: int = 0
    unsafe: int = 0
    rules_only: Counter[str] = field(default_factory=Counter)
    fleet_only: Counter[str] = field(default_factory=Counter)
    examples: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Part of all clients, 0 to 1, of which both say the same."""
        agreed = self.safe + self.unsafe
        return agreed / (agreed + self.rules_only.total() + self.fleet_only.total())


def compare(seed: int = SEED, count: int = CONFIGURATIONS) -> Agreement:
    """Ask both about `count` clients."""
    rng = random.Random(seed)
    found = Agreement()
    for number in range(count):
        settings = configuration(rng)
        _count(found, settings, number)
    return found


def _count(found: Agreement, settings: dict[str, Any], seed: int) -> None:
    client = client_in({key: (key, value) for key, value in settings.items()}).client
    rules = " + ".join(finding.rule for finding in findings(client) if finding.severity == "error")
    figures = " + ".join(each.figure for each in exceeded(play(client, seed)))
    if rules and figures:
        found.unsafe += 1
    elif not rules and not figures:
        found.safe += 1
    else:
        (found.rules_only if rules else found.fleet_only)[rules or figures] += 1
        found.examples.setdefault(rules or figures, settings)


def _print(found: Agreement) -> None:
    print(f"both safe {found.safe}, both unsafe {found.unsafe}, agreement {100 * found.share:.1f} %")
    for side, kinds in (("rules only", found.rules_only), ("fleet only", found.fleet_only)):
        for kind, count in kinds.most_common():
            print(f"{side:10} {count:4}  {kind}  {found.examples[kind]}")


if __name__ == "__main__":
    try:
        _print(compare())
    except HerdgateError as error:
        raise SystemExit(str(error)) from None
