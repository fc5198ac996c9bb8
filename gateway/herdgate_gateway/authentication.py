"""The authentication of a route, which may be replaced while handshakes are on their way to it.

    with authentication.expecting(scope):          around the whole arrival, the admission included
        await guarded(scope, receive, send)        which leads to authentication.before(app)

An arrival counts until it has passed or is gone. What was replaced is closed as soon as none is left: not earlier, as
they still ask with it, and not when their sockets end, days later.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

from herdgate.asgi import ASGIApp, Message, Receive, Scope, Send
from herdgate_gateway.auth import AuthUrl, Jwt
from herdgate_gateway.settings import AuthTable, JwtTable

__all__ = ["Authentication"]


class Authentication:
    """Tokens verified or a service asked, whichever the table says.

    Args:
        table: it, from the settings of a route.

    Raises:
        ConfigurationError: a key file cannot be used.
    """

    def __init__(self, table: AuthTable) -> None:
        self._table = table
        asking = table.url_settings()
        # The table has made sure that it has one of the two.
        self._check = AuthUrl(asking) if asking else Jwt(cast("JwtTable", table.jwt).settings())
        self._expected: set[int] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def serves(self, table: AuthTable) -> bool:
        """True if it does what this table says, and no file has to be read again to know."""
        jwt = table.jwt.settings() if table.jwt else None
        return table == self._table and (jwt is None or jwt.is_url)

    def before(self, app: ASGIApp) -> ASGIApp:
        """`app`, for those who pass."""

        async def passed(scope: Scope, receive: Receive, send: Send) -> None:
            self.leave(scope)
            await app(scope, receive, send)

        return self._check(passed)

    async def check(self, scope: Scope) -> None:
        """Let an arrival pass, as `before` does, without an app. Cancel it when its client has left.

        Raises:
            Refused: it may not.
        """

        async def pass_on(scope: Scope, receive: Receive, send: Send) -> None:
            self.leave(scope)

        await self._check(pass_on)(scope, _nothing_yet, _nobody)

    def client_key(self, claim: str) -> Callable[[Scope], str | None] | None:
        """See `herdgate_gateway.auth.Jwt.client_key`; None where no token is verified."""
        return self._check.client_key(claim) if isinstance(self._check, Jwt) else None

    @contextmanager
    def expecting(self, scope: Scope) -> Iterator[None]:
        """Count an arrival that is on its way."""
        self.expect(scope)
        try:
            yield
        finally:
            self.leave(scope)

    def expect(self, scope: Scope) -> None:
        """An arrival is on its way."""
        self._expected.add(id(scope))
        self._idle.clear()

    def leave(self, scope: Scope) -> None:
        """It has passed, or is gone; harmless to repeat."""
        self._expected.discard(id(scope))
        if not self._expected:
            self._idle.set()

    async def retire(self) -> None:
        """Close it when nobody is on the way any more, or when cancelled."""
        try:
            await self._idle.wait()
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Close what it holds open."""
        await self._check.aclose()


async def _nothing_yet() -> Message:
    """The events of a client that waits for its 101: whoever watches it cancels the check when it leaves."""
    return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]


async def _nobody(message: Message) -> None:
    """A check that refuses raises, and says nothing itself."""
