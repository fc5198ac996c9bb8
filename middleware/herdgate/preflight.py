"""The pre-flight: a page may ask with `fetch` whether to connect now, and can read this answer, unlike a handshake's.

`GET <preflight path>?path=<guarded path>` is 200 with a ticket to come in with (a firm slot for this very moment), or a
denial like any other, with `retry_ms` and a ticket. It counts against the client's rate as a handshake does. The path
is the one the page would connect to, or the part of it below the point where the app is mounted. Pages of other hosts
may read the answer only if their origin is allowed.
"""

import json
from collections.abc import Sequence
from urllib.parse import unquote_plus

from herdgate.asgi import Scope, Send
from herdgate.core.answers import Arrival, Denied, Reason
from herdgate.denial import Headers, challenge, http_denial
from herdgate.gate import Gate
from herdgate.identity import Identity
from herdgate.origins import OriginRules
from herdgate.paths import PathPatterns, route_path
from herdgate.refusal import refuse_http
from herdgate.request import Request, read_request

__all__ = ["Preflight"]


class Preflight:
    """Answers pre-flights for the guarded paths of one gate."""

    def __init__(
        self,
        gate: Gate,
        guarded: Sequence[PathPatterns],
        identity: Identity,
        origins: OriginRules,
        statuses: dict[Reason, int],
        *,
        enforce: bool,
    ) -> None:
        self._gate = gate
        self._guarded = guarded
        self._identity = identity
        self._origins = origins
        self._statuses = statuses
        self._enforce = enforce

    async def __call__(self, scope: Scope, send: Send) -> None:
        """Answer one request."""
        request = read_request(scope, self._gate.route, self._identity.forwarding_header)
        status, headers, body = await self._answer(scope, request)
        await refuse_http(send, status, [*headers, *self._origins.sharing(request.origin, request.host)], body)

    async def _answer(self, scope: Scope, request: Request) -> tuple[int, Headers, bytes]:
        if scope["method"] != "GET":
            return _answer(405, {"error": "ask with GET"}, [(b"allow", b"GET")])
        asked = _asked_path(scope.get("query_string", b""))
        path = route_path({**scope, "path": asked})
        if not asked.startswith("/") or not any(guarded.match(path) for guarded in self._guarded):
            return _answer(404, {"error": "ask for a guarded path, as in ?path=/ws"})
        answer = await self._reserve(scope, request)
        if isinstance(answer, Denied):
            status, (headers, body) = self._statuses[answer.reason], http_denial(answer)
            return status, [*headers, *challenge(status)], body
        return _answer(200, {"ticket": answer})

    async def _reserve(self, scope: Scope, request: Request) -> str | Denied:
        """A ticket to come in with now, or a denial; an empty one for who is let past in any case."""
        client = self._identity.client(scope, request)
        if client.exempt:
            return ""
        allowed = self._origins.allow(request.origin, request.host)
        klass = self._identity.klass(scope, request)
        answer = await self._gate.reserve(Arrival(client, request.ticket, allowed, klass=klass))
        if self._enforce or isinstance(answer, str):
            return answer
        self._gate.let_past(client, exempt=False).release()  # counted here, like a handshake in shadow mode
        return ""


def _asked_path(query: bytes) -> str:
    """The first `path` of the query, decoded; empty if there is none."""
    for pair in query.split(b"&"):
        name, _, value = pair.partition(b"=")
        if name == b"path":
            return unquote_plus(value.decode("latin-1"))
    return ""


def _answer(status: int, content: dict[str, str | None], headers: Headers | None = None) -> tuple[int, Headers, bytes]:
    body = json.dumps(content).encode()
    always = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
    return status, always + (headers or []), body
