"""The settings of one gateway: a frozen tree, defaults included. `herdgate_gateway.settings.load` makes it."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import Field, PrivateAttr, model_validator

from herdgate.core.classes import NORMAL, AdmissionClass
from herdgate.core.clients import AddressRules, ForwardingHeader
from herdgate.core.errors import ConfigurationError
from herdgate.core.limits import ClientLimits, Limits
from herdgate.core.tiers import fleet_scopes
from herdgate.fleet import Fail, Fleet
from herdgate.origins import AllowedOrigins
from herdgate.stores.redis.address import Address
from herdgate_gateway.admin import AdminSettings
from herdgate_gateway.breaker import BreakerSettings
from herdgate_gateway.bridge import RelaySettings
from herdgate_gateway.drain.aws.options import AwsSettings
from herdgate_gateway.drain.options import DrainSettings
from herdgate_gateway.leases.dynamo import Place
from herdgate_gateway.settings.fields import (
    Absent,
    address_limit,
    as_in,
    as_tuple,
    checked,
    core_limit,
    handshakes,
    held,
    process_count,
    wait_s,
    whole_rate,
)
from herdgate_gateway.settings.routes import RouteTable
from herdgate_gateway.settings.table import Table
from herdgate_gateway.settings.texts import (
    FilePath,
    ListenSpec,
    ListenSpecs,
    Networks,
    Origins,
    RedisUrl,
    Secrets,
    Token,
    UrlPath,
    WorkerUrls,
)

__all__ = [
    "AdminTable",
    "AwsTable",
    "BreakerTable",
    "ClassTable",
    "DrainTable",
    "FleetTable",
    "LeasesTable",
    "RelayTable",
    "Settings",
    "TlsTable",
]

_LIMITS = Limits(rate=None)
_ADMIN, _BREAKER, _RELAY, _DRAIN = AdminSettings(), BreakerSettings(), RelaySettings(), DrainSettings()
_in_admin, _in_breaker, _in_relay = as_in(AdminSettings), as_in(BreakerSettings), as_in(RelaySettings)
_in_drain = as_in(DrainSettings)
_AWS, _in_aws = AwsSettings(), as_in(AwsSettings)
_FLEET = Fleet("redis://127.0.0.1:6379")
_in_leases = as_in(Place, table="herd")
_in_class, _in_fleet = as_in(AdmissionClass, name=NORMAL.name), as_in(Fleet, redis=_FLEET.redis)
_DEFAULT_ROUTES = (RouteTable(name="default"),)


class TlsTable(Table):
    """Files of the certificate chain and its key, PEM. Both or neither: without them, clients speak plain HTTP.

    Attributes:
        handshakes_per_s: TLS handshakes begun per second; who comes beyond them waits to be accepted. None: four times
            the rate, 100 at least. All processes have it together. Only `listener = "own"` can keep it.
    """

    certificate: FilePath | None = None
    key: FilePath | None = None
    handshakes_per_s: Annotated[float | None, handshakes, Absent("auto")] = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, value in (("certificate", self.certificate), ("key", self.key)):
            if value is None and (self.certificate or self.key):
                raise ConfigurationError(name, "nothing", "write certificate and key, or neither")
        return self


class AdminTable(Table):
    """The admin listener; see `herdgate_gateway.admin.AdminSettings`."""

    listen: Annotated[ListenSpec | None, Absent("off")] = _ADMIN.listen
    token: Token | None = None
    socket: FilePath | None = _ADMIN.socket
    stale_after_s: Annotated[float, _in_admin] = _ADMIN.stale_after_s

    def settings(self) -> AdminSettings:
        """The same for the admin server."""
        token = None if self.token is None else self.token.get_secret_value()
        return AdminSettings(listen=self.listen, token=token, socket=self.socket, stale_after_s=self.stale_after_s)


class RelayTable(Table):
    """The relay between clients and workers; see `herdgate_gateway.relay.RelaySettings`.

    Attributes:
        mode: `splice` passes bytes on; `messages` takes messages apart and puts them together again.
    """

    mode: Literal["splice", "messages"] = "splice"
    max_message_bytes: Annotated[int, _in_relay] = _RELAY.max_message_bytes
    max_fragment_bytes: Annotated[int, _in_relay] = Field(default_factory=lambda data: data["max_message_bytes"])
    max_queue: Annotated[int, _in_relay] = _RELAY.max_queue
    setup_s: Annotated[float, _in_relay] = _RELAY.setup_s
    idle_s: Annotated[float | None, _in_relay, Absent("none")] = _RELAY.idle_s
    close_s: Annotated[float, _in_relay] = _RELAY.close_s
    stall_s: Annotated[float, _in_relay] = _RELAY.stall_s
    max_age_s: Annotated[float | None, _in_relay, Absent("none")] = _RELAY.max_age_s

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_fragment_bytes > self.max_message_bytes:
            raise ConfigurationError("max_fragment_bytes", self.max_fragment_bytes, "write max_message_bytes at most")
        return self

    def settings(self) -> RelaySettings:
        """The same for the relay."""
        return RelaySettings(**self.model_dump(exclude={"mode"}))


class BreakerTable(Table):
    """When a worker gets no more arrivals; see `herdgate_gateway.breaker.BreakerSettings`."""

    failures: Annotated[int, _in_breaker] = _BREAKER.failures
    open_s: Annotated[float, _in_breaker] = _BREAKER.open_s
    ramp_s: Annotated[float, _in_breaker] = _BREAKER.ramp_s

    def settings(self) -> BreakerSettings:
        """The same for the pool of workers."""
        return BreakerSettings(**self.model_dump())


class AwsTable(Table):
    """Early signs on AWS; see `herdgate_gateway.drain.aws.options.AwsSettings`. Without groups and `ecs` none."""

    target_groups: Annotated[tuple[str, ...], _in_aws, as_tuple] = _AWS.target_groups
    target: Annotated[str, _in_aws] | None = _AWS.target
    ecs: bool = _AWS.ecs
    every_s: Annotated[float, _in_aws] = _AWS.every_s

    def unused(self) -> frozenset[str]:
        """What says how something is watched that is not."""
        without_groups = frozenset() if self.target_groups else frozenset({"target"})
        return without_groups if self.target_groups or self.ecs else frozenset({"target", "every_s"})

    def settings(self) -> AwsSettings | None:
        """The same for who watches; None: there is nothing to watch."""
        return AwsSettings(**self.model_dump()) if self.target_groups or self.ecs else None


class DrainTable(Table):
    """How the gateway ends; see `herdgate_gateway.drain.options.DrainSettings`."""

    sigterm_s: Annotated[float, _in_drain] = _DRAIN.sigterm_s
    call_s: Annotated[float, _in_drain] = _DRAIN.call_s
    file_s: Annotated[float, _in_drain] = _DRAIN.file_s
    sign_s: Annotated[float, _in_drain] = _DRAIN.sign_s
    settle_s: Annotated[float, _in_drain] = _DRAIN.settle_s
    share: Annotated[float, _in_drain] = _DRAIN.share
    max_draining: Annotated[int | None, _in_drain, Absent("half")] = _DRAIN.max_draining
    message: Annotated[str, _in_drain] | None = _DRAIN.message
    file: FilePath | None = _DRAIN.file
    aws: AwsTable = AwsTable()

    def settings(self) -> DrainSettings:
        """The same for a drain."""
        return DrainSettings(**self.model_dump(exclude={"aws"}))


class FleetTable(Table):
    """The fleet this gateway belongs to; see `herdgate.Fleet`. Without `redis` it belongs to none."""

    redis: RedisUrl | None = None
    name: Annotated[str, _in_fleet] = "default"
    fail: Fail = "local_share"
    rate_min: Annotated[float | None, _in_fleet, Absent("none")] = None
    setup_target_s: Annotated[float, _in_fleet] = _FLEET.setup_target_s
    pending_target: Annotated[float, _in_fleet] = _FLEET.pending_target

    def unused(self) -> frozenset[str]:
        """All of it, without a Redis."""
        return frozenset() if self.redis else frozenset(type(self).model_fields) - {"redis"}

    def address(self) -> Address | None:
        """Where its Redis is."""
        return None if self.redis is None else Address.parse(self.redis.get_secret_value())

    def shown(self) -> str:
        """In a line for people: `fleet chat at 127.0.0.1:6379`; empty without one."""
        return f"fleet {self.name} at {address}" if (address := self.address()) else ""

    def fleet(self) -> Fleet | None:
        """The same for a gate."""
        if self.redis is None:
            return None
        others = {name: getattr(self, name) for name in type(self).model_fields if name != "redis"}
        return Fleet(self.redis.get_secret_value(), **others)


class LeasesTable(Table):
    """The lease table of the fleet, where the owners of connections stand. Without `table` any worker takes any client.

    Attributes:
        table: its name.
        region: of AWS. None: as AWS's own tools find it.
        endpoint_url: another endpoint than the region's.
    """

    table: Annotated[str, _in_leases] | None = None
    region: Annotated[str, _in_leases] | None = None
    endpoint_url: Annotated[str, _in_leases] | None = None

    def unused(self) -> frozenset[str]:
        """All of it, without a table."""
        return frozenset() if self.table else frozenset(type(self).model_fields) - {"table"}

    def place(self) -> Place | None:
        """Where it is."""
        return None if self.table is None else Place(self.table, self.region, self.endpoint_url)


class ClassTable(Table):
    """A class of arrivals; see `herdgate.AdmissionClass`."""

    name: Annotated[str, _in_class]
    share: Annotated[float, _in_class] = NORMAL.share

    def as_class(self) -> AdmissionClass:
        """The same for the core."""
        return AdmissionClass(self.name, self.share)


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
