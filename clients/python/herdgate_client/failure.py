"""What a failed try or a lost session means: why, what was told, and whether another try can succeed.

| what happened | then |
|---|---|
| an HTTP answer with `Herdgate-Retry-Ms`, whatever its status | again |
| 408, 421, 425, 429, 5xx, of the server or of a proxy | again |
| any other status: 400, 401, 403, 404, 426, a redirect to nowhere, ... | for good |
| no connection, no answer, cut off half-way, timeout, name not found | again |
| certificate not verified; an answer that is no WebSocket's; no subprotocol of those offered | for good |
| the server closed with 1002, 1003, 1007, 1008, 1009, 1010 | for good |
| any other end, an application's own codes (4000 to 4999) too | again |

Rules: pure. For good is decided only on what the server said first: a session that our side ended may be opened again.
"""

import ssl
from typing import NamedTuple

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidMessage, InvalidProxyMessage, InvalidProxyStatus, InvalidStatus
from websockets.http11 import Response

from herdgate_client.errors import ClosedError, GaveUpError, RefusedError, UntrustedError
from herdgate_client.told import NOTHING, Told, denial_reason, told_by_close, told_by_headers

__all__ = ["Failure", "of_end", "of_try"]

_PASSING_STATUSES = (408, 421, 425, 429)  # and 5xx
_FINAL_CODES = (1002, 1003, 1007, 1008, 1009, 1010)  # RFC 6455 section 7.4.1

_WAYS_OUT = {
    400: "the server does not understand this handshake; check the URL",
    401: "show valid credentials",
    403: "this client or its origin is not allowed",
    404: "check the path of the URL",
    407: "the proxy wants credentials",
    426: "the server wants another protocol; check the URL",
}


class Failure(NamedTuple):
    """One failed try, or one lost session.

    Attributes:
        why: one line for logs.
        told: what the server said about coming back.
        final: what to raise; None: try again.
    """

    why: str
    told: Told = NOTHING
    final: GaveUpError | None = None


def of_try(error: Exception, where: str) -> Failure:
    """Judge a handshake that failed with an `OSError` or an error of `websockets`."""
    if isinstance(error, InvalidStatus):
        return _of_response(error.response, where, "")
    if isinstance(error, InvalidProxyStatus):
        return _of_response(error.response, where, "of the proxy")
    why = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, ssl.SSLCertVerificationError):
        return Failure(
            why, final=UntrustedError(where, f"{error.verify_message}; the server's certificate is not trusted")
        )
    if isinstance(error, OSError) or _is_cut_off(error):
        return Failure(why)
    return Failure(why, final=GaveUpError(where, f"{why}; no later try can succeed"))


def of_end(ws: ClientConnection, where: str) -> Failure:
    """Judge a session that has ended."""
    frame = ws.protocol.close_rcvd
    if frame is None:
        return Failure("the connection was lost")
    code, reason = int(frame.code), frame.reason
    why = f"closed with {code}"
    if code not in _FINAL_CODES or not ws.protocol.close_rcvd_then_sent:
        return Failure(why, told_by_close(code, reason))  # without the reason: logs hold no tickets
    why = f"{why} {reason!a}" if reason else why
    return Failure(why, final=ClosedError(where, f"{why}; not to be tried again", code, reason))


def _of_response(response: Response, where: str, whose: str) -> Failure:
    status, told = response.status_code, told_by_headers(_single(response))
    why = " ".join(filter(None, (f"HTTP {status}", whose, denial_reason(response.body))))
    if (told.exact and not whose) or status in _PASSING_STATUSES or 500 <= status <= 599:
        return Failure(why, told)
    way_out = _WAYS_OUT.get(status, "no later try can succeed")
    return Failure(why, final=RefusedError(where, f"{why}; {way_out}", status))


def _single(response: Response) -> dict[str, str]:
    """The headers that were sent once, by the names we ask for: what comes twice says two things."""
    names = ("Herdgate-Retry-Ms", "Herdgate-Ticket", "Retry-After", "Date")
    return {name: values[0] for name in names if len(values := response.headers.get_all(name)) == 1}


def _is_cut_off(error: Exception) -> bool:
    """The connection ended in mid-answer."""
    cause = error.__cause__
    return isinstance(error, (InvalidMessage, InvalidProxyMessage)) and isinstance(cause, (EOFError, OSError))
