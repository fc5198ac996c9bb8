"""Authentication by another service: a GET to `url` per handshake, before the handshake is answered.

    2xx       passes
    401, 403  refused with that status, and the `WWW-Authenticate` that came with it
    the rest  refused as `auth_busy`: another status, a redirect, no answer in time, too many in flight

At most `max_busy` calls are in flight; the excess is refused at once, never queued: a queue in front of a slow service
only makes clients wait for a refusal.

The service is sent the chosen headers of the handshake, and of our own `X-Original-URI` (with the query),
`X-Original-Method`, `X-Forwarded-Host`, `X-Forwarded-Proto` and `X-Real-IP` (the peer), where not chosen too.
"""

import asyncio
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

import httpx

from herdgate import ConfigurationError, Refused
from herdgate.asgi import ASGIApp, Receive, Scope, Send
from herdgate.core.numbers import check_number
from herdgate.inbox import Inbox
from herdgate.refusal import let_go
from herdgate_gateway.auth.outbound import outbound_client, read_bounded, read_url, shown
from herdgate_gateway.tasks import reap

__all__ = ["AuthUrl", "AuthUrlSettings"]

Headers = list[tuple[bytes, bytes]]

MOST_BODY = 16 * 1024  # bytes read, so that the connection can be used again; its content does not matter
LOG_EVERY_S = 10.0

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", re.ASCII)
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff]")  # of a header (RFC 9110 section 5.5)
_NEVER_SENT = re.compile(
    r"host|connection|keep-alive|te|trailer|transfer-encoding|upgrade|content-length|expect|proxy-.*|sec-websocket-key"
    r"|sec-websocket-(version|extensions|accept)",
    re.IGNORECASE,
)

_logger = logging.getLogger("herdgate.gateway")


@dataclass(frozen=True, kw_only=True)
class AuthUrlSettings:
    """Whom to ask, and how.

    Attributes:
        url: http or https.
        timeout_s: seconds for a whole call, 0.01 to 60.
        max_busy: calls in flight; 0 refuses everybody.
        headers: names of the handshake's headers that are sent.
        response_headers: names of the answer's headers that the worker gets; the client's own of that name are dropped.

    Raises:
        ConfigurationError: one of these cannot be right.
    """

    url: str
    timeout_s: float = 2.0
    max_busy: int = 100
    headers: Sequence[str] = ("authorization", "cookie")
    response_headers: Sequence[str] = ()

    def __post_init__(self) -> None:
        read_url("auth.url", self.url)
        check_number("auth.timeout_s", self.timeout_s, least=0.01, most=60, unit="seconds")
        check_number("auth.max_busy", self.max_busy, least=0, unit="a whole number of calls", whole=True)
        _check_names("auth.headers", self.headers)
        _check_names("auth.response_headers", self.response_headers)


