"""The ASGI middleware: guards WebSocket handshakes, and plain HTTP where asked, of any ASGI app.

    arrival -> who is it -> gate decides -> admitted: the app, with a permit until it is done
                                         -> firm slot close by: held until then
                                         -> denied: told when to come back

`lifespan` and all that is not guarded pass untouched. A permit is released exactly once, whatever happens.
"""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from herdgate.asgi import ASGIApp, Message, Receive, Scope, Send
from herdgate.core.answers import Admitted, Arrival, Denied, Reason
from herdgate.core.clients import AddressRules, Client
from herdgate.core.errors import ConfigurationError
from herdgate.core.limits import Limits
from herdgate.core.numbers import check_number
from herdgate.core.permits import Permit
from herdgate.denial import (
    DenialStyle,
    Headers,
    challenge,
    close_reason,
    http_denial,
    our_cookie,
    read_statuses,
)
from herdgate.fleet import Fleet
from herdgate.gate import Gate
from herdgate.identity import ClientKey, Identity
from herdgate.inbox import Inbox
from herdgate.logs import DenialLog, guard_server_logs
from herdgate.origins import AllowedOrigins, OriginRules, is_same_host
from herdgate.paths import PathPatterns, route_path
from herdgate.preflight import Preflight
from herdgate.refusal import (
    close_websocket,
    let_go,
    offers_close_denial,
    offers_http_denial,
    refuse_http,
    refuse_websocket,
    reject_websocket,
)
from herdgate.refused import Refused
from herdgate.request import SESSION_COOKIE, SESSION_HEADER, TICKET_COOKIE, Request, read_request
from herdgate.settings import check_function, check_kind

__all__ = ["AdmissionMiddleware", "Decision"]

Outcome = Literal["admitted", "denied", "gone", "exempt"]

_NO_SETTINGS = {"secrets": None, "processes": 1, "fleet": None}

