"""The process of a worker.

herdgate worker -> guardian -> python -m herdgate_gateway.worker_kit.process JOB
    the app is imported, the name waited for, the first line written, the duty started; then the first life begins
"""

import asyncio
import inspect
import json
import logging
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from logging.config import dictConfig

import uvloop

from herdgate_gateway.descriptors import raise_limit
from herdgate_gateway.errors import ConfigurationError, HerdgateError
from herdgate_gateway.garbage import collect_in_small_lots
from herdgate_gateway.leases.clocks import BootClock
from herdgate_gateway.leases.dynamo import DynamoLeases
from herdgate_gateway.leases.guardian import heed_no_more
from herdgate_gateway.leases.owner import Setup
from herdgate_gateway.leases.registration import NameInUseError, wait_for_name
from herdgate_gateway.leases.worker_process import Joining, on_stop_signs, run_guarded, setup_of
from herdgate_gateway.log_lines import log_config
from herdgate_gateway.pid_one import warn_of_shell
from herdgate_gateway.worker_kit.duty import Duty, Parts
from herdgate_gateway.worker_kit.fleet_rate import fleet_rate
from herdgate_gateway.worker_kit.imported import import_named
from herdgate_gateway.worker_kit.together import Together
from herdgate_gateway.worker_kit.triggers import Triggers, watching
from herdgate_gateway.worker_kit.worker import Worker

__all__ = ["Job", "main", "run_worker"]

_logger = logging.getLogger("herdgate.worker")


@dataclass(frozen=True, slots=True)
class Job:
    """What such a process is told.

    Attributes:
        app: import string of an ASGI app that is served on `listeners`; None: nothing is.
        dial: import string of a handler that dials out; None: none is run.
        listeners: descriptors of open listeners.
        stop_s: longest time of a good end, seconds.
        triggers: what drains it before that.
    """

    joining: Joining
    app: str | None
    dial: str | None
    listeners: Sequence[int]
    stop_s: float
    triggers: Triggers


def run_worker(job: Job, listeners: Sequence[socket.socket]) -> int:
    """Run one behind a guardian; its exit code.

    Raises:
        HerdgateError: the table cannot be read, or Redis not be asked.
    """
    command = [sys.executable, "-m", "herdgate_gateway.worker_kit.process", json.dumps(asdict(job))]
    return run_guarded(job.joining, command, listeners)


def main() -> None:
    """Be a worker until SIGTERM; what people can mend is one line."""
    told = json.loads(sys.argv[1])
    parts = {"joining": Joining(**told["joining"]), "triggers": Triggers(**told["triggers"])}
    job = Job(**{**told, **parts})
    dictConfig(log_config())
    raise_limit()
    try:
        duty = _duty_of(job)
        collect_in_small_lots()
        uvloop.run(_work(job, duty))
    except (HerdgateError, NameInUseError) as error:
        sys.stderr.write(f"herdgate: {error}\n")
        sys.exit(2)


def _duty_of(job: Job) -> Callable[[Parts], Duty]:
    """How it is made; what it is made of is imported now."""
    duties = [make(name) for make, name in ((_serving(job), job.app), (_dialling, job.dial)) if name is not None]
    return duties[0] if len(duties) == 1 else lambda parts: Together([duty(parts) for duty in duties])


def _serving(job: Job) -> Callable[[str], Callable[[Parts], Duty]]:
    def make(name: str) -> Callable[[Parts], Duty]:
        from herdgate_gateway.worker_kit.serving import Serving

        app, joining = import_named("APP", name), job.joining
        listeners = [socket.socket(fileno=number) for number in job.listeners]
        return lambda parts: Serving(
            parts, app, listeners=listeners, capacity=joining.capacity, addr=joining.addr, redis=joining.redis
        )

    return make


def _dialling(name: str) -> Callable[[Parts], Duty]:
    from herdgate_gateway.worker_kit.dialling import Dialling
    from herdgate_gateway.worker_kit.handlers import load_handler

    handler = load_handler(name)
    try:
        inspect.signature(handler).bind("connection")
    except TypeError:
        raise ConfigurationError("--dial", name, "it has to take one argument, the connection") from None
    return lambda parts: Dialling(parts, handler)


async def _work(job: Job, duty: Callable[[Parts], Duty]) -> None:
    joining = job.joining
    table, notices = DynamoLeases(joining.place), joining.notices()

    def setup(load: Callable[[], int]) -> Setup:
        return setup_of(joining, table, lambda: DynamoLeases(joining.place), notices, load)

    worker = Worker(setup, duty, notices, lambda: fleet_rate(joining.redis, joining.fleet), job.stop_s)
    naming = asyncio.ensure_future(wait_for_name(table, BootClock(), joining.fleet, joining.row))

    async def stop() -> None:
        naming.cancel()
        await worker.stop()

    on_stop_signs(stop)
    try:
        async with watching(job.triggers, joining, worker.begin_drain):
            await asyncio.wait((naming,))
            if not naming.cancelled():
                naming.result()
                _logger.info("%s", _first_line(job))
                warn_of_shell(_logger)
                await worker.run()
    finally:
        if notices is not None:
            await notices.aclose()
        await table.aclose()
        heed_no_more()


def _first_line(job: Job) -> str:
    joining = job.joining
    duties = [f"{job.dial}, dialling out" if job.dial else "", f"{job.app} at {joining.addr}" if job.app else ""]
    what = " and ".join(filter(None, duties))
    room = f"room for {joining.capacity}" if joining.capacity else "takes no clients, as --capacity is 0"
    return f"worker {joining.worker}: {what}; {room}; fleet {joining.fleet}; {joining.place}"


if __name__ == "__main__":
    main()
