"""What drains a worker before anybody stops it: a file, and its ECS task that is on its way out."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from herdgate import Fleet
from herdgate_gateway.drain.aws.options import AwsSettings
from herdgate_gateway.drain.aws.watching import watching_aws
from herdgate_gateway.drain.plan import Trigger
from herdgate_gateway.drain.watching import watching_file
from herdgate_gateway.leases.worker_process import Joining

__all__ = ["Triggers", "watching"]


@dataclass(frozen=True, slots=True)
class Triggers:
    """Of one worker.

    Attributes:
        file: path of a file that drains it. None: no file does.
        ecs: the status of its ECS task is watched.
        within_s: seconds that such a drain may take.
    """

    file: str | None
    ecs: bool
    within_s: float


@asynccontextmanager
async def watching(triggers: Triggers, joining: Joining, act: Callable[[Trigger, float], None]) -> AsyncIterator[None]:
    """Call `act` with each trigger that comes in this block, and with the seconds that the drain may take.

    Raises:
        ConfigurationError: see `watching_aws`.
    """
    file = None if triggers.file is None else Path(triggers.file)
    aws = AwsSettings(ecs=True) if triggers.ecs else None
    fleet = None if joining.redis is None else Fleet(joining.redis, joining.fleet)
    async with (
        watching_file(file, partial(act, "file", triggers.within_s)),
        watching_aws(aws, partial(act, "sign", triggers.within_s), fleet=fleet),
    ):
        yield
