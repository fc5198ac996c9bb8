"""Slots: contenders take turns, so that whatever else this machine does meets all of them.

The value of a slot is what was completed per CPU second of the contender's tree of processes: it does not depend on how
much of the machine the contender gets, only on what it does with it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from herdgate_loadtest.bench.sides.accounts import cpu_clocks, cpu_s_since
from herdgate_loadtest.bench.sides.contenders import PEERS, Contender, installed
from herdgate_loadtest.bench.sides.outcome import Outcome

__all__ = ["LEAST_DONE", "Slot", "available", "fill", "measured"]

LEAST_DONE = 100
"""What a slot has to complete, for its value to prove something."""

_SETTLE_S = 0.02  # the last closes


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot of one contender.

    Attributes:
        done: completed and right.
        cpu_s: CPU seconds of the tree.
        took_s: seconds.
        faults: what was not right.
    """

    done: int
    cpu_s: float
    took_s: float
    faults: Sequence[str] = ()

    def reasons(self, name: str) -> list[str]:
        """Why it proves nothing."""
        reasons = [f"{name}: {fault}" for fault in self.faults]
        if self.done < LEAST_DONE:
            reasons.append(f"{name}: only {self.done} completed in a slot: this machine is too busy")
        return reasons


def available(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Those that can be measured here, and those that are not installed."""
    absent = [name for name in names if name in PEERS and installed(name) is None]
    return [name for name in names if name not in absent], absent


def measured(contender: Contender, work: Callable[[], tuple[int, Sequence[str]]]) -> Slot:
    """One slot. `work` tells how much was completed, and what was not right.

    Raises:
        CrowdError: a process of the contender has ended.
    """
    clocks, began = cpu_clocks(contender.pid), time.monotonic()
    done, faults = work()
    time.sleep(_SETTLE_S)
    return Slot(done, cpu_s_since(contender.pid, clocks), time.monotonic() - began, faults)


def fill(
    outcome: Outcome,
    contenders: Sequence[Contender],
    slots: int,
    measure: Callable[[Contender], Slot],
    prefix: str = "",
) -> None:
    """Measure slot by slot, all contenders in turn, after one of each that does not count."""
    for number in range(slots + 1):
        for contender in contenders:
            slot, name = measure(contender), f"{prefix}{contender.name}"
            outcome.spoiled(slot.reasons(name))
            if number:
                outcome.add(name, slot.done / max(slot.cpu_s, 1e-9))
                outcome.details[f"{name}_cores"] = slot.cpu_s / slot.took_s
