"""How fast shards change hands, and what that costs: three workers, 1,024 shards, leases of 3 s.

crash_s          the worker is killed: until every shard of it is served by another one
host_death_s     its guardian too, at the same moment
graceful_p99_s   SIGTERM: for each shard, the time in which nobody served it
write_units_per_s   nothing happens, no checkpoints; each write is a unit
stale_effects    the worker is stopped for 10 s (SIGSTOP) while it acts on connections: effects of its that were
                 accepted after another one had acted
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from herdgate_loadtest.bench.figures import Bound, at_most
from herdgate_loadtest.bench.leases.holder import Holder
from herdgate_loadtest.bench.leases.rows import CONNECTIONS, create_connections
from herdgate_loadtest.bench.sides.outcome import Outcome
from herdgate_loadtest.engine.record import percentile
from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.servers.emulator import emulator
from herdgate_loadtest.servers.lease_table import SHARDS, Place
from herdgate_loadtest.servers.redis import redis_server

__all__ = ["measure"]

_WORKERS = ("worker-1", "worker-2", "worker-3")
_WAIT_S = 60.0
_LOOK_S = 0.02
_PAUSE_S = 10.0
_AFTER_S = 3.0
_EVEN = 0.1
_BOUNDS = {
    "crash_s": at_most(1.5, 0.6),
    "host_death_s": at_most(4.5, 3.6),
    "graceful_p99_s": at_most(0.2, 0.05),
    "write_units_per_s": at_most(5, 3),
    "stale_effects": Bound(0, 0, "0"),
}


@dataclass(frozen=True, slots=True)
class _Plan:
    slots: int
    steady_s: float


_FULL, _FAST = _Plan(3, 20.0), _Plan(1, 5.0)


def measure(*, fast: bool) -> Outcome:
    """Seconds, write units and effects."""
    plan, outcome = _FAST if fast else _FULL, Outcome(_BOUNDS)
    with _fleet() as fleet:
        outcome.add("write_units_per_s", fleet.writes_per_s(plan.steady_s))
        for _ in range(plan.slots):
            outcome.add("crash_s", fleet.lose("worker-1", Holder.crash))
            outcome.add("host_death_s", fleet.lose("worker-2", Holder.die_with_host))
            outcome.add("graceful_p99_s", percentile(sorted(fleet.gaps("worker-3")), 99))
        outcome.add("stale_effects", fleet.stale_effects("worker-1"))
    return outcome


@contextmanager
def _fleet() -> "Iterator[_Fleet]":
    with ExitStack() as stack:
        place = Place(stack.enter_context(emulator()), stack.enter_context(redis_server()).url)
        place.make_table()
        create_connections(place)
        fleet = _Fleet(place)
        stack.callback(fleet.end)
        fleet.come_up()
        yield fleet


class _Fleet:
    """The workers, all of them up between two measurements."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._workers: dict[str, Holder] = {}

    def come_up(self, *, acting: bool = False) -> None:
        """Start who is missing, and wait until the shards are spread evenly."""
        for name in _WORKERS:
            if name not in self._workers:
                self._workers[name] = Holder(self._place, name, CONNECTIONS if acting else ())
        most = SHARDS / len(_WORKERS) * (1 + _EVEN)
        self._wait(lambda: self._is_whole() and max(map(len, self._held())) <= most, "the shards are spread")

    def end(self) -> None:
        for worker in self._workers.values():
            worker.end()

    def writes_per_s(self, seconds: float) -> float:
        """All of them, while nothing happens."""
        time.sleep(_AFTER_S)
        before = sum(worker.writes for worker in self._workers.values())
        time.sleep(seconds)
        return (sum(worker.writes for worker in self._workers.values()) - before) / seconds

    def lose(self, name: str, how: Callable[[Holder], float]) -> float:
        """Seconds until every shard of this worker is served by another one; it is back afterwards."""
        holder = self._workers.pop(name)
        shards = set(holder.held)
        moment = how(holder)
        self._wait(self._is_whole, f"the shards of {name} have found an owner")
        gained = [self._gained(shard) for shard in shards]
        self.come_up()
        return max(gained) - moment

    def gaps(self, name: str) -> list[float]:
        """Seconds without an owner, of each shard of a worker that leaves; it is back afterwards."""
        holder = self._workers.pop(name)
        shards = set(holder.held)
        holder.leave()
        self._wait(self._is_whole, f"the shards of {name} have found an owner")
        gaps = [max(0.0, self._gained(shard) - holder.lost[shard]) for shard in shards]
        self.come_up()
        return gaps

    def stale_effects(self, name: str) -> float:
        """Effects of a worker that is stopped for a while, and that were accepted though others own its shards."""
        self._restart_acting()
        holder = self._workers[name]
        self._wait(lambda: len(holder.acted) > len(CONNECTIONS), f"{name} acts")
        mine = {connection for connection, _, _ in holder.acted}
        holder.pause()
        time.sleep(_PAUSE_S)
        others = {
            connection for other in self._workers.values() if other is not holder for connection, _, _ in other.acted
        }
        holder.resume()
        time.sleep(_AFTER_S)
        if not mine & others:
            raise CrowdError(f"nobody took over from {name} while it was stopped: run it again")
        return float(sum(row_epoch > epoch for _, epoch, row_epoch in holder.acted))

    def _restart_acting(self) -> None:
        for worker in self._workers.values():
            worker.leave()
        self._workers = {}
        self.come_up(acting=True)

    def _held(self) -> list[dict[int, int]]:
        return [worker.held for worker in self._workers.values()]

    def _is_whole(self) -> bool:
        return sum(map(len, self._held())) == SHARDS

    def _gained(self, shard: int) -> float:
        return max(worker.gained.get(shard, 0.0) for worker in self._workers.values())

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + _WAIT_S
        while not condition():
            if time.monotonic() > end:
                raise CrowdError(f"after {_WAIT_S:g} s it is still not so that {what}: run it again")
            time.sleep(_LOOK_S)
