"""The HTTP answer to a denial, byte for byte what `http_denial` and `http_answer` make of it, from a template.

A crowd's denials differ in a number and a ticket. The template of a status and a reason is made once, by rendering a
denial with marks in the places of both.
"""

from functools import lru_cache

from herdgate.core.answers import Denied, Reason
from herdgate.denial import challenge, http_denial, retry_ms
from herdgate_gateway.front_door.answers import http_answer

__all__ = ["denial_answer"]

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
    whole = http_answer(status, headers, body).replace(b"%", b"%%")
    length = b"content-length: %d"
    for mark, kind in ((_MARK_MS, b"%b"), (_MARK_RETRY, b"%d"), (_MARK_TICKET, b"%b"), (length % len(body), length)):
        whole = whole.replace(mark, kind)
    return whole, len(body) - len(_MARK_MS) - (len(_MARK_TICKET) if has_ticket else 0)
