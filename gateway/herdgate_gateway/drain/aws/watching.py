"""Looks for early signs on AWS, for as long as a block runs: first what this process is, however long that takes."""

import asyncio
import logging
import os
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress

from herdgate import Fleet
from herdgate.stores.redis.errors import LinkError
from herdgate.stores.redis.lookout import FleetLookout
from herdgate_gateway.drain.aws.aside import Aside
from herdgate_gateway.drain.aws.asking import Aws, Question
from herdgate_gateway.drain.aws.backoff import Backoffs
from herdgate_gateway.drain.aws.complaints import Complaints
from herdgate_gateway.drain.aws.faults import fault_of
from herdgate_gateway.drain.aws.identity import Place, check_place, read_place
from herdgate_gateway.drain.aws.options import AwsSettings
from herdgate_gateway.drain.aws.sharing import text_of_question
from herdgate_gateway.drain.aws.watcher import Watcher
from herdgate_gateway.tasks import reap

__all__ = ["watching_aws"]

PLACE_S = 5.0
"""Seconds after which the metadata of the task have not answered."""

_logger = logging.getLogger("herdgate.drain")


@asynccontextmanager
async def watching_aws(
    settings: AwsSettings | None, act: Callable[[], None], *, port: int | None = None, fleet: Fleet | None = None
) -> AsyncIterator[None]:
    """Call `act` once AWS says that this process is taken out of service, in this block; not more than once.

    Args:
        settings: what is watched. None: nothing.
        act: begins a drain; runs in this loop.
        port: that is listened on, for a target that is not set.
        fleet: whose members have one of them ask for all. None: this process asks for itself.

    Raises:
        ConfigurationError: outside ECS, what only a task knows of itself is not set.
    """
    if settings is None:
        yield
        return
    check_place(settings, os.environ, port)
    watching = asyncio.get_running_loop().create_task(_said(_watch(settings, act, port, fleet)))
    try:
        yield
    finally:
        await reap(watching)


async def _said(watching: Coroutine[None, None, None]) -> None:
    """An end that nobody has thought of is in the log, and not found out when it is too late."""
    try:
        await watching
    except Exception:
        _logger.exception("early signs are not looked for any more")


async def _watch(settings: AwsSettings, act: Callable[[], None], port: int | None, fleet: Fleet | None) -> None:
    complaints = Complaints(time.monotonic)
    place = await _place(settings, port, complaints)
    question = Question(settings.target_groups, place.cluster)
    aws = Aws(question, Backoffs(settings.every_s, random.random), time.monotonic)
    lookout = None
    if fleet is not None:
        lookout = FleetLookout(fleet, text_of_question(question), secrets.token_hex(8), settings.every_s)
        await lookout.connect()
    try:
        await Watcher(settings.every_s, place.identity, aws, lookout, complaints).run()
        act()
    finally:
        if lookout is not None:
            with suppress(LinkError):
                await lookout.leave()
            await lookout.aclose()


async def _place(settings: AwsSettings, port: int | None, complaints: Complaints) -> Place:
    """What this process is, however long its metadata takes."""
    aside = Aside[Place](PLACE_S)
    while True:
        try:
            return await aside.ask(lambda: read_place(settings, os.environ, port))
        except (OSError, RuntimeError) as error:  # it does not answer, or there is no thread to be had
            complaints.say(fault_of("the metadata of this task", error))
            await asyncio.sleep(settings.every_s * (1 + random.random()))
