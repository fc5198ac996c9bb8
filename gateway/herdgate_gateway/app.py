"""The gateway as an ASGI app: finds the route of a request and hands it over.

    websocket    first route that covers its path -> its checks, admission, authentication -> relay; no route: 404
    http         health, pre-flight; another upgrade: 426; everything else: 404

All routes share one calendar, so one rate, the fleet's where there is one; per-client limits, permits, denial and
authentication are each route's own.

Other settings are planned, which may fail, and then taken, which may not. A route keeps its gate by its name, so that
permits, counts and calendar go on; all around the gate is made anew, and who is inside the old stays there to the end.
"""

import asyncio
import json
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import parse_qs
from weakref import WeakValueDictionary

from herdgate import Fleet, Gate, Limits
from herdgate.asgi import Receive, Scope, Send
from herdgate.paths import route_path
from herdgate.refusal import refuse_http, refuse_websocket
from herdgate_gateway.authentication import Authentication
from herdgate_gateway.descriptors import most_sockets
from herdgate_gateway.drain.sockets import OpenSockets, Register
from herdgate_gateway.handshake import NO_HANDSHAKE, answer_of
from herdgate_gateway.leases.table import LeaseTable
from herdgate_gateway.relay import MessageRelay
from herdgate_gateway.route import Route
from herdgate_gateway.routing.opening import make_router
from herdgate_gateway.settings import Settings
from herdgate_gateway.settings.routes import RouteTable
from herdgate_gateway.splice.relay import SpliceRelay
from herdgate_gateway.workers import WorkerPool

__all__ = ["NO_ROUTE", "Gateway"]


