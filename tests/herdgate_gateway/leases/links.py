"""A way to the table that does what a test says with the writes it names, and keeps a record of them."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from herdgate_gateway.leases.acts import Write
from herdgate_gateway.leases.rows import Item, Key
from herdgate_gateway.leases.table import Outcome, Unknown
from tests.herdgate_gateway.leases.simulation.machines import TIMEOUT_S, Machine
from tests.herdgate_gateway.leases.simulation.oracle import Oracle

__all__ = ["LOST", "UNHEARD", "Fault", "Kind", "Link", "again", "kind_of", "late", "moment"]

Kind = Literal["register", "beat", "fence", "state", "tombstone", "ownership", "claim", "checkpoint"]


def moment() -> float:
    """True time: seconds since the test began."""
    return asyncio.get_running_loop().time()


def kind_of(write: Write) -> Kind:
    """Which act it is."""
    sets = write.sets
    if write.key.sk == "@":
        return "ownership"
    if write.key.sk.startswith("C#"):
        return "claim" if "epoch" in sets else "checkpoint"
    if "hb" in write.adds:
        return "beat"
    if "inc" in sets:
        return "register" if "lease_ms" in sets else "tombstone"
    return "fence" if "name='hb'" in repr(write.condition) else "state"


@dataclass(frozen=True, slots=True)
class Fault:
    """What becomes of one write.

    Attributes:
        now: it is carried out at once.
        later_s: it is carried out after so long, whatever else; None: it is not.
        answers: what came of it is told.
        takes_s: until the answer is here, or until it is given up.
    """

    now: bool = True
    later_s: float | None = None
    answers: bool = True
    takes_s: float = 0.0


NONE = Fault()
LOST = Fault(now=False, answers=False, takes_s=TIMEOUT_S)
UNHEARD = Fault(answers=False, takes_s=TIMEOUT_S)


def late(seconds: float) -> Fault:
    """Given up, and carried out after so long."""
    return Fault(now=False, later_s=seconds, answers=False, takes_s=TIMEOUT_S)


def again(seconds: float) -> Fault:
    """Done, and once more after so long."""
    return Fault(later_s=seconds)


class Link:
    """The way of one worker to the table.

    Attributes:
        sent: every write, with the moment it was sent at.
        read_keys: every row that was asked for, in that order, with the moment; of a query its partition.
        strong: of each read, whether it was a strong one.
    """

    def __init__(self, machine: Machine, oracle: Oracle) -> None:
        self._machine, self._oracle = machine, oracle
        self._next: dict[Kind, list[Fault]] = {}
        self._always: dict[Kind, Fault] = {}
        self._meanwhile: dict[str, Callable[[], Awaitable[None]]] = {}
        self.sent: list[tuple[float, Write]] = []
        self.read_keys: list[tuple[float, Key]] = []
        self.strong: list[bool] = []

    def strike(self, kind: Kind, *faults: Fault) -> None:
        """This happens to the next writes of a kind, one after the other."""
        self._next.setdefault(kind, []).extend(faults)

    def strike_all(self, kind: Kind, fault: Fault | None) -> None:
        """This happens to all others of a kind from now on; None: nothing does."""
        self._always[kind] = fault or NONE

    def meanwhile(self, partition: Literal["S", "W"], act: Callable[[], Awaitable[None]]) -> None:
        """Somebody does this right before the next read of a shard, or of a worker, is answered."""
        self._meanwhile[partition] = act

    def kinds(self) -> Counter[Kind]:
        """How many writes of each kind were sent."""
        return Counter(kind_of(write) for _, write in self.sent)

    def writes(self, kind: Kind) -> list[Write]:
        """Those of one kind."""
        return [write for _, write in self.sent if kind_of(write) == kind]

    def moments(self, kind: Kind) -> list[float]:
        """When those of one kind were sent."""
        return [at for at, write in self.sent if kind_of(write) == kind]

    async def write(self, write: Write) -> Outcome:
        """As the script says."""
        kind = kind_of(write)
        self.sent.append((moment(), write))
        waiting = self._next.get(kind)
        fault = waiting.pop(0) if waiting else self._always.get(kind, NONE)
        outcome = await self._machine.write(write) if fault.now else Unknown("lost on its way")
        if fault.later_s is not None:
            self._oracle.later(fault.later_s, write)
        if fault.takes_s:
            await self._machine.sleep(fault.takes_s)
        return outcome if fault.answers else Unknown("no answer")

    async def read(self, key: Key, *, strong: bool) -> Item | None:
        """One row."""
        await self._note([key], strong)
        return await self._machine.read(key, strong=strong)

    async def read_many(self, keys: Collection[Key], *, strong: bool) -> Mapping[Key, Item]:
        """Some rows."""
        await self._note(keys, strong)
        return await self._machine.read_many(keys, strong=strong)

    async def query(self, pk: str, *, prefix: str = "", strong: bool) -> list[Item]:
        """A partition."""
        await self._note([Key(pk, "")], strong)
        return await self._machine.query(pk, prefix=prefix, strong=strong)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _note(self, keys: Collection[Key], strong: bool) -> None:
        self.read_keys += ((moment(), key) for key in keys)
        self.strong += [strong] * len(keys)
        for key in keys:
            act = self._meanwhile.pop(key.pk.split("#")[1], None)
            if act is not None:
                await act()
