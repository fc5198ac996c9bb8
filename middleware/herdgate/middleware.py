"""The ASGI middleware: guards WebSocket handshakes, and plain HTTP where asked, of any ASGI app.

    arrival -> who is it -> gate decides -> admitted: the app, with a permit until it is done
                                         -> firm slot close by: held until then
                                         -> denied: told when to come back

`lifespan` and all that is not guarded pass untouched. A permit is released exactly once, whatever happens.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from herdgate.asgi import ASGIApp, Message, Receive, Scope, Send
from herdgate.core.answers import Admitted, Denied, Reason
from herdgate.core.clients import AddressRules
from herdgate.core.errors import ConfigurationError
from herdgate.core.limits import Limits
from herdgate.core.permits import Permit
from herdgate.denial import DenialStyle
from herdgate.fleet import Fleet, check_rate_min, fleet_of
from herdgate.gate import Gate
from herdgate.identity import ClientKey, Identity
from herdgate.inbox import Inbox
from herdgate.logs import guard_server_logs
from herdgate.origins import AllowedOrigins, OriginRules
from herdgate.paths import PathPatterns, route_path
from herdgate.preflight import Preflight
from herdgate.reception import HELD, Decision, Held, Reception, Visit, admitted_before
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
from herdgate.settings import check_kind

__all__ = ["AdmissionMiddleware", "Decision"]

_NO_SETTINGS = {"store": None, "secrets": None, "processes": 1}


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

    Attributes:
        gate: decides.
        reception: what stands before it.

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
        if preflight_path is not None and not (isinstance(preflight_path, str) and preflight_path.startswith("/")):
            raise ConfigurationError("preflight_path", preflight_path, 'write "/path", or None for no pre-flight')
        check_kind("statuses", statuses, (Mapping, type(None)), 'write a dict, as in {"rate": 503}')
        self.app = app
        self.gate = _choose_gate(limits, gate, secrets=secrets, processes=processes, store=store)
        self._websockets = PathPatterns("websocket_paths", websocket_paths)
        self._http = PathPatterns("http_paths", http_paths)
        addresses = AddressRules() if addresses is None else addresses
        identity = Identity(addresses, client_key, exempt_keys, client_class, self.gate.is_session_token)
        origins = OriginRules(allowed_origins)
        self.reception = Reception(
            self.gate,
            identity,
            origins,
            self._websockets,
            denial=denial,
            statuses=statuses or {},
            max_wait_s=max_wait_s,
            max_held=max_held,
            enforce=enforce,
            on_decision=on_decision,
        )
        self._preflight_path = preflight_path
        self._answer_preflight = Preflight(
            self.gate, (self._websockets, self._http), identity, origins, self.reception.statuses, enforce=enforce
        )
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
        guest = _Guest(self.reception.receive(scope), Inbox(receive), send)
        try:
            if scope["type"] == "websocket":
                await guest.inbox.read_connect()
            verdict = admitted_before(scope) or await self._decide(guest)
            if isinstance(verdict, Permit):
                await self._run(guest, verdict)
            elif verdict is not None:
                await self._deny(guest, verdict)
            elif scope["type"] == "websocket":
                await let_go(send)
        finally:
            guest.inbox.close()

    async def _decide(self, guest: "_Guest") -> Permit | Denied | None:
        """A permit, a denial, or None for a client that has left."""
        visit, reception = guest.visit, self.reception
        if visit.client.exempt:
            reception.report("exempt", visit)
            return self.gate.let_past(visit.client, exempt=True)
        verdict = await self._verdict(guest)
        if verdict is None:
            self.gate.gone += 1
            reception.report("gone", visit)
            return None
        if isinstance(verdict, Admitted):
            try:
                reception.report("admitted", visit)
            except BaseException:  # not even an exit may keep the permit: the server may go on after it
                verdict.permit.release()
                raise
            return verdict.permit
        reception.report("denied", visit, verdict, enforced=reception.enforce)
        return verdict if reception.enforce else self.gate.let_past(visit.client, exempt=False)

    async def _verdict(self, guest: "_Guest") -> Admitted | Denied | None:
        """The gate's decision, after holding the arrival where its firm slot is close by."""
        inbox = guest.inbox
        if _is_bodiless(guest.visit.scope) and await inbox.has_left():
            return None
        arrival = self.reception.arrival(guest.visit)
        verdict = await self.gate.decide(arrival)
        while isinstance(verdict, Denied) and self.reception.is_worth_holding(verdict):
            with self.gate.holding(verdict):
                if await inbox.wait_left(verdict.retry_s or 0.0):
                    return None
            again = self.reception.arrival(guest.visit)  # its worker may be another one by now
            verdict = await self.gate.decide(again._replace(ticket=verdict.ticket, counted=True))
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
                self.gate.undo(admitted)
        return admitted if is_here else None

    async def _run(self, guest: "_Guest", permit: Permit) -> None:
        visit, answered = guest.visit, False

        async def send_noting_start(message: Message) -> None:
            nonlocal answered
            answered = True
            if message["type"] in ("websocket.accept", "http.response.start"):
                permit.opened()
            if message["type"] == "websocket.accept":
                told = self.reception.session_headers(visit)
                message = {**message, "headers": [*message.get("headers", ()), *told]} if told else message
            await guest.send(message)

        held = Held(permit, partial(self.gate.invite, visit.klass))
        visit.scope.setdefault("state", {})[HELD] = held
        try:
            await self.app(visit.scope, guest.inbox.receive, send_noting_start)
        except Refused as refused:
            if answered:
                raise
            permit.release()
            denied = await self.gate.refuse(refused.reason, visit.klass)
            self.reception.report("denied", visit, denied)
            await self._deny(guest, denied, refused.status, refused.challenge)
        finally:
            permit.release()

    async def _deny(
        self, guest: "_Guest", denied: Denied, status: int | None = None, challenged: str | None = None
    ) -> None:
        visit, inbox, send = guest
        if visit.scope["type"] == "http":
            await refuse_http(send, *self.reception.http_answer(visit, denied, status, challenged))
        elif self.reception.closes(visit, denied) and offers_close_denial(visit.scope):
            await close_websocket(send, *self.reception.close_answer(visit, denied))
        elif offers_http_denial(visit.scope):
            answer = self.reception.http_answer(visit, denied, status, challenged)
            await refuse_websocket(inbox.receive, send, *answer)
        else:
            await reject_websocket(send)


