"""Says that a Redis is away, and that it is back: once in a process, however many links there are to it.

What waiting does not mend is an error with the way out, and said even where the outage itself has been.
"""

import logging
from weakref import WeakSet

from herdgate.stores.redis.errors import LinkError

__all__ = ["begin", "end", "leave", "say"]

_logger = logging.getLogger("herdgate.redis")

_without: dict[str, WeakSet[object]] = {}
"""The links that have no service, by the server's address."""

_said: dict[str, str] = {}
"""What waiting does not mend, by address, as it was said last; empty: only that it is away."""


def begin(where: str, link: object) -> None:
    """A link has lost service."""
    links = _without.setdefault(where, WeakSet())
    if not links:
        _said.pop(where, None)  # of links that are no more
    links.add(link)


def say(error: LinkError, meanwhile: str = "") -> None:
    """Say what is wrong, unless it has been.

    Args:
        meanwhile: what this process does until it is over.
    """
    cure = getattr(error, "cure", None)
    kind = cure.met if cure else ""
    said = _said.get(error.where)
    if said is not None and kind in ("", said):
        return
    if error.where in _without:
        _said[error.where] = kind
    ending = "trying again in the background" + (f", and until then {meanwhile}" if meanwhile else "")
    if cure:
        _logger.error("redis: got %s at %s (%s); %s; %s", cure.met, error.where, error.reason, cure.way_out, ending)
    else:
        _logger.warning("%s; %s", error, ending)


def end(where: str, link: object, away_s: float) -> None:
    """A link has service again; nothing if it never lost it."""
    links = _without.get(where)
    if links is None or link not in links:
        return
    was_said = _said.pop(where, None) is not None
    leave(where, link)
    if was_said:
        _logger.warning("Redis at %s is back after %.1f s", where, away_s)


def leave(where: str, link: object) -> None:
    """A link is no more."""
    links = _without.get(where)
    if links is not None:
        links.discard(link)
        if not links:
            del _without[where]
            _said.pop(where, None)
