"""Sees every write as it is carried out, and knows what must never happen."""

import asyncio
from collections.abc import Callable
from typing import Any

from herdgate_gateway.leases.acts import Write
from herdgate_gateway.leases.conditions import All, AtMost, Condition, Either
from herdgate_gateway.leases.memory import MemoryLeases
from herdgate_gateway.leases.rows import Item, worker_key
from herdgate_gateway.leases.table import Done, Outcome

__all__ = ["Oracle"]


class Oracle:
    """The table, and a judge beside it.

    Attributes:
        violations: what has happened that must never happen.
        has_right: True for a life whose right runs at this moment.
        effects: connection writes that were accepted.
        deaths: lives that were declared dead.
    """

    def __init__(self) -> None:
        self.table = MemoryLeases()
        self.violations: list[str] = []
        self.effects = self.deaths = 0
        self.has_right: Callable[[str], bool] = lambda inc: False
        self._acted: dict[str, int] = {}
        self._epochs: dict[str, int] = {}
        self._later: set[asyncio.Task[Any]] = set()

    async def write(self, write: Write) -> Outcome:
        """Carry one out."""
        outcome = await self.table.write(write)
        if isinstance(outcome, Done):
            self._judge(write, outcome.item)
        return outcome

    def later(self, seconds: float, write: Write) -> None:
        """Carry one out after so long, whoever still wants it."""

        async def arrive() -> None:
            await asyncio.sleep(seconds)
            await self.write(write)

        task = asyncio.ensure_future(arrive())
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    def lose_worker(self, fleet: str, worker: str) -> None:
        """Somebody deletes the row of a worker."""
        key = worker_key(fleet, worker)
        self.table._partitions.get(key.pk, {}).pop(key.sk, None)

    def _judge(self, write: Write, item: Item) -> None:
        if item["sk"] == "@":
            self._judge_epoch(item)
        elif item["sk"].startswith("C#") and "want" not in write.sets:
            self._judge_effect(write, item)
        elif write.sets.get("st") == "DEAD":
            self._judge_death(item)

    def _judge_epoch(self, item: Item) -> None:
        before = self._epochs.get(item["pk"], 0)
        if item["epoch"] <= before:
            self.violations.append(f"{item['pk']}: epoch {item['epoch']} after {before}")
        self._epochs[item["pk"]] = item["epoch"]

    def _judge_effect(self, write: Write, item: Item) -> None:
        self.effects += 1
        epoch, before = _epoch_of(write), self._acted.get(item["sk"], 0)
        if epoch < before:
            self.violations.append(f"{item['sk']}: an effect of epoch {epoch} was accepted after one of {before}")
        self._acted[item["sk"]] = max(epoch, before)

    def _judge_death(self, item: Item) -> None:
        self.deaths += 1
        if self.has_right(item["inc"]):
            self.violations.append(f"{item['inc']} was declared dead while its right ran")


def _epoch_of(write: Write) -> int:
    """The epoch of whoever sent it: a claim sets it, a checkpoint has it in its condition."""
    if "epoch" in write.sets:
        return int(write.sets["epoch"])
    return _limits(write.condition)[0]


def _limits(condition: Condition) -> list[int]:
    if isinstance(condition, AtMost):
        return [condition.value]
    return [limit for part in condition.parts for limit in _limits(part)] if isinstance(condition, All | Either) else []
