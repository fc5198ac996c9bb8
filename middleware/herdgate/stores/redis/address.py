"""What a Redis URL says: the kind of deployment, its nodes, and how to connect to one.

    redis://[user:pass@]host:port/db      one server; rediss:// with TLS
    unix:///path?db=0                     one server, by Unix socket
    redis+sentinel://[user:pass@]h1:p1,h2:p2/service[/db]
    redis+cluster://[user:pass@]h1:p1,h2:p2

`rediss+sentinel` and `rediss+cluster` are the last two with TLS. Reading one needs no redis-py. A password shows
nowhere: not in `str`, not in `repr`, not in an error.
"""

import re
from dataclasses import dataclass, field
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from herdgate.core.errors import ConfigurationError
from herdgate.stores.redis.url_options import WrongUrl, read_database, read_options

if TYPE_CHECKING:
    from herdgate.stores.redis.driver import AbstractConnection

__all__ = ["Address", "Node", "masked"]

Node = tuple[str, int]
"""Host and port."""

WAY_OUT = (
    "write redis://host:6379/0, rediss://host:6379/0, unix:///path?db=0, "
    "redis+sentinel://host:26379,host:26379/service or redis+cluster://host:6379,host:6379"
)
ENCODE = "percent-encode /, ?, # and @ in user, password and path (%2F, %3F, %23, %40)"
KINDS = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
DEFAULT_PORTS = {"": 6379, "cluster": 6379, "sentinel": 26379}

_NODE = re.compile(r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:\[\]]+))(?::(?P<port>[^\[\]]*))?")
_PORT = re.compile(r"[0-9]{1,5}")
_NO_PORT = re.compile(r"(?s):(?![0-9A-Fa-f:.]*\])(?![0-9]*(?:[,/?]|$))[^,/?]*")

# Deadlines, retries and decoding are the link's business, whatever the URL says; RESP2 is enough, and older.
SETTLED: dict[str, Any] = {
    "socket_timeout": None,
    "health_check_interval": 0,
    "retry_on_timeout": False,
    "decode_responses": False,
    "protocol": 2,
    "driver_info": None,
}


@dataclass(frozen=True)
class Address:
    """Where Redis is.

    Attributes:
        kind: "" (one server), "sentinel" or "cluster".
        nodes: servers, sentinels or cluster nodes to ask; none for a Unix socket.
        service: the name sentinels know the primary by.
        shown: how messages name it.
        has_tls: connections are encrypted.
        options: arguments of redis-py's connection, all but host and port.
    """

    kind: str
    nodes: tuple[Node, ...]
    service: str
    shown: str
    has_tls: bool
    options: dict[str, Any] = field(repr=False)

    @classmethod
    def parse(cls, url: object, name: str = "redis") -> "Address":
        """Read a URL. Files that it names are not looked for.

        Args:
            name: of the setting, for errors.

        Raises:
            ConfigurationError: it is none of the kinds above; the message says which part is wrong.
        """
        try:
            return _read(url)
        except WrongUrl as wrong:
            raise ConfigurationError(name, masked(url), str(wrong)) from None

    @property
    def connection_class(self) -> "type[AbstractConnection]":
        """That of redis-py.

        Raises:
            ConfigurationError: redis-py is missing.
        """
        from herdgate.stores.redis.driver import Connection, SSLConnection, UnixDomainSocketConnection

        if not self.nodes:
            return UnixDomainSocketConnection
        return SSLConnection if self.has_tls else Connection

    def connection(self, node: Node | None = None) -> "AbstractConnection":
        """A connection, not yet open, to a node; by default to the first."""
        place: dict[str, Any] = {}
        if self.nodes:
            place["host"], place["port"] = node or self.nodes[0]
        return self.connection_class(**place, **self.options)

    def __str__(self) -> str:
        return self.shown


