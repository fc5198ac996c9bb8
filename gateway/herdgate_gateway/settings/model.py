"""The settings of one gateway: a frozen tree, defaults included. `herdgate_gateway.settings.load` makes it."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import PrivateAttr

from herdgate.core.classes import NORMAL
from herdgate.core.clients import AddressRules, ForwardingHeader
from herdgate.core.errors import ConfigurationError
from herdgate.core.limits import ClientLimits, Limits
from herdgate.core.tiers import fleet_scopes
from herdgate.origins import AllowedOrigins
from herdgate_gateway.settings.fields import (
    Absent,
    address_limit,
    as_tuple,
    checked,
    core_limit,
    held,
    process_count,
    wait_s,
    whole_rate,
)
from herdgate_gateway.settings.routes import RouteTable
from herdgate_gateway.settings.table import Table
from herdgate_gateway.settings.tables import (
    AdminTable,
    BreakerTable,
    ClassTable,
    DrainTable,
    FleetTable,
    LeasesTable,
    RelayTable,
    TlsTable,
)
from herdgate_gateway.settings.texts import (
    ListenSpecs,
    Networks,
    Origins,
    Secrets,
    UrlPath,
    WorkerUrls,
)

__all__ = ["Settings"]

_LIMITS = Limits(rate=None)
_DEFAULT_ROUTES = (RouteTable(name="default"),)


def _check_classes(field: str, value: tuple[object, ...]) -> None:
    if not value:
        raise ConfigurationError(field, [], "write at least one, or leave it out for one class")


def _check_routes(field: str, value: tuple[object, ...]) -> None:
    if not value:
        raise ConfigurationError(field, [], "write at least one, or leave it out for one on every path")


class Settings(Table):
    """All settings of one gateway.

    Attributes:
        listen: where clients connect; see `herdgate_gateway.listeners`.
        listener: who accepts them: `own` refuses before a connection costs anything, `asyncio` is the event loop's.
        processes: how many serve the listeners together.
        workers: `ws://host:port`, unique; none beside `leases`, where they say themselves where they are.
        rate: admissions per second, R. None: not set, which `serve` does not take.
        burst, admit_fraction, classes, session_ttl_s, hold_s, grace_s, hint_cap_s, horizon_s: see `herdgate.Limits`.
        max_open, max_pending: limits of the whole gateway; see `herdgate.Limits`.
        max_memory_bytes: limit of each process; see there.
        secrets: sign tickets, the first signs. None: a random one.
        trusted_proxies, forwarding_header, ipv6_prefix, ipv6_network_prefix, exempt_networks: see
            `herdgate.AddressRules`.
        proxy_protocol: trusted peers begin with a PROXY protocol header.
        allowed_origins: pages that may connect.
        health_path: answers 200 on the listeners of clients. None: off.
        preflight_path, max_wait_s, max_held, enforce: see `herdgate.AdmissionMiddleware`.
        routes: at least one.
    """

    listen: ListenSpecs = ("127.0.0.1:8000",)
    listener: Literal["own", "asyncio"] = "own" if sys.platform == "linux" else "asyncio"
    processes: Annotated[int, process_count] = 1
    workers: WorkerUrls = ()
    rate: Annotated[float | None, whole_rate, Absent("none")] = None
    burst: Annotated[float | None, core_limit, Absent("none")] = None
    admit_fraction: Annotated[float, core_limit] = _LIMITS.admit_fraction
    session_ttl_s: Annotated[float, core_limit] = _LIMITS.session_ttl_s
    hold_s: Annotated[float, core_limit] = _LIMITS.hold_s
    grace_s: Annotated[float, core_limit] = _LIMITS.grace_s
    hint_cap_s: Annotated[float, core_limit] = _LIMITS.hint_cap_s
    horizon_s: Annotated[float, core_limit] = _LIMITS.horizon_s
    max_open: Annotated[int | None, core_limit, Absent("none")] = None
    max_pending: Annotated[int | None, core_limit, Absent("none")] = None
    max_memory_bytes: Annotated[int | None, core_limit, Absent("none")] = None
    secrets: Secrets | None = None
    trusted_proxies: Networks = ()
    forwarding_header: ForwardingHeader = "x-forwarded-for"
    proxy_protocol: bool = False
    ipv6_prefix: Annotated[int, address_limit] = 64
    ipv6_network_prefix: Annotated[int, address_limit] = 48
    exempt_networks: Networks = ()
    allowed_origins: Origins = "same-host"
    health_path: Annotated[UrlPath | None, Absent("off")] = "/healthz"
    preflight_path: Annotated[UrlPath | None, Absent("off")] = "/_herdgate/admission"
    max_wait_s: Annotated[float, wait_s] = 0.5
    max_held: Annotated[int, held] = 1_000
    enforce: bool = True
    tls: TlsTable = TlsTable()
    admin: AdminTable = AdminTable()
    fleet: FleetTable = FleetTable()
    leases: LeasesTable = LeasesTable()
    drain: DrainTable = DrainTable()
    relay: RelayTable = RelayTable()
    breaker: BreakerTable = BreakerTable()
    classes: Annotated[tuple[ClassTable, ...], checked(_check_classes), as_tuple] = (ClassTable(name=NORMAL.name),)
    routes: Annotated[tuple[RouteTable, ...], checked(_check_routes), as_tuple] = _DEFAULT_ROUTES

    _sources: Mapping[str, str] = PrivateAttr(default_factory=lambda: MappingProxyType({}))

    @property
    def sources(self) -> Mapping[str, str]:
        """Where each value is from, by dotted field: `flag`, `env NAME`, `file PATH` or `default`."""
        return self._sources

    def secret_texts(self) -> tuple[str, ...] | None:
        """The secrets for `herdgate.Gate`."""
        return None if self.secrets is None else tuple(secret.get_secret_value() for secret in self.secrets)

    @property
    def tls_rate(self) -> float | None:
        """TLS handshakes begun per second in each of `processes`; None: no limit."""
        whole = self.tls.handshakes_per_s
        if whole is None and self.rate is not None:
            whole = max(100.0, 4 * self.rate)
        return None if whole is None else whole / self.processes

    def address_rules(self) -> AddressRules:
        """How a peer becomes a client, for every route alike.

        Raises:
            ConfigurationError: never for settings that were loaded.
        """
        return AddressRules(
            trusted_proxies=self.trusted_proxies,
            forwarding_header=self.forwarding_header,
            ipv6_prefix=self.ipv6_prefix,
            ipv6_network_prefix=self.ipv6_network_prefix,
            exempt_networks=self.exempt_networks,
        )

    def route_limits(self, route: RouteTable) -> Limits:
        """What the gate of a route admits. Of a limit set here and at the route, the tighter one holds.

        Raises:
            ConfigurationError: never for settings that were loaded.
        """
        return Limits(
            rate=self.rate,
            burst=self.burst,
            max_pending=_tighter(self.max_pending, route.max_pending),
            max_open=_tighter(self.max_open, route.max_open),
            max_memory_bytes=self.max_memory_bytes,
            client=route.client.limits(),
            anonymous=route.anonymous.limits() if route.anonymous else None,
            address=route.address.limits(),
            network=route.network.limits(),
            admit_fraction=self.admit_fraction,
            classes=tuple(table.as_class() for table in self.classes),
            session_ttl_s=self.session_ttl_s,
            hold_s=self.hold_s,
            grace_s=self.grace_s,
            hint_cap_s=self.hint_cap_s,
            horizon_s=self.horizon_s,
        )

    def process_limits(self, route: RouteTable) -> Limits:
        """What the gate of a route admits in each of `processes`.

        They share one calendar, so the rate and all that goes with it are not divided, and neither are limits per
        client of scope `fleet`; for the others see `herdgate.Limits.divided`.

        Raises:
            ConfigurationError: never for settings that were loaded.
        """
        whole = self.route_limits(route)
        common = {name: getattr(whole, name) for name in ("rate", "burst", *fleet_scopes(whole))}
        own: dict[str, Any] = {name: ClientLimits() for name in fleet_scopes(whole)}
        return replace(replace(whole, rate=None, burst=None, **own).divided(self.processes), **common)

    def route_origins(self, route: RouteTable) -> AllowedOrigins:
        """Pages that may connect to a route, as `herdgate.AdmissionMiddleware` takes them."""
        allowed = self.allowed_origins if route.allowed_origins is None else route.allowed_origins
        return None if allowed == "any" else allowed

    def route_max_wait_s(self, route: RouteTable) -> float:
        """Longest time a handshake is held, seconds."""
        return self.max_wait_s if route.max_wait_s is None else route.max_wait_s

    def route_max_held(self, route: RouteTable) -> int:
        """Handshakes held at the same time."""
        return self.max_held if route.max_held is None else route.max_held

    def route_enforce(self, route: RouteTable) -> bool:
        """False: arrivals are only counted."""
        return self.enforce if route.enforce is None else route.enforce


def _tighter(one: int | None, other: int | None) -> int | None:
    return min((limit for limit in (one, other) if limit is not None), default=None)
