"""One route: its gate, and all that stands around it.

    is it sound -> AdmissionMiddleware -> authentication -> the app behind

The gate may be older than the rest, and outlive it.
"""

from collections.abc import Callable
from functools import partial

from herdgate import AdmissionMiddleware, Gate
from herdgate.asgi import ASGIApp, Receive, Scope, Send
from herdgate.paths import PathPatterns
from herdgate_gateway.authentication import Authentication
from herdgate_gateway.client_keys import key_from_cookie, key_from_header
from herdgate_gateway.connection_ids import ConnectionIds
from herdgate_gateway.handshake import CheckedHandshake
from herdgate_gateway.routing.router import Router
from herdgate_gateway.settings import Settings
from herdgate_gateway.settings.routes import ClientKeyTable, RouteTable
from herdgate_gateway.shortage import with_shortages

__all__ = ["Route"]

ClientKey = Callable[[Scope], str | None]


class Route:
    """Serves what one table of the settings says.

    Args:
        settings: those of the gateway.
        table: those of this route.
        gate: decides about its arrivals.
        authentication: who they have to be; None: anybody.
        app: gets those that are let in.
        router: knows which worker an arrival needs; None: any may have it.

    Attributes:
        table, gate, authentication: as given.
        reception: stands before the gate.
        patterns: the paths it covers.
    """

    def __init__(
        self,
        settings: Settings,
        table: RouteTable,
        gate: Gate,
        authentication: Authentication | None,
        app: ASGIApp,
        *,
        router: Router | None = None,
    ) -> None:
        self.table, self.gate, self.authentication = table, gate, authentication
        self.patterns = PathPatterns("paths", table.paths)
        told = with_shortages(app)
        guard = AdmissionMiddleware(
            authentication.before(told) if authentication else told,
            gate=gate,
            websocket_paths=table.paths,
            preflight_path=settings.preflight_path,
            addresses=settings.address_rules(),
            client_key=_found_in(table.client_key, authentication),
            client_class=_found_in(table.client_class, authentication),
            allowed_origins=settings.route_origins(table),
            denial=table.denial,
            statuses=table.statuses,
            max_wait_s=settings.route_max_wait_s(table),
            max_held=settings.route_max_held(table),
            enforce=settings.route_enforce(table),
        )
        self.reception = guard.reception
        place = table.connection_id.place() if table.connection_id else None
        self._checked = CheckedHandshake(guard, ConnectionIds(place, table.duplicates))
        if router is not None:
            self.reception.worker_of = partial(self._worker_of, router)

    @property
    def checks(self) -> CheckedHandshake:
        """What is looked at before the gate is asked."""
        return self._checked

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if self.authentication is None:
            await self._checked(scope, receive, send)
            return
        with self.authentication.expecting(scope):
            await self._checked(scope, receive, send)

    def _worker_of(self, router: Router, scope: Scope) -> str:
        self._checked.identify(scope)  # one that is drawn is drawn here
        return router.worker_of(scope)


def _found_in(place: ClientKeyTable | None, authentication: Authentication | None) -> ClientKey | None:
    if place is None:
        return None
    if place.claim is not None and authentication is not None:
        return authentication.client_key(place.claim)
    return key_from_header(place.header) if place.header else key_from_cookie(place.cookie or "")
