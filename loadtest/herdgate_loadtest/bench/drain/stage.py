"""Six gateways of one fleet behind a balancer, three of them up; a worker behind them, and a crowd that is in."""

import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from herdgate_loadtest.bench.crowds import until
from herdgate_loadtest.bench.drain.gateways import DrainedGateway, DrainSettings
from herdgate_loadtest.demo.process import Process, listening
from herdgate_loadtest.engine import Attempt, Crowd, CrowdConfig, loopback_sources
from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.servers.children import HOST
from herdgate_loadtest.servers.redis import redis_server

__all__ = ["Stage", "crowd_of", "staged"]

_READY_S = 60.0
_SOURCES = 4
_QUIET_S = 1.5  # the bucket fills up, and admissions have settled


class Stage:
    """A running fleet.

    Attributes:
        gateways: three that are up at the start, and their successors.
        url: where clients connect: the balancer.
    """

    def __init__(self, gateways: Sequence[DrainedGateway], balancer: Process, port: int) -> None:
        self.gateways = gateways
        self.url = f"ws://{HOST}:{port}/chat"
        self._balancer = balancer

    async def start(self, gateways: Sequence[DrainedGateway]) -> None:
        """Start these, and wait until connections are sent there, and all know of each other.

        Raises:
            CrowdError: they do not come.
        """
        for gateway in gateways:
            gateway.start()
        up = [gateway for gateway in self.gateways if gateway.runs]

        async def are_in() -> bool:
            ready = (await self._balancer.ask("/stats"))["ready"]
            if not all(ready[self.gateways.index(gateway)] for gateway in up):
                return False
            fleets = [next(iter(gateway.status()["gates"].values()))["fleet"] for gateway in up]
            return all(fleet["is_up"] and fleet["gateways"] >= len(up) for fleet in fleets)

        end = time.monotonic() + _READY_S
        while not await are_in():
            if time.monotonic() > end:
                raise CrowdError(f"the gateways were not ready within {_READY_S:g} s: run it again")
            await asyncio.sleep(0.1)

    async def wait(self, condition: Callable[[], bool], what: str, within_s: float) -> float:
        """Seconds that it took.

        Raises:
            CrowdError: it does not come.
        """
        took_s = await until(condition, within_s)
        if took_s is None:
            raise CrowdError(f"after {within_s:g} s it is still not so that {what}: run it again")
        return took_s

    async def open_at(self, gateway: DrainedGateway) -> int:
        """Connections there."""
        return int((await self._balancer.ask("/stats"))["open"][self.gateways.index(gateway)])

    async def cut_at(self, gateway: DrainedGateway) -> int:
        """Connections that were cut there so far."""
        return int((await self._balancer.ask("/stats"))["cut"][self.gateways.index(gateway)])

    async def deregister(self, gateway: DrainedGateway, sends_s: float, cuts_s: float, *, is_told: bool) -> None:
        """Let the balancer play a cloud's, which tells it of its health or does not."""
        place = self.gateways.index(gateway)
        await self._balancer.ask(f"/deregister?target={place}&sends_s={sends_s}&cuts_s={cuts_s}&tells={int(is_told)}")


@contextmanager
def staged(rate: float, drain: DrainSettings) -> Iterator[Stage]:
    """Start Redis, the worker and the balancer; gateways are started later. All ends with the block."""
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="herdgate-")))
        with listening() as listener:
            module = "herdgate_loadtest.bench.sides.echo_worker"
            worker = stack.enter_context(Process("the worker", [module, str(listener.fileno())], [listener]))
        settings = (
            f'workers = ["ws://{HOST}:{worker.port}"]\nrate = {rate!r}\nburst = {max(1.0, rate / 20)!r}\n'
            f'[fleet]\nredis = "{redis.url}"\nname = "bench"\n'
        )
        with listening() as clients, listening() as control:
            aws = f"http://{HOST}:{control.getsockname()[1]}"
            gateways = [DrainedGateway(f"gateway-{number}", folder, settings, drain, aws) for number in range(1, 7)]
            for gateway in gateways:
                stack.callback(gateway.kill)
            targets = json.dumps([[gateway.port, gateway.admin] for gateway in gateways])
            arguments = ["herdgate_loadtest.bench.drain.balancer", targets]
            arguments += [str(clients.fileno()), str(control.fileno())]
            balancer = stack.enter_context(Process("the balancer", arguments, [clients, control]))
            port = clients.getsockname()[1]
        yield Stage(gateways, balancer, port)


@asynccontextmanager
async def crowd_of(stage: Stage, clients: int, rate: float, observe: Callable[[Attempt], None]) -> AsyncIterator[Crowd]:
    """A crowd that is in: it comes to the moment, so that what it waits for is the gateways."""
    config = CrowdConfig(urls=(stage.url,), clients={"prompt": clients}, sources=loopback_sources(_SOURCES))
    async with Crowd(config, observe) as crowd:
        await crowd.bring_up(rate=0.8 * rate, deadline_s=2 * clients / rate + _READY_S)
        await crowd.hold(_QUIET_S)
        yield crowd
