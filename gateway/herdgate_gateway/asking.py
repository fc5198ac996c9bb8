"""What an attempt at a worker says of it, the same for both relays: the pool is told, the client is refused.

    101                                 it is well
    a refusal below 500                 it is well: whom it takes is its own business
    a refusal from 500 on               a failure: it takes nobody, whatever time to come back it names
    no connection, no sense, no answer  a failure, and `Refused`
    the client has left meanwhile       a failure if the worker has kept silent for a second, else nothing
    nothing left here to dial with      nothing, and `Refused`

A worker that refuses everybody has the fewest sockets, so it would be asked by every arrival, were it not left alone.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from herdgate import Refused
from herdgate_gateway.worker_leg import WorkerFailed, WorkerRefused
from herdgate_gateway.workers import Assignment

__all__ = ["asking"]

FAILING = 500
"""Statuses from here on say that a worker fails (RFC 9110 section 15.6)."""


@asynccontextmanager
async def asking(assignment: Assignment, setup_s: float) -> AsyncIterator[None]:
    """Dial in the block: it ends once the worker has taken the handshake.

    Raises:
        Refused: `upstream`: the worker is out of reach or makes no sense (502), or has not answered in time (504).
        WorkerRefused: it said no.
    """
    try:
        async with asyncio.timeout(setup_s):
            yield
    except TimeoutError:
        assignment.failed(f"no answer within {setup_s:g} s")
        raise Refused("upstream", 504) from None
    except asyncio.CancelledError:
        assignment.left()
        raise
    except WorkerRefused as refused:
        _judge(assignment, refused.response.status_code)
        raise
    except WorkerFailed as failed:
        if not failed.is_ours:
            assignment.failed(str(failed))
        raise Refused("upstream") from failed
    assignment.connected()


def _judge(assignment: Assignment, status: int) -> None:
    if status < FAILING:
        assignment.answered()
    else:
        assignment.failed(f"it refuses handshakes with status {status}")
