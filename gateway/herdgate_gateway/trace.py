"""`herdgate serve --trace FILE`: what sockets did, as JSON lines, to be played back by `herdgate replay`.

    {"herdgate_trace": 1, "started_at": "2026-11-30T10:00:00+00:00"}
    {"t": 0.104, "event": "open", "socket": 1, "client": "9f2b6c01d4e8a733"}
    {"t": 0.105, "event": "denied", "client": "51c0...", "reason": "rate"}
    {"t": 7.210, "event": "close", "socket": 1, "client": "9f2b6c01d4e8a733"}

`t` is in seconds since the trace began. A socket is open from its admission on.

Rules: a client key never reaches the file: it is hashed with a salt that is drawn for each trace and kept nowhere.
Tracing never ends a socket: a file that cannot be written is said once, and the trace ends there.
"""

import asyncio
import contextlib
import hashlib
import json
import logging
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Self, TextIO

from herdgate import Gate
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import Client
from herdgate.core.errors import ConfigurationError
from herdgate.core.permits import Permit

__all__ = ["Trace", "TracedGate"]

_FLUSH_S = 1.0
_HASH_BYTES = 8

_logger = logging.getLogger("herdgate.gateway")


class Trace:
    """A trace that is being written; a context manager that ends it.

    Args:
        path: a file that does not exist yet.

    Raises:
        ConfigurationError: it exists, or cannot be made.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file: TextIO | None = path.open("x", encoding="utf-8")  # closed by `close`
        except OSError as error:
            raise ConfigurationError("--trace", path, f"name a new file that can be made ({error.strerror})") from None
        self._salt = secrets.token_bytes(16)
        self._began = time.monotonic()
        self._numbers = count(1)
        self._write({"herdgate_trace": 1, "started_at": datetime.now(UTC).isoformat(timespec="seconds")})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def opened(self, client: Client) -> Callable[[], None]:
        """A socket was let in; call the result when it has ended."""
        number, name = next(self._numbers), self._name(client)
        self._event("open", socket=number, client=name)
        return lambda: self._event("close", socket=number, client=name)

    def denied(self, client: Client, reason: str) -> None:
        """A try was refused."""
        self._event("denied", client=self._name(client), reason=reason)

    async def go_on_flushing(self) -> None:
        """See that what is traced is in the file within a second, until cancelled."""
        while True:
            await asyncio.sleep(_FLUSH_S)
            self._guard(lambda file: file.flush())

    def close(self) -> None:
        """The trace is over. Harmless to repeat."""
        self._guard(lambda file: file.close())
        self._file = None

    def _name(self, client: Client) -> str:
        return hashlib.blake2b(client.key.encode(), digest_size=_HASH_BYTES, key=self._salt).hexdigest()

    def _event(self, event: str, **fields: Any) -> None:
        self._write({"t": round(time.monotonic() - self._began, 4), "event": event, **fields})

    def _write(self, line: dict[str, Any]) -> None:
        self._guard(lambda file: file.write(json.dumps(line, separators=(",", ":")) + "\n"))

    def _guard(self, act: Callable[[TextIO], object]) -> None:
        file = self._file
        if file is None:
            return
        try:
            act(file)
        except OSError as error:
            self._file = None
            with contextlib.suppress(OSError):  # what is left to write has no room either
                file.close()
            _logger.error("the trace ends here: %s", error.strerror)


class TracedGate(Gate):
    """A gate whose admissions and denials are traced.

    Args:
        trace: where to.
        settings: arguments of `herdgate.Gate`.
    """

    def __init__(self, trace: Trace, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._trace = trace

    async def decide(self, arrival: Arrival) -> Admitted | Denied:
        """See `herdgate.Gate`."""
        return self._traced(arrival, await super().decide(arrival))

    def ask(self, arrival: Arrival, answer: Callable[[Admitted | Denied], None]) -> Callable[[], None] | None:
        """See `herdgate.Gate`."""
        if self._client_screen is not None:  # it is `decide` that answers
            return super().ask(arrival, answer)
        return super().ask(arrival, lambda verdict: answer(self._traced(arrival, verdict)))

    def let_past(self, client: Client, *, exempt: bool) -> Permit:
        """See `herdgate.Gate`."""
        return _TracedPermit(super().let_past(client, exempt=exempt), self._trace.opened(client))

    def _traced(self, arrival: Arrival, verdict: Admitted | Denied) -> Admitted | Denied:
        if isinstance(verdict, Denied):
            self._trace.denied(arrival.client, verdict.reason)
            return verdict
        return Admitted(_TracedPermit(verdict.permit, self._trace.opened(arrival.client)))


class _TracedPermit(Permit):
    """A permit that says when it is released."""

    __slots__ = ("_ended", "_real")

    def __init__(self, real: Permit, ended: Callable[[], None]) -> None:
        self._real, self._ended = real, ended
        self.worker = real.worker

    def opened(self) -> None:
        self._real.opened()

    def move(self, worker: str) -> None:
        self._real.move(worker)
        self.worker = self._real.worker

    def release(self) -> None:
        self._real.release()
        ended, self._ended = self._ended, _nothing
        ended()


def _nothing() -> None:
    """What a second release does."""
