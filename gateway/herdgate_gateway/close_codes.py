"""What may go on the wire when a leg ends (RFC 6455 section 7.4).

Rules: a code that a peer may send passes with its reason, 1013 and 3000-4999 among them. No code (1005) stays no code.
A loss (1006, 1015) is told in words that may be said: to a client that is not called back (`recall`) 1014, bad gateway;
to the worker 1001, the client is gone, which is nobody's error. Anything else becomes 1011. 1012-1014 are registered
with IANA, not in the RFC.
"""

__all__ = [
    "BAD_GATEWAY",
    "GOING_AWAY",
    "INTERNAL_ERROR",
    "INVALID_DATA",
    "LOST",
    "MESSAGE_TOO_BIG",
    "NO_CODE",
    "POLICY_VIOLATION",
    "SERVICE_RESTART",
    "fit_reason",
    "to_client",
    "to_worker",
]

GOING_AWAY = 1001
NO_CODE = 1005
LOST = 1006
INVALID_DATA = 1007
POLICY_VIOLATION = 1008
MESSAGE_TOO_BIG = 1009
INTERNAL_ERROR = 1011
SERVICE_RESTART = 1012
BAD_GATEWAY = 1014

LONGEST_REASON = 123
"""Bytes: a control frame holds 125, and two are the code (RFC 6455 section 5.5)."""

_SENDABLE = frozenset((1000, 1001, 1002, 1003, *range(1007, 1015), *range(3000, 5000)))
_LOST = (LOST, 1015)


def to_client(code: int | None) -> int | None:
    """What the client is told when the worker's leg ended with `code`; None: a close without one."""
    return _sendable(code, BAD_GATEWAY)


def to_worker(code: int | None) -> int | None:
    """What the worker is told when the client's leg ended with `code`; None: a close without one."""
    return _sendable(code, GOING_AWAY)


def _sendable(code: int | None, lost: int) -> int | None:
    if code is None or code == NO_CODE:
        return None
    if code in _LOST:
        return lost
    return code if code in _SENDABLE else INTERNAL_ERROR


def fit_reason(reason: str) -> str:
    """As much of a reason as a close frame holds, cut between characters."""
    return reason.encode("utf-8", "replace")[:LONGEST_REASON].decode("utf-8", "ignore")
