"""What is logged of denials: never a ticket, never a line per refused client.

The server's own loggers are outside the app, so one filter is put on each of them. It blanks out tickets in whatever
they say, at any level, and drops the informational line a server writes about each refusal; the refusals are counted
and summed up in one line every ten seconds.
"""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from herdgate.core.answers import Reason
from herdgate.core.tickets import TICKET_PATTERN

__all__ = ["DenialLog", "guard_server_logs", "refusing"]

SERVER_LOGGERS = (
    "uvicorn.error",
    "uvicorn.error.clients",  # the gateway's
    "uvicorn.access",
    "uvicorn.asgi",
    "hypercorn.error",
    "hypercorn.access",
)
SUMMARY_S = 10.0

# Whole; or whatever a query says of it, however it is escaped; or the end of one that `websockets` cuts in the middle
# when it logs a close frame at DEBUG.
_TICKET = re.compile(
    rf"{TICKET_PATTERN}|(?<=herdgate_ticket=)(?!1\.\[ticket\])[^&\s\"']+|\.\.\.[A-Za-z0-9_-]{{8,34}}(?=\"}})"
)
_refusing = ContextVar("herdgate_refusing", default=False)
_logger = logging.getLogger("herdgate")


@contextmanager
def refusing() -> Iterator[None]:
    """What the server says at INFO or below in here is about one refusal."""
    token = _refusing.set(True)
    try:
        yield
    finally:
        _refusing.reset(token)


class _TicketFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        if _refusing.get() and record.levelno <= logging.INFO:
            return False
        try:
            if _TICKET.search(record.getMessage()):
                _redact(record)
        except (TypeError, ValueError, KeyError):
            pass  # arguments that do not fit their text: the handler says so, and the server goes on
        return True


def _redact(record: logging.LogRecord) -> None:
    """Blank out tickets where they stand, so that formatters that read `args` still can; else in the whole text."""
    if isinstance(record.args, tuple):
        record.args = tuple(_blank(arg) if isinstance(arg, str) else arg for arg in record.args)
    text = record.getMessage()
    if _TICKET.search(text):
        record.msg, record.args = _blank(text), None


def _blank(text: str) -> str:
    return _TICKET.sub("1.[ticket]", text)


_filter = _TicketFilter()


def guard_server_logs() -> None:
    """Put the filter on the loggers of the servers we know; harmless to repeat."""
    for name in SERVER_LOGGERS:
        logging.getLogger(name).addFilter(_filter)


class DenialLog:
    """Sums up denials: one line when they begin, and one for every ten seconds in which there were more."""

    def __init__(self) -> None:
        self._counts: Counter[Reason] = Counter()
        self._timer: asyncio.TimerHandle | None = None

    def count(self, reason: Reason) -> None:
        """Count one denial; call it from within the event loop."""
        self._counts[reason] += 1
        if self._timer is None:
            self._say()

    def _say(self) -> None:
        self._timer = None
        if self._counts:
            counts = ", ".join(f"{reason} {count}" for reason, count in sorted(self._counts.items()))
            _logger.warning("denied arrivals: %s", counts)
            self._counts.clear()
            self._timer = asyncio.get_running_loop().call_later(SUMMARY_S, self._say)