class _Guest(NamedTuple):
    """One guarded request, from its arrival to the end of what it came for."""

    visit: Visit
    inbox: Inbox
    send: Send


def _is_bodiless(scope: Scope) -> bool:
    """True if reading ahead cannot ask the client for a body that it may not need to send (100 Continue)."""
    return scope["type"] == "websocket" or scope["method"] in ("GET", "HEAD")


def _choose_gate(limits: Limits | None, gate: Gate | None, **settings: Any) -> Gate:
    if gate is None and limits is not None:
        return _make_gate(limits, **settings)
    if gate is None:
        raise ConfigurationError("limits", None, "write limits=Limits(rate=...), or give a gate")
    check_kind("gate", gate, Gate, "make one with Gate(Limits(rate=...))")
    beside = [name for name, value in {"limits": limits, **settings}.items() if value != _NO_SETTINGS.get(name)]
    if beside:
        names = {"limits": "limits", "store": "fleet=Fleet(...)"}
        given = ", ".join(names.get(name, f"{name}=...") for name in beside)
        way_out = f"give it to the gate itself: Gate({given if 'limits' in beside else f'limits, {given}'})"
        raise ConfigurationError("gate", f"{' and '.join(beside)} beside it", way_out)
    return gate


def _make_gate(limits: Limits, store: str | Fleet | None, processes: int, **settings: Any) -> Gate:
    if store is None:
        return Gate(limits, processes=processes, **settings)
    fleet = fleet_of("store", store)
    if processes != 1:
        raise ConfigurationError(
            "processes", processes, "leave it out beside store: a fleet shares its limits by itself"
        )
    check_kind("limits", limits, Limits, "write Limits(rate=...)")
    check_rate_min(fleet, limits.rate)
    return Gate(limits, fleet=fleet, **settings)
