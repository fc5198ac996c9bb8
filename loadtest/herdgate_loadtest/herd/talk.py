"""Messages on the open sockets of a crowd, and how long their echoes take.

Rules: an open model. Messages are due at fixed moments whatever the server does, and a latency counts from its due
moment: a server that stalls makes figures worse, not rarer. The first echo counts, so a chat room will do.
"""

import asyncio
import secrets
import time
from collections.abc import Callable

from herdgate_loadtest.engine import Crowd
from herdgate_loadtest.engine.agenda import Deadlines

__all__ = ["Talk"]

_TURN_S = 0.01
_MOST_A_TURN = 200


class Talk:
    """Has a crowd say `per_s` messages a second.

    Args:
        per_s: messages a second, more than 0.
        timeout_s: seconds for an echo.
        told: called with the latency in seconds, and why there was no echo ("": there was one).
    """

    def __init__(self, per_s: float, timeout_s: float, told: Callable[[float, str], None]) -> None:
        self._interval_s = 1 / per_s
        self._timeout_s = timeout_s
        self._told = told
        self._prefix = secrets.token_hex(4).encode() + b" "
        self._said = 0
        self._due: dict[int, float] = {}
        self._deadlines: Deadlines[int] = Deadlines(timeout_s)

    async def go_on(self, crowd: Crowd) -> None:
        """Talk until cancelled."""
        due = time.monotonic()
        while True:
            now = time.monotonic()
            for _ in range(_MOST_A_TURN):
                if due > now:
                    break
                self._say(crowd, due, now)
                due += self._interval_s
            for number in self._deadlines.take_due(now):
                self._told(now - self._due.pop(number), "no echo")
            await asyncio.sleep(_TURN_S)

    def forget(self) -> None:
        """Wait for no echo any more: the sockets have been cut off."""
        self._due.clear()
        self._deadlines.clear()

    def heard(self, message: bytes) -> None:
        """A message has come from the server."""
        if not message.startswith(self._prefix):
            return
        number = message[len(self._prefix) :]
        due = self._due.pop(int(number), None) if number.isdigit() else None
        if due is not None:
            self._deadlines.stop(int(number))
            self._told(time.monotonic() - due, "")

    def _say(self, crowd: Crowd, due: float, now: float) -> None:
        if not crowd.snapshot().open:
            return
        self._said += 1
        if crowd.say(self._prefix + b"%d" % self._said):
            self._due[self._said] = due
            self._deadlines.start(self._said, now)
        else:
            self._told(now - due, "not sent")
