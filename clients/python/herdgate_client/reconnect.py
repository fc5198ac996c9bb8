"""`connect`: an endless row of sockets to one URL, one at a time.

Theory of operation. The loop that runs over a `connect` is the only thing that ever dials, so there is nobody who could
dial beside it.

    due --dial--> open --> body of the loop --ends, or socket lost--> closed
     ^              |                                                   |
     |            failed                                                |
     +--- wait: as told, else jitter that doubles with each failure ----+

Rules: handshake and session share one backoff. Only a session that lasted `stable_s` ends it; one that ends before
counts as a failure, whatever the body did with it. No wall clock. A ticket is kept until another one comes, or the
server lets us in.
"""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from inspect import iscoroutinefunction
from types import TracebackType
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import WebSocketException

from herdgate_client.dial import Dialer, leave
from herdgate_client.errors import ConfigurationError
from herdgate_client.failure import Failure, of_end, of_try
from herdgate_client.pace import Pace
from herdgate_client.told import token_of

__all__ = ["connect"]


class connect:  # noqa: N801 - called as `websockets.connect` is
    """Sockets to `url`, one after the other; loop over it.

    The first handshake is made at once. `ConnectionClosed` is the body's to catch, as with `websockets`; `break` ends
    it all, and closes the socket a moment later. Used as `async with connect(...) as sockets`, nothing is open behind
    that block, however it ends.

    Args:
        url: `ws://` or `wss://`.
        base_s: longest wait after a first failure, seconds, above 0.
        cap_s: longest wait that the server did not tell, seconds, above 0, at most a day.
        stable_s: a session that lasted this long, seconds, above 0, ends the backoff.
        on_retry: called before each wait with its seconds and one line why; a plain function.
        rng: draws the jitter; None: the system's.
        clock: monotonic seconds.
        sleep: waits for seconds of that clock.
        arguments: of `websockets.connect`; each try is made with them.

    Attributes:
        attempts: handshakes begun since a session was last stable.

    Raises:
        ConfigurationError: a setting that cannot be right.
        GaveUpError: out of the loop, when no later try can succeed.
    """

    def __init__(
        self,
        url: str,
        *,
        base_s: float = 1.0,
        cap_s: float = 30.0,
        stable_s: float = 30.0,
        on_retry: Callable[[float, str], object] | None = None,
        rng: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        **arguments: Any,
    ) -> None:
        if on_retry is not None and (not callable(on_retry) or iscoroutinefunction(on_retry)):
            raise ConfigurationError("on_retry", on_retry, "write a plain function; nobody awaits it")
        self.attempts = 0
        self._dialer = Dialer(url, arguments)
        self._pace = Pace(base_s, cap_s, stable_s)
        self._on_retry = on_retry
        self._rng = rng or random.SystemRandom()  # has no state that a fork would share
        self._clock = clock
        self._sleep = sleep
        self._failures = 0
        self._shown: dict[str, str] = {}
        self._wait: tuple[float, float, str] | None = None  # until when, how long, why
        self._turn = asyncio.Lock()
        self._entered: AsyncGenerator[ClientConnection, None] | None = None

    def __aiter__(self) -> AsyncIterator[ClientConnection]:
        return self._sockets()

    async def __aenter__(self) -> AsyncGenerator[ClientConnection, None]:
        self._entered = self._sockets()
        return self._entered

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._entered is not None:
            await self._entered.aclose()

    async def _sockets(self) -> AsyncGenerator[ClientConnection, None]:
        async with self._turn:  # loops over one object share its backoff, so they take turns
            while True:
                ws = await self._open()
                opened = self._clock()
                try:
                    yield ws
                finally:
                    await leave(ws)
                    ended = of_end(ws, self._dialer.where)
                    self._end(opened, ended)
                if ended.final is not None:
                    raise ended.final

    async def _open(self) -> ClientConnection:
        while True:
            await self._until_due()
            self.attempts += 1
            try:
                ws = await self._dialer.dial(self._shown)
            except (OSError, WebSocketException) as error:
                failure = of_try(error, self._dialer.where)
                self._plan(failure)
                if failure.final is not None:
                    raise failure.final from error
            else:
                self._let_in(ws)
                return ws

    async def _until_due(self) -> None:
        if self._wait is None:
            return
        due, delay_s, why = self._wait
        if self._on_retry is not None:
            self._on_retry(delay_s, why)
        while (left_s := due - self._clock()) > 0:  # a timer may be early
            await self._sleep(left_s)

    def _let_in(self, ws: ClientConnection) -> None:
        """The ticket is spent; a session token, if this server gives them, puts us before newcomers next time."""
        self._shown.pop("Herdgate-Ticket", None)
        tokens = ws.response.headers.get_all("Herdgate-Session") if ws.response is not None else []
        if len(tokens) == 1 and (token := token_of(tokens[0])) is not None:
            self._shown["Herdgate-Session"] = token

    def _end(self, opened: float, ended: Failure) -> None:
        if self._clock() - opened >= self._pace.stable_s:
            self.attempts = self._failures = 0
        self._plan(ended)

    def _plan(self, failure: Failure) -> None:
        if failure.told.ticket is not None:
            self._shown["Herdgate-Ticket"] = failure.told.ticket
        delay_s = self._pace.wait_s(failure.told, self._failures, self._rng)
        self._failures += 1
        self._wait = self._clock() + delay_s, delay_s, failure.why
