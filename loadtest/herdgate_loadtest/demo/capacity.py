"""Can this machine carry the crowd's way through the gateway? Asked before anything is started.

The gateway holds two sockets a client, one of them from a port of its own to a worker. Every process of the demo
inherits the descriptor limit of this one, so it is raised here.
"""

import resource

from herdgate_loadtest.counted import counted
from herdgate_loadtest.demo.fleet import WORKERS
from herdgate_loadtest.engine.preflight import Limits, read_limits
from herdgate_loadtest.errors import PreflightError

__all__ = ["check_capacity", "make_room"]

_SPARE_DESCRIPTORS = 64


def make_room(herd: int) -> None:
    """Check, and raise the soft descriptor limit if that is what it takes.

    Raises:
        PreflightError: the demo cannot carry `herd` clients; one line with the figures and the way out.
    """
    limits = read_limits()
    check_capacity(herd, limits)
    needed = _descriptors(herd)
    if needed > limits.descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def check_capacity(herd: int, limits: Limits) -> None:
    """The pure part of `make_room`."""
    crowd = counted(herd, "client")
    if _descriptors(herd) > limits.most_descriptors:
        raise PreflightError(
            f"{crowd} will not do: the gateway needs {_descriptors(herd):,} descriptors, the hard limit is"
            f" {limits.most_descriptors:,}: raise it (ulimit -Hn) or write a smaller --herd"
        )
    if herd > WORKERS * limits.ports:
        raise PreflightError(
            f"{crowd} will not do: the gateway reaches {WORKERS} workers from {limits.ports:,} ports each:"
            f" write --herd {WORKERS * limits.ports} or less"
        )


def _descriptors(herd: int) -> int:
    return 2 * herd + _SPARE_DESCRIPTORS
