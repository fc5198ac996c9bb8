"""The gateway as an ASGI app: finds the route of a request and hands it over.

    websocket    first route that covers its path -> AdmissionMiddleware -> authentication -> relay; no route: 404
    http         health, pre-flight; everything else: 404

All routes share one calendar, so one rate; per-client limits, permits, denial and authentication are each route's own.
"""

import json
import secrets
from collections.abc import Callable, Mapping
from typing import NamedTuple
from urllib.parse import parse_qs

from herdgate import AdmissionMiddleware, ConfigurationError, Gate
from herdgate.asgi import ASGIApp, Receive, Scope, Send
from herdgate.paths import PathPatterns, route_path
from herdgate.refusal import refuse_http, refuse_websocket
from herdgate_gateway.auth import AuthUrl, Jwt
from herdgate_gateway.client_keys import key_from_cookie, key_from_header
from herdgate_gateway.relay import MessageRelay
from herdgate_gateway.settings import Settings
from herdgate_gateway.settings.routes import RouteTable
from herdgate_gateway.workers import WorkerPool

__all__ = ["Gateway"]

ClientKey = Callable[[Scope], str | None]


class _Route(NamedTuple):
    patterns: PathPatterns
    guarded: AdmissionMiddleware
    authentication: Jwt | AuthUrl | None


class Gateway:
    """Serves what its settings say.

    Attributes:
        gates: by route name.
        pool: the workers.

    Raises:
        ConfigurationError: settings that contradict each other.
    """

    def __init__(self, settings: Settings) -> None:
        if len(settings.routes) > 1:
            for name in ("max_open", "max_pending"):
                if getattr(settings, name) is not None:
                    raise ConfigurationError(name, getattr(settings, name), "write it at each of the routes")
        self.pool = WorkerPool(settings.workers, settings.breaker.settings())
        self._relay = MessageRelay(
            self.pool,
            settings.relay.settings(),
            trusted_proxies=settings.trusted_proxies,
            forwarding_header=settings.forwarding_header,
        )
        self._health_path, self._preflight_path = settings.health_path, settings.preflight_path
        self._secrets = settings.secret_texts() or (secrets.token_urlsafe(32),)
        self._routes: list[_Route] = []
        for route in settings.routes:
            self._routes.append(self._route(settings, route))

    @property
    def gates(self) -> Mapping[str, Gate]:
        """The gates by route name, in the order of the settings."""
        return {route.guarded.gate.route: route.guarded.gate for route in self._routes}

    def set_rate(self, rate: float | None) -> None:
        """Change the one rate of all routes; see `herdgate.Gate.set_rate`."""
        self._routes[0].guarded.gate.set_rate(rate)

    def set_fraction(self, fraction: float) -> None:
        """Change the admitted share on every route; see `herdgate.Gate.set_admit_fraction`."""
        for route in self._routes:
            route.guarded.gate.set_admit_fraction(fraction)

    async def aclose(self) -> None:
        """Close what authentication holds open."""
        for route in self._routes:
            if route.authentication is not None:
                await route.authentication.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "websocket":
            await self._serve_websocket(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve_http(scope, receive, send)

    async def _serve_websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        guarded = self._guard_of(route_path(scope))
        if guarded is not None:
            await guarded(scope, receive, send)
            return
        await receive()
        await refuse_websocket(receive, send, *_not_found("no route covers this path"))

    async def _serve_http(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = route_path(scope)
        if path == self._health_path:
            await refuse_http(send, 200, *_text(b"ok\n"))
            return
        if path == self._preflight_path:
            asked = parse_qs(scope.get("query_string", b"")[:4_096].decode("latin-1")).get("path", [""])[0]
            guarded = self._guard_of(asked) if asked else None
            if guarded is not None:
                await guarded(scope, receive, send)
                return
        await refuse_http(send, *_not_found("only WebSockets are served here"))

    def _guard_of(self, path: str) -> AdmissionMiddleware | None:
        return next((route.guarded for route in self._routes if route.patterns.match(path)), None)

    def _route(self, settings: Settings, route: RouteTable) -> _Route:
        gate = Gate(
            settings.route_limits(route),
            secrets=self._secrets,
            route=route.name,
            beside=self._routes[0].guarded.gate if self._routes else None,
        )
        authentication = _authentication(route)
        app: ASGIApp = authentication(self._relay) if authentication else self._relay
        guarded = AdmissionMiddleware(
            app,
            gate=gate,
            websocket_paths=route.paths,
            preflight_path=settings.preflight_path,
            addresses=settings.address_rules(),
            client_key=_client_key(route, authentication),
            allowed_origins=settings.route_origins(route),
            denial=route.denial,
            statuses=route.statuses,
            max_wait_s=settings.route_max_wait_s(route),
            max_held=settings.route_max_held(route),
            enforce=settings.route_enforce(route),
        )
        return _Route(PathPatterns("paths", route.paths), guarded, authentication)


def _authentication(route: RouteTable) -> Jwt | AuthUrl | None:
    if route.auth is None:
        return None
    asking = route.auth.url_settings()
    if asking is not None:
        return AuthUrl(asking)
    return Jwt(route.auth.jwt.settings()) if route.auth.jwt else None


def _client_key(route: RouteTable, authentication: Jwt | AuthUrl | None) -> ClientKey | None:
    key = route.client_key
    if key is None:
        return None
    if key.claim is not None and isinstance(authentication, Jwt):
        return authentication.client_key(key.claim)
    return key_from_header(key.header) if key.header else key_from_cookie(key.cookie or "")


def _not_found(error: str) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    headers, body = _text(json.dumps({"error": error}).encode(), b"application/json")
    return 404, headers, body


def _text(body: bytes, kind: bytes = b"text/plain") -> tuple[list[tuple[bytes, bytes]], bytes]:
    length = b"%d" % len(body)
    return [(b"content-type", kind), (b"content-length", length), (b"cache-control", b"no-store")], body