class Gateway:
    """Serves what its settings say.

    Args:
        settings: of the gateway; this process admits its share of them, see `Settings.process_limits`.
        fleet: where the calendar is that this process shares. None: where the settings say.
        leases: where the owners of connections stand. None: where the settings say.
        make_gate: makes a gate, of the arguments of `herdgate.Gate`.

    Attributes:
        pool: the workers.
        register: the sockets whose messages are passed on.
        splices: the sockets whose bytes are passed on; None where the relay is one of messages.
        router: knows who owns which connection; None: any worker may have any.

    Raises:
        ConfigurationError: a key file cannot be used.
    """

    def __init__(
        self,
        settings: Settings,
        fleet: Fleet | None = None,
        leases: LeaseTable | None = None,
        make_gate: Callable[..., Gate] = Gate,
    ) -> None:
        self._make_gate = make_gate
        self.pool = WorkerPool(settings.workers, settings.breaker.settings())
        self.router = make_router(settings, self.pool, leases)
        self.splices: SpliceRelay | None = None
        self._settings = settings
        self._fleet = fleet or settings.fleet.fleet()
        self._routes: Sequence[Route] = ()
        # Weak: a route that comes back has its old gate as long as sockets of it are open.
        self._gates: WeakValueDictionary[str, Gate] = WeakValueDictionary()
        self._set_live: dict[str, float | None] = {}
        self._own_secrets = (secrets.token_urlsafe(32),)
        self._retiring: set[asyncio.Task[None]] = set()
        self._is_draining = False
        self.register = Register(lambda: len(self.sockets))
        self.plan(settings)()

    @property
    def gates(self) -> Mapping[str, Gate]:
        """The gates by route name, in the order of the settings."""
        return {route.table.name: route.gate for route in self._routes}

    @property
    def is_ready(self) -> bool:
        """True once it knows where arrivals go."""
        return self.router is None or self.router.is_ready

    @property
    def health_path(self) -> str | None:
        """What is answered with 200 to whoever asks; None: nothing is."""
        return self._settings.health_path

    @property
    def sockets(self) -> OpenSockets:
        """All that are open."""
        splices, bridges = self.splices, self.register.bridges
        return OpenSockets(bridges.keys) if splices is None else OpenSockets(lambda: splices.joints, bridges.keys)

    def drain(self) -> None:
        """Refuse every arrival from now on, with a hint; sockets stay."""
        self._is_draining = True
        for gate in self.gates.values():
            gate.drain()

    def set_rate(self, rate: float | None) -> None:
        """Change the one rate of all routes, until settings come with another; see `herdgate.Gate.set_rate`."""
        self._routes[0].gate.set_rate(rate)
        self._keep_live("rate", rate)

    def set_fraction(self, fraction: float) -> None:
        """Change the admitted share on every route, the same way; see `herdgate.Gate.set_admit_fraction`."""
        for route in self._routes:
            route.gate.set_admit_fraction(fraction)
        self._keep_live("admit_fraction", fraction)

    def _keep_live(self, name: str, value: float | None) -> None:
        """Remember it over a reload; a fleet does so itself, and is told of what the settings change only."""
        if self._fleet is None:
            self._set_live[name] = value

    def plan(self, settings: Settings) -> Callable[[], None]:
        """Make ready what may fail or take its time, for the result to make it so: call that in the loop.

        It may run in another thread, one at a time. `relay` and `breaker` are taken only once, at the start.

        Raises:
            ConfigurationError: a key file cannot be used.
        """
        known = {route.table.name: route.authentication for route in self._routes}
        planned = {table.name: _authentication(table, known.get(table.name)) for table in settings.routes}
        return lambda: self._take(settings, planned)

    def start(self, siblings: int = 1) -> None:
        """Join the fleet, in the running loop, with the processes that start beside this one; see `Gate.start`."""
        self._routes[0].gate.start(siblings)
        if self.router is not None:
            self.router.start()

    async def aclose(self) -> None:
        """Leave the fleet, and close what authentication holds open."""
        await self._routes[0].gate.aclose()
        if self.router is not None:
            await self.router.aclose()
        retiring = tuple(self._retiring)
        for task in retiring:
            task.cancel()
        await asyncio.gather(*retiring, return_exceptions=True)
        for authentication in self._authentications():
            await authentication.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "websocket":
            await self._serve_websocket(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve_http(scope, receive, send)

    async def _serve_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self.route_of(route_path(scope))
        if route is not None:
            await route(scope, receive, send)
            return
        await receive()
        await refuse_websocket(receive, send, *NO_ROUTE)

    async def _serve_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = route_path(scope)
        if path == self.health_path:
            await refuse_http(send, 200, *_text(b"ok\n"))
            return
        if path == self._settings.preflight_path:
            asked = parse_qs(scope.get("query_string", b"")[:4_096].decode("latin-1")).get("path", [""])[0]
            route = self.route_of(asked) if asked else None
            if route is not None:
                await route(scope, receive, send)
                return
        if any(name == b"upgrade" for name, _ in scope["headers"]):  # to something else, or to several things at once
            await refuse_http(send, *answer_of(NO_HANDSHAKE))
            return
        await refuse_http(send, *_not_found("only WebSockets are served here"))

    def route_of(self, path: str) -> Route | None:
        """The first route that covers a path."""
        for route in self._routes:
            if route.patterns.match(path):
                return route
        return None

    def _take(self, settings: Settings, planned: Mapping[str, Authentication | None]) -> None:
        live = {name: value for name, value in self._set_live.items() if _is_same(name, self._settings, settings)}
        in_force = settings.model_copy(update=live)
        routes = self._make_routes(in_force, planned)
        limits = [_limits(in_force, route.table) for route in routes]
        replaced = self._authentications() - {known for known in planned.values() if known is not None}
        # Nothing has changed so far, and from here on nothing fails.
        for route, allowed in zip(routes, limits, strict=True):
            route.gate.set_limits(allowed)
            if chosen := self._secrets(settings):
                route.gate.set_secrets(chosen)
            self._gates[route.table.name] = route.gate
        if self.router is None:
            self.pool.replace(settings.workers)
        self._settings, self._routes, self._set_live = settings, routes, live
        if self._is_draining:
            self.drain()
        self._retire(replaced)

    def _make_routes(self, settings: Settings, planned: Mapping[str, Authentication | None]) -> list[Route]:
        gates = self._make_gates(settings)
        relay = self._make_relay(settings, gates[0].member)
        tables = zip(settings.routes, gates, strict=True)
        return [Route(settings, table, gate, planned[table.name], relay, router=self.router) for table, gate in tables]

    def _make_relay(self, settings: Settings, member: str | None) -> MessageRelay:
        """The one for what uvicorn serves; where bytes are spliced, that is what is no simple handshake."""
        relay = MessageRelay(
            self.pool,
            settings.relay.settings(),
            trusted_proxies=settings.trusted_proxies,
            forwarding_header=settings.forwarding_header,
            member=member,
            router=self.router,
            register=self.register,
        )
        if settings.relay.mode == "splice":
            if self.splices is None:
                limits = settings.relay.settings()
                self.splices = SpliceRelay(
                    self.pool,
                    limits,
                    relay.forwarding,
                    member=member,
                    router=self.router,
                    cuts=self.register.cuts,
                )
            self.splices.forwarding = relay.forwarding
        return relay

    def _make_gates(self, settings: Settings) -> list[Gate]:
        """One for each route; those that are new share the calendar of the others, or of the fleet."""
        gates: list[Gate] = []
        beside = self._routes[0].gate if self._routes else None
        for table in settings.routes:
            gate = self._gates.get(table.name)
            if gate is None:
                fleet = self._fleet if beside is None else None
                limits, chosen = _limits(settings, table), self._secrets(settings)
                gate = self._make_gate(limits, secrets=chosen, route=table.name, beside=beside, fleet=fleet)
                gate.set_workers(self.pool.names)
            beside = beside or gate
            gates.append(gate)
        return gates

    def _secrets(self, settings: Settings) -> Sequence[str] | None:
        """None: the fleet agrees on one."""
        return settings.secret_texts() or (None if self._fleet else self._own_secrets)

    def _authentications(self) -> set[Authentication]:
        return {route.authentication for route in self._routes if route.authentication is not None}

    def _retire(self, replaced: Iterable[Authentication]) -> None:
        for authentication in replaced:
            task = asyncio.get_running_loop().create_task(authentication.retire())
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)


def _limits(settings: Settings, table: RouteTable) -> Limits:
    """Those of a route in this process, which has descriptors for so many sockets."""
    limits, room = settings.process_limits(table), most_sockets()
    return replace(limits, max_open=room if limits.max_open is None else min(room, limits.max_open))


def _authentication(table: RouteTable, known: Authentication | None) -> Authentication | None:
    """The one there is, where it may stay: it has keys and connections at hand."""
    if table.auth is None:
        return None
    return known if known is not None and known.serves(table.auth) else Authentication(table.auth)


def _is_same(name: str, one: Settings, other: Settings) -> bool:
    return bool(getattr(one, name) == getattr(other, name))


def _not_found(error: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    headers, body = _text(json.dumps({"error": error}).encode(), b"application/json")
    return 404, headers, body


def _text(body: bytes, kind: bytes = b"text/plain") -> tuple[list[tuple[bytes, bytes]], bytes]:
    length = b"%d" % len(body)
    return [(b"content-type", kind), (b"content-length", length), (b"cache-control", b"no-store")], body


NO_ROUTE = _not_found("no route covers this path")
"""What a handshake is told for which there is no route: status, headers, body."""
