"""Errors of the client.

HerdgateClientError
├── ConfigurationError    a setting that cannot be right; also a ValueError
└── GaveUpError           no later try can succeed
    ├── RefusedError      the server refused the handshake for good
    ├── ClosedError       the server closed the session for good
    └── UntrustedError    the server's certificate does not verify

Every message is one clear line: where, what, the way out; no password, no query. The error of `websockets` that led to
it is its `__cause__`, but for that of a wrong URL, which shows all of it.
"""

__all__ = [
    "ClosedError",
    "ConfigurationError",
    "GaveUpError",
    "HerdgateClientError",
    "RefusedError",
    "UntrustedError",
]

_MOST_SHOWN = 80  # characters of what was given


class HerdgateClientError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigurationError(HerdgateClientError, ValueError):
    """A setting is wrong.

    Attributes:
        field: the setting's name.
    """

    def __init__(self, field: str, given: object, way_out: str) -> None:
        super().__init__(f"{field}: got {repr(given)[:_MOST_SHOWN]}; {way_out}")
        self.field = field


class GaveUpError(HerdgateClientError):
    """No later try can succeed, so there is none.

    Attributes:
        where: the URL, without its query and its password.
    """

    def __init__(self, where: str, what: str) -> None:
        super().__init__(f"{where}: {what}")
        self.where = where


class RefusedError(GaveUpError):
    """The server refused the handshake, and said neither that this will pass nor when to come back.

    Attributes:
        status: of the HTTP answer.
    """

    def __init__(self, where: str, what: str, status: int) -> None:
        super().__init__(where, what)
        self.status = status


class ClosedError(GaveUpError):
    """The server closed the session with a code that says: not again.

    Attributes:
        code: of the close frame (RFC 6455 section 7.4).
        reason: of the close frame.
    """

    def __init__(self, where: str, what: str, code: int, reason: str) -> None:
        super().__init__(where, what)
        self.code = code
        self.reason = reason


class UntrustedError(GaveUpError):
    """The server's certificate does not verify."""
