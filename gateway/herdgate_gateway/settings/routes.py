"""Settings of one route: who may come, how he is told not to, who he has to be."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from herdgate.core.errors import ConfigurationError
from herdgate.core.limits import ClientLimits, Scope
from herdgate.denial import DenialStyle
from herdgate_gateway.auth import AuthUrlSettings, JwtSettings
from herdgate_gateway.connection_ids import Duplicates, Place, in_cookie, in_header, in_path, in_query
from herdgate_gateway.settings.fields import Absent, checked, core_limit, held, tier_limit, wait_s
from herdgate_gateway.settings.table import Table
from herdgate_gateway.settings.texts import Name, Origins, Paths, RouteName, Statuses, Texts

__all__ = ["AuthTable", "ClientKeyTable", "ConnectionIdTable", "JwtTable", "RouteTable", "TierTable"]

_JWT = JwtSettings(keys="a file")
_AUTH_URL = AuthUrlSettings(url="http://auth.example")


class TierTable(Table):
    """Limits per client; see `herdgate.ClientLimits`."""

    rate: Annotated[float | None, tier_limit, Absent("none")] = None
    burst: Annotated[float | None, tier_limit, Absent("none")] = None
    open: Annotated[int | None, tier_limit, Absent("none")] = None
    scope: Scope = "process"

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.limits()
        return self

    def limits(self) -> ClientLimits:
        """The same for the core."""
        return ClientLimits(rate=self.rate, burst=self.burst, open=self.open, scope=self.scope)


def _check_choice(table: Table, *names: str) -> None:
    given = [name for name in names if getattr(table, name) is not None]
    if len(given) != 1:
        raise ConfigurationError("", " and ".join(given) or "nothing", f"write one of {', '.join(names)}")


class ClientKeyTable(Table):
    """Where a key or class stands: a header, a cookie, or a claim of the verified token. Exactly one is set."""

    header: Name | None = None
    cookie: Name | None = None
    claim: Name | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_choice(self, "header", "cookie", "claim")
        return self


class ConnectionIdTable(Table):
    """Where the connection id of an arrival stands: a segment of the path, from 1, or a name. Exactly one is set."""

    path: Annotated[int, checked(lambda _, value: in_path(value))] | None = None
    query: Name | None = None
    header: Name | None = None
    cookie: Name | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_choice(self, "path", "query", "header", "cookie")
        return self

    def place(self) -> Place:
        """The same for who reads it."""
        if self.path is not None:
            return in_path(self.path)
        if self.query is not None:
            return in_query(self.query)
        return in_header(self.header) if self.header is not None else in_cookie(self.cookie or "")


class JwtTable(Table):
    """How a token is verified; see `herdgate_gateway.auth.JwtSettings`. `place` is `from` in the file."""

    keys: str
    algorithms: Texts = tuple(_JWT.algorithms)
    audience: Texts = tuple(_JWT.audience)
    issuer: str | None = _JWT.issuer
    leeway_s: float = _JWT.leeway_s
    place: Literal["header", "query", "cookie"] = Field(default=_JWT.place, alias="from")
    name: str | None = _JWT.name

    @model_validator(mode="after")
    def _check(self) -> Self:
        self.settings()
        return self

    def settings(self) -> JwtSettings:
        """The same for the check."""
        return JwtSettings(**{name: getattr(self, name) for name in type(self).model_fields})


class AuthTable(Table):
    """Who an arrival has to be: a token is verified, or a service is asked. Exactly one of `jwt` and `url` is set.

    What goes with `url`: see `herdgate_gateway.auth.AuthUrlSettings`.
    """

    jwt: JwtTable | None = None
    url: str | None = None
    timeout_s: float = _AUTH_URL.timeout_s
    max_busy: int = _AUTH_URL.max_busy
    headers: Texts = tuple(_AUTH_URL.headers)
    response_headers: Texts = tuple(_AUTH_URL.response_headers)

    @model_validator(mode="after")
    def _check(self) -> Self:
        _check_choice(self, "jwt", "url")
        if wrong := self.unused() & self.model_fields_set:
            raise ConfigurationError(min(wrong), "it beside jwt", "leave it out, it belongs to url")
        self.url_settings()
        return self

    def unused(self) -> frozenset[str]:
        """All that belongs to `url`, where there is none."""
        return frozenset(type(self).model_fields) - {"jwt", "url"} if self.url is None else frozenset()

    def url_settings(self) -> AuthUrlSettings | None:
        """The same for asking; None: a token is verified instead."""
        if self.url is None:
            return None
        return AuthUrlSettings(
            url=self.url,
            timeout_s=self.timeout_s,
            max_busy=self.max_busy,
            headers=self.headers,
            response_headers=self.response_headers,
        )


class RouteTable(Table):
    """One route: a set of paths with rules of their own.

    Attributes:
        name: stands in tickets, cookies and metrics.
        paths: exact paths, `/prefix/*`, or `*`.
        client, anonymous, address, network: limits per client; see `herdgate.Limits`.
        max_open: sockets of this route. None: only the limit of the whole process holds.
        max_pending: set-ups in progress of this route, the same way.
        denial: how handshakes are refused; see `herdgate.AdmissionMiddleware`.
        statuses: HTTP statuses in place of the usual ones, by reason.
        max_wait_s, max_held, enforce, allowed_origins: in place of those of the gateway. None: as there.
        client_key: a better key than the address. None: the address.
        client_class: the name of its class. None, or where there is none: a session token decides.
        connection_id: where it stands; see `herdgate_gateway.connection_ids`. None: drawn at random.
        duplicates: what a second socket with the id of one that is open does.
        auth: who an arrival has to be. None: anybody.
    """

    name: RouteName
    paths: Paths = ("*",)
    max_open: Annotated[int | None, core_limit, Absent("none")] = None
    max_pending: Annotated[int | None, core_limit, Absent("none")] = None
    denial: DenialStyle = "auto"
    statuses: Statuses = Field(default_factory=dict)
    max_wait_s: Annotated[Annotated[float, wait_s] | None, Absent("inherit")] = None
    max_held: Annotated[Annotated[int, held] | None, Absent("inherit")] = None
    enforce: Annotated[bool | None, Absent("inherit")] = None
    allowed_origins: Annotated[Origins | None, Absent("inherit")] = None
    client: TierTable = TierTable()
    anonymous: TierTable | None = None
    address: TierTable = TierTable()
    network: TierTable = TierTable()
    client_key: ClientKeyTable | None = None
    client_class: ClientKeyTable | None = None
    connection_id: Annotated[ConnectionIdTable | None, Absent("random")] = None
    duplicates: Duplicates = "allow"
    auth: AuthTable | None = None
