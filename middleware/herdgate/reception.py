"""What a server does with an arrival beside asking the gate: who is it, what is it told, who hears of it.

The ASGI middleware is one shell around it; a server that decides on raw bytes, before there is an app to call, is
another. Neither waits nor sends anything.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple
from urllib.parse import quote

from herdgate.asgi import Scope
from herdgate.core.answers import Arrival, Denied, Invitation, Reason
from herdgate.core.clients import Client
from herdgate.core.errors import ConfigurationError
from herdgate.core.numbers import check_number
from herdgate.core.permits import Permit
from herdgate.denial import (
    DenialStyle,
    Headers,
    TicketCookie,
    challenge,
    close_reason,
    http_denial,
    our_cookie,
    read_statuses,
)
from herdgate.gate import Gate
from herdgate.identity import Identity
from herdgate.logs import DenialLog
from herdgate.origins import OriginRules, is_same_host
from herdgate.paths import PathPatterns, route_path
from herdgate.request import SESSION_COOKIE, SESSION_HEADER, TICKET_COOKIE, Request, read_request
from herdgate.settings import check_function, check_kind

__all__ = ["ADMITTED", "HELD", "CloseAnswer", "Decision", "Held", "HttpAnswer", "Reception", "Visit", "admitted_before"]

ADMITTED = "herdgate.admitted"
"""Where a server that has asked the gate itself leaves the permit, in `scope["state"]`: nobody asks again."""

HELD = "herdgate.held"
"""Where a relay behind the middleware finds what it holds for the arrival, in `scope["state"]`: `Held`."""

Outcome = Literal["admitted", "denied", "gone", "exempt"]

_logger = logging.getLogger("herdgate")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about one arrival, for `on_decision`.

    Attributes:
        outcome: `gone`: the client left before the verdict; `exempt`: none was made.
        client: the client key.
        path: the guarded path.
        reason: why it was denied.
        retry_s: seconds told to wait; None for never, and for the admitted.
        enforced: False if a denial was only counted (shadow mode).
    """

    outcome: Outcome
    client: str
    path: str
    reason: Reason | None = None
    retry_s: float | None = None
    enforced: bool = True


class Visit(NamedTuple):
    """One guarded request: what it says of itself, and who sent it."""

    scope: Scope
    request: Request
    client: Client
    klass: str | None


class Held(NamedTuple):
    """What is held for an arrival that was admitted.

    Attributes:
        permit: says which worker it was granted for.
        invite: `Gate.invite`, for the class of the client.
    """

    permit: Permit
    invite: Callable[..., Awaitable[Invitation]]


class HttpAnswer(NamedTuple):
    """A denial as an HTTP response."""

    status: int
    headers: Headers
    body: bytes


class CloseAnswer(NamedTuple):
    """A denial as a handshake that is accepted, with these headers, and closed with 1013 and this reason.

    Attributes:
        subprotocol: the first one offered; without one echoed, a browser that offered any reports 1006 and no reason.
    """

    subprotocol: str | None
    headers: Headers
    reason: str


