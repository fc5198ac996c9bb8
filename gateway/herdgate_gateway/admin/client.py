"""Asks a running gateway, over its control socket or over HTTP. Every failure is one line with the way out.

The standard library's client: it starts fast, speaks over Unix sockets with a few lines, and asks no proxy that the
environment names. The listener is here, and a token goes with the request.
"""

import json
import socket
from contextlib import closing
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlencode, urlsplit

from herdgate.core.errors import printable
from herdgate_gateway.admin.access import check_token
from herdgate_gateway.errors import ConfigurationError, HerdgateError

__all__ = ["AdminClient"]

TIMEOUT_S = 10.0
"""Longer than the gateway waits for its main loop, so that its own answer is the one that is seen."""

MOST_ANSWER = 16 * 1024 * 1024
"""Bytes of an answer that are read."""


@dataclass(frozen=True, slots=True)
class AdminClient:
    """One admin listener.

    Attributes:
        address: `http://host:port`, or the path of a control socket.
        token: shown over HTTP; None: none.

    Raises:
        ConfigurationError: a URL that cannot be one, a token that no header can carry.
    """

    address: str | Path
    token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.address, str):
            _split(self.address)
        if self.token is not None:
            check_token("--token", self.token)

    def status(self) -> dict[str, Any]:
        """Every count, as `/status.json` has them.

        Raises:
            HerdgateError: there was no answer, or it was a refusal.
        """
        return self._ask("GET", "/status.json")

    def change(self, name: str, value: str) -> dict[str, Any]:
        """Change `rate` or `fraction`; what it is now.

        Raises:
            HerdgateError: there was no answer, or it was a refusal.
        """
        return self._ask("POST", f"/{name}", urlencode({name: value}))

    def drain(self, deadline: str | None) -> dict[str, Any]:
        """Begin a drain, to be over within so many seconds; None: as the gateway's settings say.

        Raises:
            HerdgateError: there was no answer, or it was a refusal.
        """
        return self._ask("POST", "/drain", None if deadline is None else urlencode({"deadline": deadline}))

    def _ask(self, method: str, path: str, form: str | None = None) -> dict[str, Any]:
        headers = {} if self.token is None else {"authorization": b"Bearer " + self.token.encode()}
        try:
            with closing(_connection(self.address)) as http:
                http.request(method, path, form, headers)
                with http.getresponse() as answer:
                    body = answer.read(MOST_ANSWER)
        except (HTTPException, OSError, UnicodeError) as error:  # UnicodeError: a name that no DNS can hold
            way_out = "is the gateway running? Name another with --socket or --url"
            cause = _line(str(error)) or type(error).__name__
            raise HerdgateError(f"no answer from {self.address} ({cause}); {way_out}") from None
        if answer.status != 200:
            raise HerdgateError(f"{self.address} answered {answer.status}: {_line(body.decode(errors='replace'))}")
        return _read(body, self.address)


class _UnixConnection(HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(TIMEOUT_S)
        self.sock.connect(str(self._path))


def _connection(address: str | Path) -> HTTPConnection:
    if isinstance(address, Path):
        return _UnixConnection(address)
    parts = _split(address)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=TIMEOUT_S)


def _split(url: str) -> SplitResult:
    """A URL's parts.

    Raises:
        ConfigurationError: it is not that of a listener.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0 and not _says_more(parts):
            return parts
    except ValueError:  # an address or a port that is none
        pass
    raise ConfigurationError("--url", url, "write http://host:port, the admin listener of a gateway")


def _says_more(parts: SplitResult) -> bool:
    """True if something but scheme, host and port would be left out silently."""
    return bool(parts.path.strip("/") or parts.query or parts.fragment) or parts.username is not None


def _read(body: bytes, address: str | Path) -> dict[str, Any]:
    try:
        read = json.loads(body)
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise HerdgateError(f"{address} is no admin listener: its answer is not its JSON; name another with --url")
    return read


def _line(text: str) -> str:
    """The first line, without what a terminal would act on."""
    first = next(iter(text.splitlines()), "")
    return printable(first)[:300]
