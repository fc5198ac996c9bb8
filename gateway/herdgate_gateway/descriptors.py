"""How many sockets a process has file descriptors for: each one that is relayed takes two.

The limit is raised as far as the system lets us (setrlimit(2)), and what is left of it caps the open sockets: who comes
beyond that is told so by the gate, with a time to come back, instead of meeting errors.
"""

import errno
import logging
import resource
from functools import cache

__all__ = ["OUT_OF_ROOM", "most_lingering", "most_sockets", "raise_limit", "say_out_of_room"]

OUT_OF_ROOM = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
"""Errors of a system that has no room for one more socket."""

RESERVED = 64
"""Descriptors for listeners, admin, Redis, files; and handshakes on their way."""

_logger = logging.getLogger("herdgate.gateway")


def raise_limit() -> None:
    """Take all descriptors that this process may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def most_lingering() -> int:
    """Sockets that may be kept at once for clients who have been refused: 16 to 1,000."""
    return min(1_000, max(16, _limit() // 16))


def most_sockets() -> int:
    """Sockets that may be open in this process at once, 1 at least."""
    return max(1, (_limit() - RESERVED - most_lingering()) // 2)


@cache
def say_out_of_room() -> None:
    """Log it, once in this process."""
    _logger.error("out of file descriptors: raise RLIMIT_NOFILE (ulimit -n), or lower max_open (said once)")


def _limit() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