def _read(url: object) -> Address:
    if not isinstance(url, str) or url.partition("://")[0] not in KINDS:
        raise WrongUrl(WAY_OUT)
    scheme, _, rest = url.partition("://")
    scheme, _, kind = scheme.partition("+")
    credentials, place, query = _split(rest)
    if scheme == "unix":
        return _read_unix(credentials, place, query)
    hosts, _, path = place.partition("/")
    nodes = tuple(_node(part, DEFAULT_PORTS[kind]) for part in hosts.split(","))
    if not kind and len(nodes) > 1:
        raise WrongUrl("name one host, or write redis+sentinel:// or redis+cluster:// for several")
    service, database = _path(path, kind)
    options = {"db": database} | credentials | read_options(query, has_tls=scheme == "rediss")
    if kind == "cluster" and options["db"]:
        raise WrongUrl("leave the database out: a cluster has but database 0")
    return Address(kind, nodes, service, _shown(nodes, kind, service), scheme == "rediss", options | SETTLED)


def _read_unix(credentials: dict[str, str], place: str, query: str) -> Address:
    path = unquote(place)
    if not re.fullmatch(r"(?s)/.*[^/]", path) or "\0" in path:
        raise WrongUrl("write the whole path of the socket behind unix://, as in unix:///run/redis.sock?db=0")
    options = {"db": 0} | credentials | read_options(query, has_tls=False)
    return Address("", (), "", f"unix://{path}", False, {"path": path} | options | SETTLED)


def _split(rest: str) -> tuple[dict[str, str], str, str]:
    """User and password, hosts with the path, and the query."""
    before, _, query = rest.partition("?")
    written, _, place = before.rpartition("@")
    if "#" in rest or "/" in written or "@" in query:
        raise WrongUrl(ENCODE)
    user, _, password = written.partition(":")
    given = {"username": unquote(user), "password": unquote(password)}
    return {name: text for name, text in given.items() if text}, place, query


def _shown(nodes: tuple[Node, ...], kind: str, service: str) -> str:
    shown = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in nodes)
    return f"{shown} ({kind} {service})" if service else f"{shown} ({kind})" if kind else shown


def _path(path: str, kind: str) -> tuple[str, int]:
    """Service and database: `/service[/db]` for sentinels, `/db` else."""
    parts = [unquote(part) for part in path.split("/") if part]
    service = parts.pop(0) if kind == "sentinel" and parts else ""
    if kind == "sentinel" and not service:
        raise WrongUrl("name the service that the sentinels watch, as in redis+sentinel://host:26379/service/0")
    if not service.isprintable():
        raise WrongUrl("write the name of the service in printable characters")
    if len(parts) > 1:
        way_out = (
            "write nothing behind the database, as in redis+sentinel://host:26379/service/0 or redis://host:6379/0"
        )
        raise WrongUrl(way_out)
    return service, read_database(parts[0]) if parts else 0


def _node(text: str, default_port: int) -> Node:
    found = _NODE.fullmatch(text)
    if not found or (found["ipv6"] and not _is_ipv6(found["ipv6"])):
        raise WrongUrl("name the host, as in redis://host:6379 or redis://[::1]:6379")
    port = found["port"]
    if port is not None and not (_PORT.fullmatch(port) and 0 < int(port) <= 65535):
        raise WrongUrl("write a port from 1 to 65535, as in redis://host:6379")
    return found["ipv6"] or found["host"], default_port if port is None else int(port)


def _is_ipv6(text: str) -> bool:
    try:
        return bool(IPv6Address(text))
    except ValueError:
        return False


def masked(url: object) -> object:
    """The URL without what may be a secret: all before the last @, a port that is none, and the query."""
    if url is None:
        return None
    if not isinstance(url, str):
        return f"a value of type {type(url).__name__}"
    scheme, mark, rest = url.partition("://")
    if not mark or not re.fullmatch(r"[\w+.-]*", scheme):
        scheme, mark, rest = "", "", url
    text = re.sub(r"(?s)\?.*", "?***", re.sub(r"(?s)^.*@", "***@", rest))
    return scheme + mark + _NO_PORT.sub(":***", text)
