"""Settings of a crowd: frozen, validated once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address

from herdgate_loadtest.engine.behaviour import parse_behaviour
from herdgate_loadtest.errors import ConfigurationError

__all__ = ["CrowdConfig", "loopback_sources"]

_FIRST_SOURCE = IPv4Address("127.0.0.2")
_MOST_SOURCES = 65_536


def loopback_sources(count: int) -> tuple[str, ...]:
    """The first `count` of 127.0.0.2, 127.0.0.3, ...: one address carries about 28,000 sockets to one listener.

    A gateway sees each of them as a client of its own.

    Raises:
        ConfigurationError: `count` is not in [1, 65536].
    """
    if not 1 <= count <= _MOST_SOURCES:
        raise ConfigurationError("sources", count, f"write a number from 1 to {_MOST_SOURCES}")
    return tuple(str(_FIRST_SOURCE + i) for i in range(count))


@dataclass(frozen=True, slots=True)
class CrowdConfig:
    """What a crowd is and where it goes.

    Attributes:
        urls: `ws://` URLs of the listeners; client n's try number t goes to number n + t of them, in turn. `{n}` in a
            path stands for the client's number.
        clients: number of clients by behaviour, as in {"obey": 9000, "fixed:15": 1000}.
        sources: addresses to dial from, in turn; none: the system chooses one. See `loopback_sources`.
        origin: the Origin header, which makes every client a browser; None: none.
        subprotocol: offered in the handshake; None: none.
        headers: more headers; `{n}` in a value stands for the client's number.
        failover: client n stays with number n of `urls`, and goes on to the next one only when a try has had no orderly
            answer, or its socket has ended without a close frame.
        moves_on: with `failover`, it goes on too when it is called back (close 1012) or refused with 503, as by a
            gateway that drains.
        spread_s: after a cut, clients first come back uniformly over this many seconds.
        timeout_s: from dialling to the whole answer; then the try has failed.
        first: number of the first client, for crowds in several processes.
        seed: of every random choice.

    Raises:
        ConfigurationError: names the field.
    """

    urls: tuple[str, ...]
    clients: Mapping[str, int]
    sources: tuple[str, ...] = ()
    origin: str | None = None
    subprotocol: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    failover: bool = False
    moves_on: bool = False
    spread_s: float = 0.3
    timeout_s: float = 10.0
    first: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        if not self.urls:
            raise ConfigurationError("urls", self.urls, "write at least one ws://HOST:PORT/PATH")
        for name, count in self.clients.items():
            parse_behaviour(name)
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise ConfigurationError(f"clients.{name}", count, "write a whole number of clients, 0 or more")
        if not self.total:
            raise ConfigurationError("clients", 0, "write at least one client")
        if self.first < 0:
            raise ConfigurationError("first", self.first, "write a number, 0 or more")
        _check_seconds("spread_s", self.spread_s, least=0)
        _check_seconds("timeout_s", self.timeout_s, least=0.01)
        for source in self.sources:
            _check_address(source)

    @property
    def total(self) -> int:
        """Number of clients."""
        return sum(self.clients.values())


def _check_seconds(name: str, value: float, *, least: float) -> None:
    if not math.isfinite(value) or value < least:
        raise ConfigurationError(name, value, f"write seconds, {least:g} or more")


def _check_address(text: str) -> None:
    try:
        ip_address(text)
    except ValueError:
        raise ConfigurationError("sources", text, "write IP addresses of this machine") from None
