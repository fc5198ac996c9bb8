"""What a Redis URL says: the kind of deployment, its nodes, and how to connect to one.

    redis://[user:pass@]host:port/db      one server; rediss:// with TLS
    unix:///path?db=0                     one server, by Unix socket
    redis+sentinel://[user:pass@]h1:p1,h2:p2/service[/db]
    redis+cluster://[user:pass@]h1:p1,h2:p2

`rediss+sentinel` and `rediss+cluster` are the last two with TLS. Options in the query (`?ssl_ca_certs=...`) are those
of redis-py's connections. A password shows nowhere: not in `str`, not in `repr`, not in an error.
"""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from herdgate.core.errors import ConfigurationError
from herdgate.stores.redis.driver import (
    AbstractConnection,
    Connection,
    SSLConnection,
    UnixDomainSocketConnection,
    exceptions,
    parse_url,
)

__all__ = ["Address", "Node"]

Node = tuple[str, int]
"""Host and port."""

WAY_OUT = (
    "write redis://host:6379/0, rediss://host:6379/0, unix:///path?db=0, "
    "redis+sentinel://host:26379,host:26379/service or redis+cluster://host:6379,host:6379"
)
KINDS = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
DEFAULT_PORTS = {"": 6379, "cluster": 6379, "sentinel": 26379}

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
        connection_class: of redis-py.
        options: arguments of that class, all but host and port.
    """

    kind: str
    nodes: tuple[Node, ...]
    service: str
    shown: str
    connection_class: type[AbstractConnection]
    options: dict[str, Any] = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> "Address":
        """Read a URL.

        Raises:
            ConfigurationError: it is none of the kinds above, or redis-py knows no such option.
        """
        try:
            address = _read(url)
            address.connection()  # options that redis-py does not know, files that are not there
        except (ValueError, TypeError, AttributeError, LookupError, OSError, exceptions.RedisError):
            # Their texts may quote a part of a password.
            raise ConfigurationError("redis", _masked(url), WAY_OUT) from None
        return address

    def connection(self, node: Node | None = None) -> AbstractConnection:
        """A connection, not yet open, to a node; by default to the first."""
        place: dict[str, Any] = {}
        if self.nodes:
            place["host"], place["port"] = node or self.nodes[0]
        return self.connection_class(**place, **self.options)

    def __str__(self) -> str:
        return self.shown


def _read(url: str) -> Address:
    if not isinstance(url, str) or urlsplit(url).scheme not in KINDS:
        raise ValueError
    scheme, _, kind = urlsplit(url).scheme.partition("+")
    credentials, place, query = _split(url.partition("://")[2])
    if scheme == "unix":
        options = parse_url(f"unix://{credentials}{place}{query}")
        path = options["path"]
        return Address("", (), "", f"unix://{path}", UnixDomainSocketConnection, _kept(options))
    hosts, _, path = place.partition("/")
    service, database = _path(path, kind)
    nodes = tuple(_node(part, DEFAULT_PORTS[kind]) for part in hosts.split(","))
    if not kind and len(nodes) > 1:
        raise ValueError
    options = parse_url(f"{scheme}://{credentials}host/{database}{query}")
    connection_class = SSLConnection if scheme == "rediss" else Connection
    return Address(kind, nodes, service, _shown(nodes, kind, service), connection_class, _kept(options))


def _split(rest: str) -> tuple[str, str, str]:
    """Credentials with their @, hosts with the path, and the query with its question mark."""
    before, mark, query = rest.partition("?")
    credentials, at, place = before.rpartition("@")
    if "#" in rest or "/" in credentials or "@" in query:
        raise ValueError  # in a password they have to be percent-encoded
    return credentials + at, place, mark + query


def _kept(options: Any) -> dict[str, Any]:
    """Arguments of a connection, from what redis-py read in a URL."""
    return {name: options[name] for name in options if name not in ("connection_class", "host", "port")} | SETTLED


def _shown(nodes: tuple[Node, ...], kind: str, service: str) -> str:
    shown = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in nodes)
    return f"{shown} ({kind} {service})" if service else f"{shown} ({kind})" if kind else shown


def _path(path: str, kind: str) -> tuple[str, str]:
    """Service and database: `/service[/db]` for sentinels, `/db` else; a cluster has but database 0."""
    parts = [unquote(part) for part in path.split("/") if part]
    service = parts.pop(0) if kind == "sentinel" and parts else ""
    database = parts.pop(0) if parts else "0"
    if (
        parts
        or not database.isdecimal()
        or (kind == "sentinel" and not service)
        or (kind == "cluster" and database != "0")
    ):
        raise ValueError
    return service, database


def _node(text: str, default_port: int) -> Node:
    parsed = urlsplit(f"//{text}")
    if not parsed.hostname:
        raise ValueError
    port = parsed.port
    return unquote(parsed.hostname), default_port if port is None else port


def _masked(url: object) -> object:
    """The URL without what may be a secret: all before the last @, and the query."""
    if not isinstance(url, str):
        return url
    return re.sub(r"(?s)\?.*", "?***", re.sub(r"(?s)^([^:]*://)?.*@", r"\1***@", url))
