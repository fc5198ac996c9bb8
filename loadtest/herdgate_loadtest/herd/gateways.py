"""The gateways of a herd, asked at their admin listeners or control sockets: to drain, and for permits still taken.

Rules: `http.client`, which gevent's patches keep from blocking anything but the greenlet that asks; no proxy that the
environment names. What is wrong is one line with the way out.
"""

import json
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, TypeVar
from urllib.parse import urlsplit

from herdgate.core.errors import printable
from herdgate_loadtest.errors import ConfigurationError, LoadtestError
from herdgate_loadtest.gate_counts import counts_since

__all__ = ["Gateways", "check_address", "check_token"]

_ANSWER_S = 10.0
_OK = 200
_LONGEST = 300
_MOST_BYTES = 1 << 20  # a status of a hundred gates has about 64 KiB
_Read = TypeVar("_Read")


def check_address(address: str) -> None:
    """See that it can be one.

    Raises:
        ConfigurationError: neither the URL of an admin listener nor a path.
    """
    if "://" not in address:
        return
    try:
        parts = urlsplit(address)
        more = parts.path.strip("/") or parts.query or parts.fragment or parts.username
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and not more:
            return
    except ValueError:  # a port or an address that is none
        pass
    raise ConfigurationError("--gateway", address, "write http://HOST:PORT, an admin listener, or a control socket")


def check_token(token: str) -> None:
    """See that a header can carry it.

    Raises:
        ConfigurationError: it cannot; the token is not shown.
    """
    if not (token.isascii() and token.isprintable()):
        raise ConfigurationError("--token", "something else", "write ASCII letters, as in admin.token")


class Gateways:
    """Some, or none.

    Args:
        addresses: `http://host:port` of an admin listener, or the path of a control socket.
        token: `admin.token`, for changes over HTTP; "": none.
    """

    def __init__(self, addresses: Sequence[str], token: str = "") -> None:
        self._addresses = addresses
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def drain(self) -> None:
        """Tell the first one to drain, within the time that its settings say.

        Raises:
            LoadtestError: it does not.
        """
        self._ask(self._addresses[0], "POST", "/drain")

    def is_drained(self) -> bool:
        """The first one has nobody left.

        Raises:
            LoadtestError: it does not say.
        """
        return self._read(self._addresses[0], lambda status: (status["drain"] or {}).get("state") == "drained")

    def permits(self, since: float) -> int | None:
        """Permits that are taken at all of them, as of `since` (monotonic seconds) or later; None: not known yet.

        Raises:
            LoadtestError: one of them does not say.
        """
        taken = [self._permits(address, since) for address in self._addresses]
        known = [permits for permits in taken if permits is not None]
        return sum(known) if len(known) == len(taken) else None

    def _permits(self, address: str, since: float) -> int | None:
        asked_at = time.monotonic()
        counts = self._read(address, lambda status: counts_since(status, asked_at=asked_at, since=since))
        return None if counts is None else counts.permits

    def _read(self, address: str, what: Callable[[dict[str, Any]], _Read]) -> _Read:
        try:
            return what(self._ask(address, "GET", "/status.json"))
        except (KeyError, TypeError, AttributeError):
            raise LoadtestError(f"--gateway: {address} is no admin listener: it tells something else") from None

    def _ask(self, address: str, method: str, path: str) -> dict[str, Any]:
        try:
            with closing(_connection(address)) as http:
                http.request(method, path, headers=self._headers)
                with http.getresponse() as answer:
                    body = answer.read(_MOST_BYTES)
        except (HTTPException, OSError, UnicodeError) as error:  # UnicodeError: a name that no DNS can hold
            cause = printable(str(error).strip() or type(error).__name__)[:_LONGEST]
            raise LoadtestError(f"--gateway: no answer from {address} ({cause}); is it running?") from None
        if answer.status != _OK:
            said = "".join(letter for letter in body.decode(errors="replace") if letter.isprintable())[:_LONGEST]
            raise LoadtestError(f"--gateway: {address} answered {answer.status}: {said}")
        try:
            read: dict[str, Any] = json.loads(body)
        except (ValueError, RecursionError):
            raise LoadtestError(f"--gateway: {address} is no admin listener: its answer is not JSON") from None
        return read


class _Unix(HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=_ANSWER_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_ANSWER_S)
        self.sock.connect(self._path)


def _connection(address: str) -> HTTPConnection:
    if "://" not in address:
        return _Unix(address)
    parts = urlsplit(address)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=_ANSWER_S)
