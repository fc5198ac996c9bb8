"""What a round is played on: the fleet, what is known of it, and the picture that is drawn of it."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NoReturn, TypeVar

from herdgate_loadtest.demo.leased.ledger import Ledger
from herdgate_loadtest.demo.leased.view import LeasedView, Scene
from herdgate_loadtest.demo.watched import beside
from herdgate_loadtest.engine import Crowd
from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.owned.fleet import OwnedFleet
from herdgate_loadtest.owned.gateway import OwnedGateway
from herdgate_loadtest.owned.worker import OwnedWorker
from herdgate_loadtest.servers.lease_table import shard_of

__all__ = ["Stage"]

_LOOK_S = 0.1
_STILL_S = 7.0  # owners give to one that has joined once it has been there for 6 s, and then twice a second
_READY_S = 90.0
_OWNED_S = 30.0
_T = TypeVar("_T")


class Stage:
    """See above.

    Attributes:
        fleet: the processes.
        ledger: who owns what.
    """

    def __init__(self, fleet: OwnedFleet, ledger: Ledger, view: LeasedView) -> None:
        self.fleet = fleet
        self.ledger = ledger
        self._view = view
        self._killed: set[str] = set()
        self._killed_at: float | None = None

    async def during(
        self, phase: str, work: Coroutine[Any, Any, _T], crowd: Crowd | None = None, *, is_recovery: bool = False
    ) -> _T:
        """Draw a picture of a phase until it is over."""
        scene = partial(self._scene, phase, crowd, is_recovery=is_recovery)
        return await beside(self._view.watch(scene, stays=is_recovery), work)

    async def bring_back(self) -> None:
        """Start who was killed, and wait until shards are spread and gateways ready.

        Raises:
            CrowdError: that takes too long.
        """
        for worker in self.fleet.workers.values():
            if worker.name in self._killed:
                await _until(worker.is_over, f"{worker.name} is over")
                worker.start()
        for gateway in self.fleet.gateways:
            if not gateway.is_up:
                gateway.start()
        self._killed.clear()
        self._killed_at = None
        await _until(self._is_spread, "the shards are spread over the workers")
        for gateway in self.fleet.gateways:
            await _until(gateway.is_ready, f"{gateway.name} is ready")

    def clients_of(self, worker: OwnedWorker, herd: int) -> int:
        """How many of the crowd are its own."""
        return sum(self.ledger.owner_of(shard_of(f"c{number}")) == worker.name for number in range(herd))

    def crash(self, worker: OwnedWorker) -> None:
        """Kill it."""
        self._killed.add(worker.name)
        self._killed_at = worker.crash()
        self.ledger.lose(worker.name)

    def kill(self, gateway: OwnedGateway) -> None:
        """The same."""
        self._killed_at = None  # shards keep their owners
        gateway.kill()

    async def owned_again(self) -> float:
        """Seconds from the kill of a worker until every shard had an owner again; infinite: it still has none."""
        end = time.monotonic() + _OWNED_S
        while (owned_s := self._owned_s()) is None:
            if time.monotonic() > end:
                return math.inf
            await asyncio.sleep(_LOOK_S)
        return owned_s

    async def admitted_at(self, since: float) -> list[float]:
        """The moments of all admissions since `since` as the workers that were not killed saw them, monotonic seconds.

        Raises:
            CrowdError: one of them does not answer.
        """
        living = [worker for worker in self.fleet.workers.values() if worker.name not in self._killed]
        seen = await asyncio.gather(*(worker.seen(since) for worker in living))
        return [came.at for each in seen for came in each]

    async def watch(self) -> NoReturn:
        """Watch over the processes while they run.

        Raises:
            CrowdError: one has ended that was not killed.
        """
        while True:
            for worker in self.fleet.workers.values():
                if worker.name in self._killed:
                    worker.is_over()  # its guardian ends too, a moment later
            self.fleet.check()
            await asyncio.sleep(_LOOK_S)

    def _is_spread(self) -> bool:
        is_still = time.monotonic() - self.ledger.moved_at > _STILL_S
        return is_still and self.ledger.is_spread(len(self.fleet.workers))

    def _owned_s(self) -> float | None:
        whole_at, killed_at = self.ledger.whole_at, self._killed_at
        return None if whole_at is None or killed_at is None else whole_at - killed_at

    def _scene(self, phase: str, crowd: Crowd | None, *, is_recovery: bool) -> Scene:
        names = self.fleet.workers
        return Scene(
            phase,
            is_recovery=is_recovery,
            workers={name: None if name in self._killed else self.ledger.shards_of(name) for name in names},
            gateways={gateway.name: gateway.is_up for gateway in self.fleet.gateways},
            unowned=self.ledger.unowned,
            owned_s=self._owned_s(),
            crowd=None if crowd is None else crowd.snapshot(),
        )


async def _until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + _READY_S
    while not condition():
        if time.monotonic() > end:
            raise CrowdError(f"after {_READY_S:g} s it is still not so that {what}: start the demo again")
        await asyncio.sleep(_LOOK_S)
