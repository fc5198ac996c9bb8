"""Workers of the benchmark as processes: each reports its capacity to the fleet, and is asked what it held."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from herdgate_loadtest.bench.crowds import until
from herdgate_loadtest.bench.echo import FLEET
from herdgate_loadtest.demo.process import HOST, Process, listening
from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.servers.redis import RedisServer

__all__ = ["Worker", "all_report", "run_workers"]

_READY_S = 30.0


class Worker:
    """A running worker; see `herdgate_loadtest.bench.worker`.

    Attributes:
        name: what people read.
        url: where gateways connect.
        capacity: sockets it takes.
    """

    def __init__(self, process: Process, capacity: int) -> None:
        self._process = process
        self.name = process.name
        self.url = f"ws://{HOST}:{process.port}"
        self.capacity = capacity

    async def most(self, since: float = 0.0) -> int:
        """Sockets, pending and open, at its fullest since `since`, monotonic seconds; 0 if nobody has come since.

        Raises:
            CrowdError: it does not answer.
        """
        most: int = (await self._process.ask(f"/stats?since={since!r}"))["most"]
        return most


@contextmanager
def run_workers(capacities: Sequence[int], redis: RedisServer) -> Iterator[list[Worker]]:
    """Start a worker of each capacity; they end with the block."""
    with ExitStack() as stack:
        yield [
            Worker(stack.enter_context(_start(number, redis, capacity)), capacity)
            for number, capacity in enumerate(capacities, 1)
        ]


async def all_report(workers: Sequence[Worker], redis: RedisServer) -> None:
    """Wait until every worker has reported: before, gateways believe that it has room for all.

    Raises:
        CrowdError: one of them does not.
    """
    reports = [f"{{herdgate:{FLEET}}}:worker:{worker.url}" for worker in workers]
    if await until(lambda: redis.command("EXISTS", *reports) == len(reports), _READY_S) is None:
        raise CrowdError(f"the workers did not report to Redis in {_READY_S:g} s: run it again")


def _start(number: int, redis: RedisServer, capacity: int) -> Process:
    with listening() as listener:
        url, descriptor = f"ws://{HOST}:{listener.getsockname()[1]}", listener.fileno()
        arguments = ["herdgate_loadtest.bench.worker", redis.url, url, str(capacity), str(descriptor)]
        return Process(f"worker {number}", arguments, [listener])
