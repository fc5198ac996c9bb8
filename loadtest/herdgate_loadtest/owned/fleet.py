"""A fleet with leases as a whole: started, looked at, and ended together.

with owned_fleet(rate=500.0) as fleet:
    fleet.workers["worker-1"].crash()
    fleet.gateways[0].kill()
    fleet.owners()
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.owned.gateway import OwnedGateway
from herdgate_loadtest.owned.worker import OwnedWorker
from herdgate_loadtest.servers.emulator import emulator
from herdgate_loadtest.servers.lease_table import SHARDS, Place
from herdgate_loadtest.servers.redis import redis_server

__all__ = ["OwnedFleet", "owned_fleet"]

_WAIT_S = 90.0
_LOOK_S = 0.25
_JOINED_S = 7.0  # the others give to one that has joined once it has been there for 6 s
_STILL_S = 1.5  # they give some twice a second
_LEAST = 0.75  # of an even part; by chance one has a tenth less


@dataclass(frozen=True, slots=True)
class OwnedFleet:
    """A running fleet.

    Attributes:
        place: where its members meet.
        workers: by name, in order.
        gateways: in order; they admit one rate together.
    """

    place: Place
    workers: Mapping[str, OwnedWorker]
    gateways: Sequence[OwnedGateway]

    @property
    def members(self) -> list[OwnedWorker | OwnedGateway]:
        """Workers and gateways, up or not."""
        return [*self.workers.values(), *self.gateways]

    def owners(self) -> dict[str, frozenset[int]]:
        """The shards of each worker that lives. It takes some 50 ms, in which nothing else of this thread goes on.

        Raises:
            CrowdError: the table does not answer.
        """
        return self.place.owners()

    def check(self) -> None:
        """See that everybody runs who should.

        Raises:
            CrowdError: one of them has ended.
        """
        for member in self.members:
            member.check()

    def is_whole(self) -> bool:
        """Every shard has an owner that lives, and every gateway that is up is ready.

        Right after a crash the table does not know of it yet.
        """
        owned = sum(map(len, self.owners().values()))
        return owned == SHARDS and all(gateway.is_ready() for gateway in self.gateways if gateway.is_up)

    def wait_until_whole(self) -> None:
        """Wait for that; it may take 10 s after a start.

        Raises:
            CrowdError: it does not come, or a member has ended.
        """
        self._wait(self.is_whole, "every shard has an owner, and every gateway is ready")

    def wait_until_settled(self) -> None:
        """Wait until the shards are spread over all workers that are up, and move no more; 10 s or more after a start.

        Raises:
            CrowdError: as `wait_until_whole`.
        """
        settling = _Settling(self)
        self._wait(settling.is_over, "the shards are spread over the workers")

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + _WAIT_S
        while not condition():
            self.check()
            if time.monotonic() > end:
                raise CrowdError(f"after {_WAIT_S:g} s it is still not so that {what}: this machine is too busy")
            time.sleep(_LOOK_S)


class _Settling:
    """Sees shards move."""

    def __init__(self, fleet: OwnedFleet) -> None:
        self._fleet = fleet
        self._up = {worker.name for worker in fleet.workers.values() if worker.is_up}
        self._joined: float | None = None
        self._owners: dict[str, frozenset[int]] = {}
        self._moved = time.monotonic()

    def is_over(self) -> bool:
        owners, now = self._fleet.owners(), time.monotonic()
        if owners != self._owners:
            self._owners, self._moved = owners, now
        if self._joined is None and self._up <= owners.keys():
            self._joined = now
        if self._joined is None or now < max(self._joined + _JOINED_S, self._moved + _STILL_S):
            return False
        least = _LEAST * SHARDS / len(self._up)
        return min(map(len, owners.values())) >= least and self._fleet.is_whole()


@contextmanager
def owned_fleet(
    *, rate: float, workers: int = 3, gateways: int = 2, capacity: int = 4_000, settled: bool = False
) -> Iterator[OwnedFleet]:
    """Start a fleet, and wait until every shard has an owner; it ends with the block.

    Args:
        rate: admissions per second; the burst is a twentieth of a second of it.
        capacity: sockets of each worker.
        settled: wait until the shards are spread over the workers, too.

    Raises:
        ConfigurationError, PreflightError: redis-py, redis-server or ministack is missing.
        CrowdError: something does not start.
    """
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="herdgate-")))
        place = Place(stack.enter_context(emulator()), redis.url)
        place.make_table()
        fleet = OwnedFleet(
            place,
            {name: OwnedWorker(name, place, capacity) for name in _names("worker", workers)},
            [OwnedGateway(name, folder, place, rate) for name in _names("gateway", gateways)],
        )
        for member in fleet.members:
            stack.enter_context(member)
        if settled:
            fleet.wait_until_settled()
        else:
            fleet.wait_until_whole()
        yield fleet


def _names(what: str, count: int) -> list[str]:
    return [f"{what}-{number}" for number in range(1, count + 1)]