class AuthUrl:
    """Lets through requests that a service lets through.

    `AuthUrl(settings)(app)` is the wrapped app. A client that leaves ends its call.

    Attributes:
        busy: calls in flight.
    """

    def __init__(self, settings: AuthUrlSettings) -> None:
        self.busy = 0
        self._settings = settings
        self._url = read_url("auth.url", settings.url)
        self._client = outbound_client(max(settings.max_busy, 1), settings.timeout_s)
        self._sent = frozenset(name.lower().encode() for name in settings.headers)
        self._taken = frozenset(_plain(name.encode()) for name in settings.response_headers)
        self._complained_at = float("-inf")
        self._calls: set[asyncio.Future[httpx.Response]] = set()

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def checked(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "websocket":
                await self._check_websocket(app, scope, receive, send)
                return
            if scope["type"] == "http":
                self._give(scope, await self._ask(scope))
            await app(scope, receive, send)

        return checked

    async def aclose(self) -> None:
        """End the calls, and close the connections to the service."""
        await reap(*self._calls)
        await self._client.aclose()

    async def _check_websocket(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        inbox = Inbox(receive)
        try:
            response = await self._ask_while_there(scope, inbox)
            if response is None:
                await let_go(send)
                return
            self._give(scope, response)
            await app(scope, inbox.receive, send)
        finally:
            inbox.close()

    async def _ask_while_there(self, scope: Scope, inbox: Inbox) -> httpx.Response | None:
        """The answer; None if the client has left meanwhile."""
        asking = asyncio.ensure_future(self._ask(scope))
        leaving = asyncio.ensure_future(inbox.wait_left(self._settings.timeout_s))
        try:
            await asyncio.wait((asking, leaving), return_when=asyncio.FIRST_COMPLETED)
            if leaving.done() and leaving.result():
                return None
            return await asking
        finally:
            await reap(asking, leaving)

    async def _ask(self, scope: Scope) -> httpx.Response:
        if self.busy >= self._settings.max_busy:
            raise Refused("auth_busy")
        self.busy += 1
        # Not cancelled with its client: a cancelled call may keep its place in the pool of connections for ever.
        calling = asyncio.ensure_future(self._call(scope))
        self._calls.add(calling)
        calling.add_done_callback(self._called)
        try:
            response = await asyncio.shield(calling)
        except (httpx.HTTPError, TimeoutError) as error:
            self._complain(f"{type(error).__name__} {error}".strip())
            raise Refused("auth_busy") from None
        if response.status_code in (401, 403):
            raise Refused("auth", response.status_code, challenge=_challenge(response))
        if not response.is_success:
            self._complain(f"status {response.status_code}")
            raise Refused("auth_busy")
        return response

    async def _call(self, scope: Scope) -> httpx.Response:
        async with (
            asyncio.timeout(self._settings.timeout_s),
            self._client.stream("GET", self._url, headers=self._headers(scope)) as response,
        ):
            await read_bounded(response, MOST_BODY)
        return response

    def _called(self, calling: asyncio.Future[httpx.Response]) -> None:
        self.busy -= 1
        self._calls.discard(calling)
        if not calling.cancelled():
            calling.exception()  # asked for, or the loop would complain that nobody did

    def _headers(self, scope: Scope) -> Headers:
        chosen = [(name, value) for name, value in scope["headers"] if name in self._sent]
        there = {name for name, _ in chosen}
        return chosen + [(name, value) for name, value in _describe(scope) if name not in there]

    def _give(self, scope: Scope, response: httpx.Response) -> None:
        """Put the taken headers in place of whatever the client sent under their names."""
        if not self._taken:
            return
        kept = [(name, value) for name, value in scope["headers"] if _plain(name) not in self._taken]
        given = [(name.lower(), value) for name, value in response.headers.raw if _plain(name) in self._taken]
        scope["headers"] = kept + given

    def _complain(self, why: str) -> None:
        """One line now and then: a crowd must not flood the log."""
        if time.monotonic() - self._complained_at >= LOG_EVERY_S:
            self._complained_at = time.monotonic()
            _logger.warning("no verdict from %s (%s); handshakes are refused for it", shown(self._url), why)


def _challenge(response: httpx.Response) -> str | None:
    """How the service wants clients to authenticate (RFC 9110 section 11.6.1); None: nothing that can be sent."""
    told = [value.decode("latin-1") for name, value in response.headers.raw if name.lower() == b"www-authenticate"]
    return ", ".join(filter(_VALUE.fullmatch, told)) or None


def _describe(scope: Scope) -> Headers:
    """What the service cannot see by itself."""
    path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    query: bytes = scope.get("query_string", b"")
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    described = [
        (b"x-original-uri", path + b"?" + query if query else path),
        (b"x-original-method", scope.get("method", "GET").encode()),
        (b"x-forwarded-host", host),
        (b"x-forwarded-proto", b"https" if scope.get("scheme") in ("wss", "https") else b"http"),
    ]
    peer = scope.get("client")
    return [*described, (b"x-real-ip", peer[0].encode())] if peer else described


def _plain(name: bytes) -> bytes:
    """A header's name as a CGI-like worker sees it, which takes `X_User` for `X-User`."""
    return name.lower().replace(b"_", b"-")


def _check_names(field: str, names: Sequence[str]) -> None:
    if isinstance(names, str) or not all(_NAME.fullmatch(name) for name in names):
        raise ConfigurationError(field, names, 'write a list of header names, as in ["authorization"]')
    for name in names:
        if _NEVER_SENT.fullmatch(name):
            raise ConfigurationError(field, name, "leave this one out: it belongs to one connection only")
