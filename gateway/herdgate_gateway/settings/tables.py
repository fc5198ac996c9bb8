"""The tables of the settings of one gateway, and what each is to the part that it sets."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from herdgate.core.classes import NORMAL, AdmissionClass
from herdgate.core.errors import ConfigurationError
from herdgate.fleet import Fail, Fleet
from herdgate.stores.redis.address import Address
from herdgate_gateway.admin import AdminSettings
from herdgate_gateway.breaker import BreakerSettings
from herdgate_gateway.bridge import RelaySettings
from herdgate_gateway.drain.aws.options import AwsSettings
from herdgate_gateway.drain.options import DrainSettings
from herdgate_gateway.leases.dynamo import Place
from herdgate_gateway.settings.fields import (
    Absent,
    as_in,
    as_tuple,
    handshakes,
)
from herdgate_gateway.settings.table import Table
from herdgate_gateway.settings.texts import (
    FilePath,
    ListenSpec,
    RedisUrl,
    Token,
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
    "TlsTable",
]

_ADMIN, _BREAKER, _RELAY, _DRAIN = AdminSettings(), BreakerSettings(), RelaySettings(), DrainSettings()
_in_admin, _in_breaker, _in_relay = as_in(AdminSettings), as_in(BreakerSettings), as_in(RelaySettings)
_in_drain = as_in(DrainSettings)
_AWS, _in_aws = AwsSettings(), as_in(AwsSettings)
_FLEET = Fleet("redis://127.0.0.1:6379")
_in_leases = as_in(Place, table="herd")
_in_class, _in_fleet = as_in(AdmissionClass, name=NORMAL.name), as_in(Fleet, redis=_FLEET.redis)


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
        if self.target_groups:
            return frozenset()
        return frozenset({"target"} if self.ecs else {"target", "every_s"})

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
