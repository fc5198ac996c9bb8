"""Can this machine carry the crowd's way through the gateway? Asked before anything is started.

The gateway holds two sockets a client, one of them from a port of its own to a worker. Where that is more than one
process may have, it serves with two, of which neither gets more than `BUSIER` of the clients. In a fleet each gateway
is one process, which has all of them once the other one is killed. Every process of the demo inherits the descriptor
limit of this one, so it is raised here.
"""

import math
import resource

from herdgate_loadtest.counted import counted
from herdgate_loadtest.demo.fleet import WORKERS
from herdgate_loadtest.engine.preflight import Limits, read_limits
from herdgate_loadtest.errors import PreflightError

__all__ = ["check_capacity", "make_room"]

_SPARE_DESCRIPTORS = 64
_LINGERING = 16  # a part of so many of its descriptors is what a gateway keeps for clients it has just refused
BUSIER = 0.7
"""Part of the clients that the busier one of two processes may get."""


def make_room(herd: int, most_processes: int = 2) -> int:
    """Check, and raise the soft descriptor limit if that is what it takes.

    Args:
        herd: clients.
        most_processes: that a gateway may have, 1 or 2.

    Returns:
        The processes that the gateway needs.

    Raises:
        PreflightError: the demo cannot carry `herd` clients; one line with the figures and the way out.
    """
    limits = read_limits()
    processes = check_capacity(herd, limits, most_processes)
    needed = _descriptors(herd, processes)
    if needed > limits.descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return processes


def check_capacity(herd: int, limits: Limits, most_processes: int = 2) -> int:
    """The pure part of `make_room`."""
    crowd = counted(herd, "client")
    if herd > WORKERS * limits.ports:
        raise PreflightError(
            f"{crowd} will not do: the gateway reaches {WORKERS} workers from {limits.ports:,} ports each:"
            f" write --herd {WORKERS * limits.ports} or less"
        )
    for processes in range(1, most_processes + 1):
        if _descriptors(herd, processes) <= limits.most_descriptors:
            return processes
    each = "a gateway" if most_processes == 1 else "each of two gateway processes"
    raise PreflightError(
        f"{crowd} will not do: {each} needs {_descriptors(herd, most_processes):,} descriptors, the hard"
        f" limit is {limits.most_descriptors:,}: raise it (ulimit -Hn) or write a smaller --herd"
    )


def _descriptors(herd: int, processes: int) -> int:
    """Of the process that has most: a gateway, or the crowd's."""
    held = 2 * herd if processes == 1 else math.ceil(2 * BUSIER * herd)
    return max(herd + _SPARE_DESCRIPTORS, math.ceil((held + _SPARE_DESCRIPTORS) * _LINGERING / (_LINGERING - 1)))
