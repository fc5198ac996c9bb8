"""Tickets: signed text that carries a promise.

`1.` + base64url of kind (1 byte), slot (6, milliseconds of refill time), issuer (4), serial (4) and the first 10 bytes
of HMAC-SHA-256 (RFC 2104) over these fields and the names of fleet, route and class. The text says nothing about
who holds it; what it is worth is decided when it is shown (`herdgate.core.calendar`).

Every denial signs one, so a signer keeps its secrets as hashes of their padded form, ready to go on from (RFC 2104
section 4), which takes two thirds of the time.

Secrets are a list: the first signs, all of them verify, so that one can be replaced while tickets are out.
"""

import re
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from hmac import compare_digest
from typing import Literal, NamedTuple

from herdgate.core.errors import ConfigurationError

__all__ = ["LATEST_MS", "LEAST_SECRET_BYTES", "TICKET_PATTERN", "Kind", "Ticket", "TicketSigner"]

Kind = Literal["hint", "firm"]

TICKET_PATTERN = r"1\.[A-Za-z0-9_-]{34}"
LEAST_SECRET_BYTES = 16
LATEST_MS = (1 << 48) - 1
"""The last moment a ticket can carry."""

_FIELDS = struct.Struct(">BHIII")  # kind, slot (16 + 32 bits), issuer, serial
_MAC_BYTES = 10
_TEXT = re.compile(r"1\.[A-Za-z0-9_-]{33}[AQgw]")  # of the last character only two bits say something
_KINDS: tuple[Kind, Kind] = ("hint", "firm")


class Ticket(NamedTuple):
    """A promise: `firm` sets a token aside for its moment, `hint` is an honest estimate.

    Attributes:
        at_ms: the moment, in milliseconds of refill time of the calendar that issued it (48 bits).
        issuer: which life of which calendar made it (32 bits).
        serial: numbers the promises of one issuer and minute of `at_ms` (32 bits).
    """

    kind: Kind
    at_ms: int
    issuer: int
    serial: int


class _Secret:
    """HMAC-SHA-256 with one secret."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, secret: bytes) -> None:
        block = sha256().block_size
        key = (secret if len(secret) <= block else sha256(secret).digest()).ljust(block, b"\0")
        self._inner = sha256(bytes(byte ^ 0x36 for byte in key))
        self._outer = sha256(bytes(byte ^ 0x5C for byte in key))

    def mac(self, message: bytes) -> bytes:
        """The first bytes of the code, as many as a ticket carries."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()[:_MAC_BYTES]


class TicketSigner:
    """Signs tickets for one route and reads what clients show."""

    def __init__(self, secrets: Sequence[bytes], *, fleet: str = "", route: str = "", klass: str = "") -> None:
        """Take the secrets.

        Raises:
            ConfigurationError: there are none, or one is too short or no bytes; the message shows none of them.
        """
        # What was given is never shown: most of it may be right.
        if isinstance(secrets, (str, bytes)) or not isinstance(secrets, Sequence):
            raise ConfigurationError("secrets", f"a {type(secrets).__name__}", "write a list of secrets")
        if not secrets:
            raise ConfigurationError("secrets", "an empty list", "give at least one, or None for a random one")
        for secret in secrets:
            if not isinstance(secret, bytes):
                raise ConfigurationError("secrets", f"one that is a {type(secret).__name__}", "write random bytes")
            if len(secret) < LEAST_SECRET_BYTES:
                raise ConfigurationError(
                    "secrets", f"one of {len(secret)} bytes", f"write at least {LEAST_SECRET_BYTES} random bytes"
                )
        self._secrets = tuple(_Secret(secret) for secret in secrets)
        self._scope = b"\0".join(name.encode() for name in ("", fleet, route, klass))

    def sign(self, ticket: Ticket) -> str:
        """The ticket's text, 36 characters, safe in headers, queries, cookies and JSON."""
        kind, at_ms, issuer, serial = ticket
        fields = _FIELDS.pack(kind == "firm", at_ms >> 32, at_ms & 0xFFFFFFFF, issuer, serial)
        mac = self._secrets[0].mac(fields + self._scope)
        return "1." + urlsafe_b64encode(fields + mac).decode()[:34]

    def read(self, text: str) -> Ticket | None:
        """The ticket behind `text`, or None if it is not one of ours; takes the same time for every wrong signature."""
        if not _TEXT.fullmatch(text):
            return None
        raw = urlsafe_b64decode(text[2:] + "==")
        fields, mac = raw[: _FIELDS.size], raw[_FIELDS.size :]
        for secret in self._secrets:
            if compare_digest(mac, secret.mac(fields + self._scope)):
                kind, high, low, issuer, serial = _FIELDS.unpack(fields)
                return Ticket(_KINDS[kind], high << 32 | low, issuer, serial)
        return None
