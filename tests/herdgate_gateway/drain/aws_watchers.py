"""Watchers of early signs in the loop of a test, each a gateway of its own to AWS, with real clients of the SDK."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from botocore.config import Config
from botocore.session import Session

from herdgate import Fleet
from herdgate.stores.redis.errors import LinkError
from herdgate.stores.redis.lookout import FleetLookout
from herdgate_gateway.drain.aws.asking import Aws, Client, Question
from herdgate_gateway.drain.aws.backoff import Backoffs
from herdgate_gateway.drain.aws.complaints import Complaints
from herdgate_gateway.drain.aws.sharing import text_of_question
from herdgate_gateway.drain.aws.signs import Identity, Target
from herdgate_gateway.drain.aws.watcher import Watcher
from herdgate_gateway.tasks import reap
from tests.herdgate_gateway.drain.fake_aws import CLUSTER, GROUP, FakeAws, task_arn
from tests.redis_servers import RedisServer
from tests.wire import eventually

__all__ = ["EVERY_S", "QUESTION", "Watching", "watching"]

EVERY_S = 0.3
QUESTION = Question((GROUP,), CLUSTER)


class Watching:
    """One watcher.

    Attributes:
        name: its access key.
        target: its target, as the balancer names it.
        task: the ARN of its task.
        has_sign: it has found one.
    """

    def __init__(self, aws: FakeAws, redis: RedisServer | None, number: int) -> None:
        self.name, self.target, self.task = f"gateway{number}", f"10.0.0.{number}:80", task_arn(number)
        self._aws = aws
        self._lookout: FleetLookout | None = None
        if redis is not None:
            self._lookout = FleetLookout(Fleet(redis.url), text_of_question(QUESTION), self.name, EVERY_S)
        asker = Aws(QUESTION, Backoffs(EVERY_S, random.random), time.monotonic, self._open)
        complaints = Complaints(time.monotonic)
        watcher = Watcher(EVERY_S, Identity(Target.parse(self.target), self.task), asker, self._lookout, complaints)
        self._running = asyncio.get_running_loop().create_task(self._run(watcher))

    @property
    def has_sign(self) -> bool:
        return self._running.done() and not self._running.cancelled() and self._running.exception() is None

    @property
    def calls(self) -> int:
        """What it has asked AWS so far."""
        return self._aws.asked_by(self.name)

    def register(self) -> None:
        """As a service does with a task that runs."""
        self._aws.groups.setdefault(GROUP, {})[self.target] = "healthy"
        self._aws.tasks[self.task] = "RUNNING", "RUNNING"

    async def has_looked(self) -> None:
        """Wait until it has looked once: a call for its group, and one for its task."""
        await self._asks(2)

    async def asks(self, more: int) -> None:
        """Wait until it has asked so often from now on."""
        await self._asks(self.calls + more)

    async def _asks(self, least: int) -> None:
        async def has_asked() -> bool:
            return self.calls >= least

        await eventually(has_asked, f"{self.name} asks AWS", within_s=20)

    async def die(self) -> None:
        """End without a word to anybody."""
        await reap(self._running)

    async def aclose(self) -> None:
        """End as a gateway does."""
        await self.die()
        if self._lookout is not None:
            with suppress(LinkError):
                await self._lookout.leave()
            await self._lookout.aclose()

    async def _run(self, watcher: Watcher) -> None:
        if self._lookout is not None:
            await self._lookout.connect()
        await watcher.run()

    def _open(self, service: str, region: str) -> Client:
        keys = {"aws_access_key_id": self.name, "aws_secret_access_key": "testing"}
        config = Config(retries={"total_max_attempts": 1}, proxies={})
        client: Client = Session().create_client(
            service, region_name=region, endpoint_url=self._aws.url, config=config, **keys
        )
        return client


@asynccontextmanager
async def watching(aws: FakeAws, redis: RedisServer | None, count: int) -> AsyncIterator[list[Watching]]:
    """So many, all of one question."""
    made = [Watching(aws, redis, number) for number in range(1, count + 1)]
    try:
        yield made
    finally:
        for one in made:
            await one.aclose()