_logger = logging.getLogger("herdgate")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one arrival, for `on_decision`.

    Attributes:
        outcome: `gone`: the client left before the verdict; `exempt`: none was made.
        client: the client key.
        path: the guarded path.
        reason: why it was denied.
        retry_s: seconds told to wait; None for never, and for the admitted.
        enforced: False if a denial was only counted (shadow mode).
    """

    outcome: Outcome
    client: str
    path: str
    reason: Reason | None = None
    retry_s: float | None = None
    enforced: bool = True


class AdmissionMiddleware:
    """Admits a crowd at the set rate, in order; everyone else is told when to come back.

    Args:
        app: any ASGI 3 app.
        limits: what is admitted. Give this, or `gate`.
        gate: a gate made beforehand, to read or change it while it runs, or to share it.
        store: replicas of the app share one calendar through a Redis: its URL, or a `Fleet`.
        secrets: sign tickets; the first signs, all verify. None: random, so that tickets end with this process.
        processes: how many processes share the limits, each with a middleware of its own; see `Gate`.
        websocket_paths: guarded handshakes: exact paths, `/prefix/*`, or `*` for all.
        http_paths: guarded plain requests (server-sent events, long polling), the same way.
        preflight_path: answers a page that asks with GET and `?path=` whether to connect. None: off.
        addresses: how a client's address is found; by default the peer's.
        client_key: a better key for an arrival (account, verified claim), or None for its address.
        exempt_keys: keys from `client_key` that are let past and only counted.
        client_class: which of `Limits.classes` an arrival is in, by name. None, or for whom it returns None: `resume`
            with a session token, the last one without.
        allowed_origins: pages that may connect: a list, `same-host`, or None for all.
        denial: how handshakes are refused; `auto`: browsers by close 1013, everyone else by HTTP.
        statuses: HTTP statuses in place of the usual ones, by reason.
        max_wait_s: a handshake whose firm slot is at most this far away is held until then, seconds; 0: never.
        max_held: handshakes held at the same time.
        enforce: False decides and counts, and lets everyone past all the same.
        on_decision: called with each `Decision`; must be quick and not raise.

    Raises:
        ConfigurationError: a setting is wrong; the message names it and the way out.
    """

    def __init__(
        self,
        app: ASGIApp,
        limits: Limits | None = None,
        *,
        gate: Gate | None = None,
        store: str | Fleet | None = None,
        secrets: Sequence[str | bytes] | None = None,
        processes: int = 1,
        websocket_paths: Sequence[str] = ("*",),
        http_paths: Sequence[str] = (),
        preflight_path: str | None = "/_herdgate/admission",
        addresses: AddressRules | None = None,
        client_key: ClientKey | None = None,
        exempt_keys: Collection[str] = (),
        client_class: ClientKey | None = None,
        allowed_origins: AllowedOrigins = None,
        denial: DenialStyle = "auto",
        statuses: Mapping[Reason, int] | None = None,
        max_wait_s: float = 0.5,
        max_held: int = 1_000,
        enforce: bool = True,
        on_decision: Callable[[Decision], None] | None = None,
    ) -> None:
        if not callable(app):
            raise ConfigurationError("app", app, "give the ASGI app to guard")
        if denial not in ("auto", "http", "close"):
            raise ConfigurationError("denial", denial, 'write "auto", "http" or "close"')
        if preflight_path is not None and not (isinstance(preflight_path, str) and preflight_path.startswith("/")):
            raise ConfigurationError("preflight_path", preflight_path, 'write "/path", or None for no pre-flight')
        if on_decision is not None:
            check_function("on_decision", on_decision, "give a plain function of one Decision")
        check_kind("enforce", enforce, bool, "write True, or False to count only")
        check_kind("statuses", statuses, (Mapping, type(None)), 'write a dict, as in {"rate": 503}')
        check_number("max_wait_s", max_wait_s, least=0, unit="seconds")
        check_number("max_held", max_held, least=0, unit="a whole number of handshakes", whole=True)
        self.app = app
        self.gate = _choose_gate(limits, gate, secrets=secrets, processes=processes, fleet=_fleet_of(store))
        self._websockets = PathPatterns("websocket_paths", websocket_paths)
        self._http = PathPatterns("http_paths", http_paths)
        addresses = AddressRules() if addresses is None else addresses
        self._identity = Identity(addresses, client_key, exempt_keys, client_class, self.gate.is_session_token)
        self._origins = OriginRules(allowed_origins)
        self._denial = denial
        self._statuses = read_statuses(statuses or {})
        self._preflight_path = preflight_path
        self._answer_preflight = Preflight(
            self.gate, (self._websockets, self._http), self._identity, self._origins, self._statuses, enforce=enforce
        )
        self._max_wait_s, self._max_held = max_wait_s, max_held
        self._enforce = enforce
        self._on_decision = on_decision
        self._report_failed = False
        self._log = DenialLog()
        guard_server_logs()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        if kind == "lifespan" and self.gate.is_shared:
            await self._live(scope, receive, send)
            return
        if kind not in ("websocket", "http"):
            await self.app(scope, receive, send)
            return
        path = route_path(scope)
        if kind == "http" and path == self._preflight_path:
            await self._answer_preflight(scope, send)
        elif self._is_guarded(scope, path):
            await self._guard(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Join the fleet while the app lives, and leave it with the app."""
        is_over = False

        async def receive_noting_end() -> Message:
            nonlocal is_over
            message = await receive()
            is_over = message["type"] == "lifespan.shutdown"
            return message

        self.gate.start()
        await self.app(scope, receive_noting_end, send)
        if is_over:
            await self.gate.aclose()

    def _is_guarded(self, scope: Scope, path: str) -> bool:
        if scope["type"] == "websocket":
            return self._websockets.match(path)
        return scope["method"] != "OPTIONS" and self._http.match(path)  # a browser asks so before it asks

    async def _guard(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = read_request(scope, self.gate.route, self._identity.forwarding_header)
        client, klass = self._identity.client(scope, request), self._identity.klass(scope, request)
        visit = _Visit(scope, request, client, klass, Inbox(receive), send)
        try:
            if scope["type"] == "websocket":
                await visit.inbox.read_connect()
            verdict = await self._decide(visit)
            if isinstance(verdict, Permit):
                await self._run(visit, verdict)
            elif verdict is not None:
                await self._deny(visit, verdict)
            elif scope["type"] == "websocket":
                await let_go(send)
        finally:
            visit.inbox.close()

    async def _decide(self, visit: "_Visit") -> Permit | Denied | None:
        """A permit, a denial, or None for a client that has left."""
        if visit.client.exempt:
            self._report("exempt", visit)
            return self.gate.let_past(visit.client, exempt=True)
        verdict = await self._verdict(visit)
        if verdict is None:
            self.gate.gone += 1
            self._report("gone", visit)
            return None
        if isinstance(verdict, Admitted):
            try:
                self._report("admitted", visit)
            except BaseException:  # not even an exit may keep the permit: the server may go on after it
                verdict.permit.release()
                raise
            return verdict.permit
        self._count(visit, verdict, enforced=self._enforce)
        return verdict if self._enforce else self.gate.let_past(visit.client, exempt=False)

    async def _verdict(self, visit: "_Visit") -> Admitted | Denied | None:
        """The gate's decision, after holding the arrival where its firm slot is close by."""
        _, request, client, klass, inbox, _ = visit
        if _is_bodiless(visit.scope) and await inbox.has_left():
            return None
        allowed = self._origins.allow(request.origin, request.host)
        arrival = Arrival(client, request.ticket, allowed, klass=klass)
        verdict = await self.gate.decide(arrival)
        while isinstance(verdict, Denied) and self._is_worth_holding(verdict):
            with self.gate.holding(verdict):
                if await inbox.wait_left(verdict.retry_s or 0.0):
                    return None
            verdict = await self.gate.decide(arrival._replace(ticket=verdict.ticket, counted=True))
        if self.gate.is_shared and isinstance(verdict, Admitted):
            return await self._unless_left(verdict, inbox)
        return verdict

    async def _unless_left(self, admitted: Admitted, inbox: Inbox) -> Admitted | None:
        """The admission; None, and it is undone, for a client that has left while the fleet was asked."""
        is_here = False
        try:
            is_here = not await inbox.has_left()
        finally:  # cancelled here, it is undone as well
            if not is_here:
                admitted.permit.release()
                self.gate.give_back()
        return admitted if is_here else None

    def _is_worth_holding(self, denied: Denied) -> bool:
        if not denied.firm or denied.reason != "rate" or not self._enforce:
            return False
        return (denied.retry_s or 0.0) <= self._max_wait_s and self.gate.held < self._max_held

    async def _run(self, visit: "_Visit", permit: Permit) -> None:
        answered = False

        async def send_noting_start(message: Message) -> None:
            nonlocal answered
            answered = True
            if message["type"] in ("websocket.accept", "http.response.start"):
                permit.opened()
            if message["type"] == "websocket.accept":
                message = self._with_session_token(visit, message)
            await visit.send(message)

        if permit.worker is not None:
            visit.scope.setdefault("state", {})["worker"] = permit.worker
        try:
            await self.app(visit.scope, visit.inbox.receive, send_noting_start)
        except Refused as refused:
            if answered:
                raise
            permit.release()
            denied = await self.gate.refuse(refused.reason, visit.klass)
            self._count(visit, denied)
            await self._deny(visit, denied, refused.status, refused.challenge)
        finally:
            permit.release()

    async def _deny(
        self, visit: "_Visit", denied: Denied, status: int | None = None, challenged: str | None = None
    ) -> None:
        scope, request, _, _, inbox, send = visit
        status = status or self._statuses[denied.reason]
        headers, body = http_denial(denied)
        headers += challenge(status, challenged)
        if scope["type"] == "http":
            await refuse_http(send, status, [*headers, *self._origins.sharing(request.origin, request.host)], body)
        elif self._closes(request, denied) and offers_close_denial(scope):
            subprotocol = next(filter(None, scope.get("subprotocols") or ()), None)
            await close_websocket(send, subprotocol, self._ticket_cookie(visit, denied), close_reason(denied))
        elif offers_http_denial(scope):
            await refuse_websocket(inbox.receive, send, status, headers, body)
        else:
            await reject_websocket(send)

    def _closes(self, request: Request, denied: Denied) -> bool:
        """True for a close denial; a page that may never come is never told more than no."""
        if denied.reason in ("origin", "auth"):
            return False
        return self._denial == "close" or (self._denial == "auto" and request.origin is not None)

    def _with_session_token(self, visit: "_Visit", accept: Message) -> Message:
        token = self.gate.session_token()
        if token is None:
            return accept
        cookie = self._cookie(visit, f"{SESSION_COOKIE}{self.gate.route}", token, self.gate.limits.session_ttl_s)
        return {**accept, "headers": [*accept.get("headers", ()), (SESSION_HEADER, token.encode()), cookie]}

    def _ticket_cookie(self, visit: "_Visit", denied: Denied) -> Headers:
        if denied.ticket is None:
            return []
        age_s = (denied.retry_s or 0) + self.gate.limits.grace_s
        return [self._cookie(visit, f"{TICKET_COOKIE}{self.gate.route}", denied.ticket, age_s)]

    def _cookie(self, visit: "_Visit", name: str, value: str, age_s: float) -> tuple[bytes, bytes]:
        scope, request = visit.scope, visit.request
        return b"set-cookie", our_cookie(
            name,
            value,
            age_s=age_s,
            path=_cookie_path(scope.get("root_path", "") + self._websockets.cookie_path()),
            secure=scope.get("scheme") == "wss",
            same_site=request.origin is None or is_same_host(request.origin, request.host),
        )

    def _count(self, visit: "_Visit", denied: Denied, *, enforced: bool = True) -> None:
        self._log.count(denied.reason)
        self._report("denied", visit, denied, enforced=enforced)

    def _report(
        self, outcome: Outcome, visit: "_Visit", denied: Denied | None = None, *, enforced: bool = True
    ) -> None:
        if self._on_decision is None:
            return
        reason, retry_s = (denied.reason, denied.retry_s) if denied else (None, None)
        decision = Decision(outcome, visit.client.key, route_path(visit.scope), reason, retry_s, enforced)
        try:
            self._on_decision(decision)
        except Exception:
            if not self._report_failed:
                self._report_failed = True
                _logger.exception("on_decision failed; the decision stands (said once)")


class _Visit(NamedTuple):
    """One guarded request, from its arrival to the end of what it came for."""

    scope: Scope
    request: Request
    client: Client
    klass: str | None
    inbox: Inbox
    send: Send


def _cookie_path(path: str) -> str:
    """The path as browsers write it; a root path may hold what a client chose, even a line break."""
    return quote(path, safe="/!$&'()*+,:=@")


def _is_bodiless(scope: Scope) -> bool:
    """True if reading ahead cannot ask the client for a body that it may not need to send (100 Continue)."""
    return scope["type"] == "websocket" or scope["method"] in ("GET", "HEAD")


def _fleet_of(store: str | Fleet | None) -> Fleet | None:
    return store if store is None or isinstance(store, Fleet) else Fleet(store)


def _choose_gate(limits: Limits | None, gate: Gate | None, **settings: Any) -> Gate:
    if gate is None and limits is not None:
        return Gate(limits, **settings)
    if gate is None:
        raise ConfigurationError("limits", None, "write limits=Limits(rate=...), or give a gate")
    check_kind("gate", gate, Gate, "make one with Gate(Limits(rate=...))")
    if limits is not None or settings != _NO_SETTINGS:
        raise ConfigurationError("gate", "limits or other settings of one beside it", "give them to the gate itself")
    return gate
