"""The answers to a denial, byte for byte what `herdgate.denial` and `answers` make of it, from templates.

A crowd's denials differ in a number and a ticket. A template is made once, by rendering a denial with marks in the
places of both; no client can write one of the marks.
"""

from functools import lru_cache

from herdgate.core.answers import Denied, Reason
from herdgate.denial import TRY_AGAIN_LATER, TicketCookie, challenge, close_reason, http_denial, retry_ms
from herdgate_gateway.front_door.answers import accept_key, close_answer, close_frame, http_answer

__all__ = ["close_denial", "denial_answer"]

_MARK_S = 7_654_321.001
_MARK_MS, _MARK_RETRY, _MARK_TICKET = b"7654321001", b"7654322", b"{ticket}"


def denial_answer(denied: Denied, status: int) -> bytes:
    """The answer to a handshake."""
    told, ticket = retry_ms(denied), denied.ticket
    if told is None or denied.quota is not None or status == 401:
        headers, body = http_denial(denied)
        return http_answer(status, [*headers, *challenge(status)], body)
    template, fixed = _template(status, denied.reason, has_ticket=ticket is not None)
    ms = b"%d" % told
    if ticket is None:
        return template % (-(-told // 1000), ms, fixed + len(ms), ms)
    shown = ticket.encode()
    return template % (-(-told // 1000), ms, shown, fixed + len(ms) + len(shown), ms, shown)


@lru_cache(maxsize=64)
def _template(status: int, reason: Reason, *, has_ticket: bool) -> tuple[bytes, int]:
    """For the seconds, the milliseconds, the ticket if there is one, the length of the body, and the milliseconds and
    the ticket again; and the length of the body without the last two."""
    headers, body = http_denial(Denied(reason, _MARK_S, _MARK_TICKET.decode() if has_ticket else None))
    length = b"content-length: %d"
    marks = ((_MARK_MS, b"%b"), (_MARK_RETRY, b"%d"), (_MARK_TICKET, b"%b"), (length % len(body), length))
    fixed = len(body) - len(_MARK_MS) - (len(_MARK_TICKET) if has_ticket else 0)
    return _filled(http_answer(status, headers, body), *marks), fixed


def close_denial(denied: Denied, key: bytes, subprotocol: str | None, cookie: TicketCookie) -> bytes:
    """A handshake that is accepted and closed with 1013; see `answers.close_answer`.

    Args:
        key: the client's `Sec-WebSocket-Key`.
        subprotocol: the one to echo.
        cookie: brings the ticket back.
    """
    accepted, frame = accept_key(key), close_frame(TRY_AGAIN_LATER, close_reason(denied))
    if denied.ticket is None:
        return _close_template(subprotocol, None) % accepted + frame
    return _close_template(subprotocol, cookie) % (accepted, denied.ticket.encode(), cookie.age_s(denied)) + frame


@lru_cache(maxsize=64)
def _close_template(subprotocol: str | None, cookie: TicketCookie | None) -> bytes:
    """The 101, for the accepted key, and the ticket and its age if there is one."""
    denied = Denied("rate", _MARK_S, _MARK_TICKET.decode())
    headers = cookie.headers(denied) if cookie else []
    age = b"Max-Age=%d" % (cookie.age_s(denied) if cookie else 0)
    whole = close_answer(b"", subprotocol, headers, TRY_AGAIN_LATER, "").removesuffix(close_frame(TRY_AGAIN_LATER, ""))
    return _filled(whole, (accept_key(b""), b"%b"), (_MARK_TICKET, b"%b"), (age, b"Max-Age=%d"))


def _filled(whole: bytes, *marks: tuple[bytes, bytes]) -> bytes:
    """A template: the kind of what belongs there in the place of each mark."""
    whole = whole.replace(b"%", b"%%")
    for mark, kind in marks:
        whole = whole.replace(mark, kind)
    return whole
