"""The triggers that have to be looked for: a file that somebody makes, and early signs on AWS."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from herdgate_gateway.drain.aws.watching import watching_aws
from herdgate_gateway.drain.plan import Trigger
from herdgate_gateway.listeners import Tcp, read_listen
from herdgate_gateway.tasks import in_thread, reap

if TYPE_CHECKING:
    from herdgate_gateway.settings import Settings

__all__ = ["watching", "watching_file"]

LOOK_S = 0.5

_logger = logging.getLogger("herdgate.drain")


@asynccontextmanager
async def watching(settings: "Settings", act: Callable[[Trigger], None]) -> AsyncIterator[None]:
    """Call `act` with each trigger that comes, in this block; each once at most.

    Raises:
        ConfigurationError: what is to be looked for cannot be, here.
    """
    drain, fleet = settings.drain, settings.fleet.fleet()
    signs = watching_aws(drain.aws.settings(), partial(act, "sign"), port=_port(settings), fleet=fleet)
    async with watching_file(drain.file, partial(act, "file")), signs:
        yield


@asynccontextmanager
async def watching_file(file: Path | None, act: Callable[[], None]) -> AsyncIterator[None]:
    """Call `act` once there is such a file, in this block; one that is there already counts. None: never."""
    watching = None if file is None else asyncio.get_running_loop().create_task(_watch(file, act))
    try:
        yield
    finally:
        if watching is not None:
            await reap(watching)


async def _watch(file: Path, act: Callable[[], None]) -> None:
    is_said = False
    while True:
        try:
            if await in_thread(file.exists):
                act()
                return
        except (OSError, RuntimeError) as error:  # not ours to read, or there is no thread to be had
            if not is_said:
                _logger.warning("cannot look for the file that begins a drain, and goes on trying: %s", error)
                is_said = True
        await asyncio.sleep(LOOK_S)


def _port(settings: "Settings") -> int | None:
    """That a balancer is told of; None: nobody knows it before it is bound, or there is none."""
    listens = map(read_listen, settings.listen)
    return next((listen.port for listen in listens if isinstance(listen, Tcp) and listen.port), None)
