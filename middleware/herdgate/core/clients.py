"""Who an arrival is, for per-client limits.

The peer address, unless the peer is a trusted proxy: then the forwarding header is walked from the right over trusted
addresses, and the first untrusted one is the client. A malformed entry ends the walk, and the last address that was
valid is the client; the walk never falls further left, for everything there was written by the client itself.

IPv6 addresses are cut to a prefix (/64: one subscriber) and belong to a wider network (/48) as well. Whoever has a
better key (an account, a verified claim) keeps the address beside it, so that one address cannot mint identities
without bound.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from itertools import islice
from typing import Literal, NamedTuple

from herdgate.core.errors import ConfigurationError

__all__ = ["LOCAL", "AddressRules", "Client", "ForwardingHeader", "parse_address", "parse_networks"]

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
ForwardingHeader = Literal["x-forwarded-for", "forwarded"]

CACHED_ADDRESSES = 16_384
MOST_PROXIES = 100
LONGEST_IDENTITY = 128
"""Characters; a longer one, or one that UTF-8 cannot hold, is counted under its digest, so that a key is small."""

# No part can match what the next one does, so that a header made to be slow to read is not.
_WITH_PORT = re.compile(
    r"\[(?P<bracketed>[0-9a-f:.]+)(%[^\]]*)?\](:\d+)?"  # [2001:db8::1%eth0]:443
    r"|(?P<plain>[0-9.]+)(:\d+)?"  # 192.0.2.1:443
    r"|(?P<bare>[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*)(%.*)?",  # 2001:db8::1%eth0
    re.IGNORECASE | re.ASCII,
)
_SURROGATE = re.compile("[\ud800-\udfff]")


class Client(NamedTuple):
    """The keys one arrival is counted under.

    Attributes:
        key: the identity where there is one, else the address.
        address: the address's own key; `local` for Unix sockets and missing peers.
        network: the wider IPv6 network's key; None for anything else.
        identified: `key` is an identity.
        exempt: its address is let past whatever the limits say.
    """

    key: str
    address: str
    network: str | None = None
    identified: bool = False
    exempt: bool = False

    def identify(self, identity: str, *, exempt: bool = False) -> "Client":
        """The same arrival under a better key."""
        return self._replace(key=_identity_key(identity), identified=True, exempt=self.exempt or exempt)


LOCAL = Client("local", "local")


def _identity_key(identity: str) -> str:
    key = f"id:{identity}"
    if len(key) <= LONGEST_IDENTITY and (key.isascii() or not _SURROGATE.search(key)):
        return key
    return f"digest:{blake2b(key.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def parse_address(text: str) -> Address | None:
    """An IP address with or without port, brackets and zone; IPv4-mapped IPv6 comes back as IPv4. None: not one."""
    match = _WITH_PORT.fullmatch(text.strip())
    if match is None:
        return None
    try:
        address = ip_address(match["bracketed"] or match["plain"] or match["bare"])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def parse_networks(field: str, networks: Iterable[str]) -> tuple[Network, ...]:
    """CIDRs or single addresses.

    Raises:
        ConfigurationError: one of them is neither, or has bits set behind its prefix.
    """
    if isinstance(networks, (str, bytes)) or not isinstance(networks, Iterable):
        raise ConfigurationError(field, networks, 'write a list, as in ["10.0.0.0/8"]')
    return tuple(_read_network(field, text) for text in networks)


def _read_network(field: str, text: object) -> Network:
    with suppress(ValueError):
        if isinstance(text, str):  # ip_network takes numbers too
            return ip_network(text)
    raise ConfigurationError(field, text, 'write networks such as "10.0.0.0/8", with no bits set behind the prefix')


class AddressRules:
    """How a peer and its forwarding header become a client.

    Args:
        trusted_proxies: networks whose word on the client's address is taken. Empty: nobody's.
        forwarding_header: the one header those proxies write; the other one is never read, as clients can send it.
        ipv6_prefix: bits that make one IPv6 client, 1 to 128.
        ipv6_network_prefix: bits of the wider network, at most `ipv6_prefix`.
        exempt_networks: clients there are let past and only counted.

    Raises:
        ConfigurationError: one of these is not of its kind.
    """

    def __init__(
        self,
        *,
        trusted_proxies: Sequence[str] = (),
        forwarding_header: ForwardingHeader = "x-forwarded-for",
        ipv6_prefix: int = 64,
        ipv6_network_prefix: int = 48,
        exempt_networks: Sequence[str] = (),
    ) -> None:
        if forwarding_header not in ("x-forwarded-for", "forwarded"):
            raise ConfigurationError("forwarding_header", forwarding_header, 'write "x-forwarded-for" or "forwarded"')
        _check_prefix("ipv6_prefix", ipv6_prefix, 128)
        _check_prefix("ipv6_network_prefix", ipv6_network_prefix, ipv6_prefix)
        self.forwarding_header: ForwardingHeader = forwarding_header
        self._trusted = parse_networks("trusted_proxies", trusted_proxies)
        self._exempt = parse_networks("exempt_networks", exempt_networks)
        self._prefixes = (ipv6_prefix, ipv6_network_prefix)
        self._client = lru_cache(CACHED_ADDRESSES)(self._read_client)

    def client(self, peer: str | None, forwarded: Sequence[str] = ()) -> Client:
        """The client behind `peer`.

        Args:
            peer: the address at the other end of the connection; None or a path for Unix sockets.
            forwarded: the values of the forwarding header, in the order received.
        """
        if not peer:
            return LOCAL
        return self._client(peer, self._walk(peer, forwarded) if forwarded and self._trusted else None)

    def is_trusted(self, address: Address) -> bool:
        """True if the address belongs to `trusted_proxies`."""
        return any(address in network for network in self._trusted)

    def _read_client(self, peer: str, walked: Address | None) -> Client:
        address = walked or parse_address(peer)
        if address is None:
            return LOCAL
        exempt = any(address in network for network in self._exempt)
        if isinstance(address, IPv4Address):
            return Client(f"ip:{address}", f"ip:{address}", exempt=exempt)
        prefix, network_prefix = self._prefixes
        key = f"ip:{_cut(address, prefix)}"
        return Client(key, key, f"net:{_cut(address, network_prefix)}", exempt=exempt)

    def _walk(self, peer: str, forwarded: Sequence[str]) -> Address | None:
        address = parse_address(peer)
        for entry in islice(self._entries(",".join(forwarded)), MOST_PROXIES):
            if address is None or not self.is_trusted(address):
                break
            before = parse_address(self._entry(entry))
            if before is None:
                break
            address = before
        return address

    def _entries(self, header: str) -> Iterator[str]:
        """The entries of the header, the last one first."""
        if self.forwarding_header == "x-forwarded-for":
            return reversed(header.rsplit(",", MOST_PROXIES))
        return _split_unquoted(header, ",")

    def _entry(self, entry: str) -> str:
        """The address part of one header entry (RFC 7239 section 4 for `Forwarded`)."""
        if self.forwarding_header == "x-forwarded-for":
            return entry
        for pair in _split_unquoted(entry, ";"):
            name, _, value = pair.partition("=")
            if name.strip().lower() == "for":
                return value.strip().strip('"')
        return ""


def _split_unquoted(text: str, separator: str) -> Iterator[str]:
    """The pieces between separators outside quoted strings (RFC 9110 section 5.6.4), the last one first.

    From the right, as the walk goes: what a client wrote at the left, an open quote say, cannot reach into what the
    proxies added.
    """
    end, quoted = len(text), False
    for index in range(len(text) - 1, -1, -1):
        if text[index] == '"' and not _is_escaped(text, index):
            quoted = not quoted
        elif text[index] == separator and not quoted:
            yield text[index + 1 : end]
            end = index
    yield text[:end]


def _is_escaped(text: str, index: int) -> bool:
    before = text[:index]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _check_prefix(name: str, value: object, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise ConfigurationError(name, value, f"write a number of bits from 1 to {most}")


def _cut(address: IPv6Address, prefix: int) -> str:
    return str(IPv6Network((address, prefix), strict=False))
