"""Machines that go wrong: clocks are off, processes stop and crash, requests are lost, late or repeated."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from typing import Any, TypeVar

from herdgate_gateway.leases.acts import Write
from herdgate_gateway.leases.rows import Item, Key
from herdgate_gateway.leases.table import Outcome, TableError, Unknown
from tests.herdgate_gateway.leases.simulation.oracle import Oracle

__all__ = ["Faults", "Machine"]

Result = TypeVar("Result")

TIMEOUT_S = 0.5
"""After so long a request is given up; it may still be carried out."""


class Faults:
    """What goes wrong with requests, while it does.

    Attributes:
        share: of requests that something happens to.
        away: nothing is answered, and nothing is carried out.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.share = 0.0
        self.away = False

    def strike(self) -> str:
        """What happens to one request."""
        if self.away:
            return "refused"
        if self.rng.random() >= self.share:
            return "none"
        return self.rng.choice(["lost", "late", "repeated", "reply lost", "refused"])


class Machine:
    """One process and its clock.

    Args:
        offset_s: what its clock shows at the beginning.
        pace: of its clock; 1.0 is exact.
    """

    def __init__(self, name: str, oracle: Oracle, faults: Faults, *, offset_s: float, pace: float) -> None:
        self.name, self._oracle, self._faults = name, oracle, faults
        self._offset_s, self._pace = offset_s, pace
        self._goes_on = asyncio.Event()
        self._goes_on.set()
        self._tasks: set[asyncio.Task[Any]] = set()

    # A clock.

    def now(self) -> float:
        """What its clock shows."""
        return self._offset_s + asyncio.get_running_loop().time() * self._pace

    async def sleep(self, seconds: float) -> None:
        """So long by its clock, and as long as it stands still."""
        await asyncio.sleep(seconds / self._pace)
        await self._goes_on.wait()

    # A process.

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run something on it until it ends or the machine crashes."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def stand_still(self) -> None:
        """SIGSTOP: what is in flight arrives, nothing more is done."""
        self._goes_on.clear()

    def go_on(self) -> None:
        """SIGCONT."""
        self._goes_on.set()

    async def crash(self) -> None:
        """SIGKILL: what is in flight arrives."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._goes_on.set()

    @property
    def is_going(self) -> bool:
        """False while it stands still."""
        return self._goes_on.is_set()

    # A table.

    async def write(self, write: Write) -> Outcome:
        """Over a network that may do anything with it, once or twice."""
        kind, rng = self._faults.strike(), self._faults.rng
        await self._travel()
        outcome: Outcome = Unknown("no answer")
        if kind in {"none", "repeated", "reply lost"}:
            outcome = await self._oracle.write(write)
        if kind in {"late", "repeated"}:
            self._oracle.later(rng.uniform(0, 20), write)
        if kind not in {"none", "repeated"}:
            outcome = Unknown(kind)
            await asyncio.sleep(0.01 if kind == "refused" else TIMEOUT_S)
        return await self._arrive(outcome)

    async def read(self, key: Key, *, strong: bool) -> Item | None:
        """As `write`."""
        return await self._ask(lambda: self._oracle.table.read(key, strong=strong))

    async def read_many(self, keys: Collection[Key], *, strong: bool) -> Mapping[Key, Item]:
        """As `write`."""
        return await self._ask(lambda: self._oracle.table.read_many(keys, strong=strong))

    async def query(self, pk: str, *, prefix: str = "", strong: bool) -> list[Item]:
        """As `write`."""
        return await self._ask(lambda: self._oracle.table.query(pk, prefix=prefix, strong=strong))

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _ask(self, ask: Callable[[], Awaitable[Result]]) -> Result:
        kind = self._faults.strike()
        await self._travel()
        answer = await ask()
        if kind != "none":
            await self._arrive(None)
            raise TableError(kind)
        return await self._arrive(answer)

    async def _travel(self) -> None:
        await asyncio.sleep(self._faults.rng.uniform(0.0005, 0.005))

    async def _arrive(self, answer: Result) -> Result:
        await self._travel()
        await self._goes_on.wait()
        return answer