class Reception:
    """Stands before one gate; the arguments are those of `AdmissionMiddleware`.

    Attributes:
        worker_of: asked for the only worker that can take an arrival, see `Arrival.worker`; by default any can.

    Raises:
        ConfigurationError: a setting is wrong; the message names it and the way out.
    """

    def __init__(
        self,
        gate: Gate,
        identity: Identity,
        origins: OriginRules,
        websockets: PathPatterns,
        *,
        denial: DenialStyle,
        statuses: Mapping[Reason, int],
        max_wait_s: float,
        max_held: int,
        enforce: bool,
        on_decision: Callable[[Decision], None] | None,
    ) -> None:
        if denial not in ("auto", "http", "close"):
            raise ConfigurationError("denial", denial, 'write "auto", "http" or "close"')
        if on_decision is not None:
            check_function("on_decision", on_decision, "give a plain function of one Decision")
        check_kind("enforce", enforce, bool, "write True, or False to count only")
        check_number("max_wait_s", max_wait_s, least=0, unit="seconds")
        check_number("max_held", max_held, least=0, unit="a whole number of handshakes", whole=True)
        self.gate, self.enforce = gate, enforce
        self.statuses = read_statuses(statuses)
        self._identity, self._origins = identity, origins
        self._path = websockets.cookie_path()
        self._denial = denial
        self._max_wait_s, self._max_held = max_wait_s, max_held
        self._on_decision = on_decision
        self._report_failed = False
        self._log = DenialLog()
        self.worker_of: Callable[[Scope], str | None] = _any_worker

    def receive(self, scope: Scope) -> Visit:
        """Read one request; tickets and session tokens are taken out of its scope."""
        request = read_request(scope, self.gate.route, self._identity.forwarding_header)
        return Visit(scope, request, self._identity.client(scope, request), self._identity.klass(scope, request))

    def arrival(self, visit: Visit) -> Arrival:
        """What the gate is asked."""
        request = visit.request
        allowed = self._origins.allow(request.origin, request.host)
        return Arrival(visit.client, request.ticket, allowed, klass=visit.klass, worker=self.worker_of(visit.scope))

    def is_worth_holding(self, denied: Denied) -> bool:
        """True for a firm slot that is close by, while there is room for one more to wait for his."""
        if not denied.firm or denied.reason != "rate" or not self.enforce:
            return False
        return (denied.retry_s or 0.0) <= self._max_wait_s and self.gate.held < self._max_held

    def report(self, outcome: Outcome, visit: Visit, denied: Denied | None = None, *, enforced: bool = True) -> None:
        """Say what was decided; a denial is counted for the log as well."""
        if denied is not None:
            self._log.count(denied.reason)
        if self._on_decision is None:
            return
        reason, retry_s = (denied.reason, denied.retry_s) if denied else (None, None)
        decision = Decision(outcome, visit.client.key, route_path(visit.scope), reason, retry_s, enforced)
        try:
            self._on_decision(decision)
        except Exception:
            if not self._report_failed:
                self._report_failed = True
                _logger.exception("on_decision failed; the decision stands (said once)")

    def http_answer(
        self, visit: Visit, denied: Denied, status: int | None = None, challenged: str | None = None
    ) -> HttpAnswer:
        """A denial over HTTP.

        Args:
            status: in place of the usual one.
            challenged: what a 401 says of how to authenticate.
        """
        status = status or self.statuses[denied.reason]
        headers, body = http_denial(denied)
        headers += challenge(status, challenged)
        if visit.scope["type"] == "http":
            headers += self._origins.sharing(visit.request.origin, visit.request.host)
        return HttpAnswer(status, headers, body)

    def closes(self, visit: Visit, denied: Denied) -> bool:
        """True for a close denial; a page that may never come is never told more than no."""
        if denied.reason in ("origin", "auth"):
            return False
        return self._denial == "close" or (self._denial == "auto" and visit.request.origin is not None)

    def close_answer(self, visit: Visit, denied: Denied) -> CloseAnswer:
        """A denial that a page can read."""
        return CloseAnswer(self.subprotocol(visit), self.ticket_cookie(visit).headers(denied), close_reason(denied))

    def subprotocol(self, visit: Visit) -> str | None:
        """The one that a close denial echoes."""
        return next(filter(None, visit.scope.get("subprotocols") or ()), None)

    def ticket_cookie(self, visit: Visit) -> TicketCookie:
        """The one that a close denial sets."""
        gate = self.gate
        return TicketCookie(f"{TICKET_COOKIE}{gate.route}", *self._manner(visit), gate.limits.grace_s)

    def session_headers(self, visit: Visit) -> Headers:
        """What the 101 of an admitted client carries; nothing where no class needs it."""
        token = self.gate.session_token()
        if token is None:
            return []
        (path, secure, same_site), age_s = self._manner(visit), self.gate.limits.session_ttl_s
        name = f"{SESSION_COOKIE}{self.gate.route}"
        cookie = our_cookie(name, token, age_s=age_s, path=path, secure=secure, same_site=same_site)
        return [(SESSION_HEADER, token.encode()), (b"set-cookie", cookie)]

    def _manner(self, visit: Visit) -> tuple[str, bool, bool]:
        """Path, secure, same site: how cookies of this visitor's page have to be."""
        scope, request = visit.scope, visit.request
        path = _cookie_path(scope.get("root_path", "") + self._path)
        same_site = request.origin is None or is_same_host(request.origin, request.host)
        return path, scope.get("scheme") == "wss", same_site


def admitted_before(scope: Scope) -> Permit | None:
    """The permit of an arrival that its server has had admitted."""
    permit: Permit | None = (scope.get("state") or {}).pop(ADMITTED, None)
    return permit


def _any_worker(_scope: Scope) -> str | None:
    return None


@lru_cache(maxsize=64)
def _cookie_path(path: str) -> str:
    """The path as browsers write it; a root path may hold what a client chose, even a line break."""
    return quote(path, safe="/!$&'()*+,:=@")
