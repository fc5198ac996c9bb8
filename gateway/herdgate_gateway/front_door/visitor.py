"""One handshake from its head to its verdict, whatever connection it came on, and without a task of its own.

    read -> exempt, or ask the gate -> admitted: the line takes it in
                                    -> firm slot close by: the line holds it, then ask again
                                    -> denied: the line sends the answer

The rules are those of the ASGI middleware, as the code is: `herdgate.reception`.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol

from herdgate import Refused
from herdgate.asgi import Scope
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.permits import Permit
from herdgate.reception import Visit
from herdgate_gateway.front_door.answers import http_answer
from herdgate_gateway.front_door.denials import close_denial, denial_answer
from herdgate_gateway.recall import Inviting
from herdgate_gateway.route import Route
from herdgate_gateway.shortage import full_if_ours

__all__ = ["Line", "Visitor", "handshake_key"]


class Line(Protocol):
    """The connection of a visitor."""

    def has_left(self) -> bool:
        """True if its client has hung up."""
        ...

    def answer(self, data: bytes, *, lingers: bool) -> None:
        """Send the last bytes; a close frame among them lingers, for the client answers it."""
        ...

    def admit(self, permit: Permit) -> None:
        """Take the visitor in. The permit is the line's to release."""
        ...

    def hold(self, seconds: float) -> None:
        """Call `Visitor.resume` after so many seconds."""
        ...

    def drop(self) -> None:
        """The client has left: hang up."""
        ...


class Visitor:
    """A handshake that is sound, for one route.

    Attributes:
        line: its connection; it may be replaced until the verdict.
    """

    __slots__ = ("_arrival", "_holding", "_take_back", "_visit", "line", "route", "scope")

    def __init__(self, route: Route, scope: Scope, line: Line) -> None:
        self.route, self.scope, self.line = route, scope, line
        self._visit: Visit = route.reception.receive(scope)
        self._arrival: Arrival | None = None
        self._take_back: Callable[[], None] | None = None
        self._holding: AbstractContextManager[None] | None = None
        if route.authentication is not None:
            route.authentication.expect(scope)

    def arrive(self) -> None:
        """Ask the gate; the line hears of it, at once or later."""
        reception, client = self.route.reception, self._visit.client
        if client.exempt:
            reception.report("exempt", self._visit)
            self.line.admit(self.route.gate.let_past(client, exempt=True))
        else:
            self._ask(reception.arrival(self._visit))

    def resume(self) -> None:
        """The firm slot it was held for has come."""
        arrival = self._arrival
        assert arrival is not None
        self._end_holding()
        worker = self.route.reception.worker_of(self.scope)  # it may be another one by now
        self._ask(arrival._replace(worker=worker))

    def hurry(self) -> None:
        """Ask again now, if it is held."""
        if self._holding is not None:
            self.resume()

    def leave(self) -> None:
        """The client has left before a verdict."""
        if self._take_back is not None:
            self._take_back()
        self._end_holding()
        self._be_gone()

    def done(self) -> None:
        """It has passed, or is answered."""
        if self.route.authentication is not None:
            self.route.authentication.leave(self.scope)

    def session_headers(self) -> list[tuple[bytes, bytes]]:
        """What its 101 carries beside the worker's own."""
        return self.route.reception.session_headers(self._visit)

    def inviting(self) -> Inviting:
        """Calls it back, if its worker is lost. Of the visitor itself it keeps nothing."""
        return partial(self.route.gate.invite, self._visit.klass)

    async def refuse(self, permit: Permit, refused: Refused) -> None:
        """Answer one that was admitted, and is refused behind the gate."""
        permit.release()
        refused = full_if_ours(refused)
        denied = await self.route.gate.refuse(refused.reason, self._visit.klass)
        self.route.reception.report("denied", self._visit, denied)
        self._answer(denied, refused.status, refused.challenge)

    def _ask(self, arrival: Arrival) -> None:
        self._arrival = arrival
        self._take_back = self.route.gate.ask(arrival, self._answered)

    def _answered(self, verdict: Admitted | Denied) -> None:
        self._take_back = None
        if isinstance(verdict, Admitted):
            self._admitted(verdict)
        elif self.route.reception.is_worth_holding(verdict):
            self._hold(verdict)
        else:
            self._denied(verdict)

    def _admitted(self, admitted: Admitted) -> None:
        if self.line.has_left():
            self.route.gate.undo(admitted)
            self._be_gone()
            self.line.drop()
            return
        self.route.reception.report("admitted", self._visit)
        self.line.admit(admitted.permit)

    def _hold(self, denied: Denied) -> None:
        assert self._arrival is not None
        self._holding = self.route.gate.holding(denied)
        self._holding.__enter__()
        self._arrival = self._arrival._replace(ticket=denied.ticket, counted=True)
        self.line.hold(denied.retry_s or 0.0)

    def _end_holding(self) -> None:
        if self._holding is not None:
            self._holding.__exit__(None, None, None)
            self._holding = None

    def _denied(self, denied: Denied) -> None:
        reception = self.route.reception
        reception.report("denied", self._visit, denied, enforced=reception.enforce)
        if reception.enforce:
            self._answer(denied)
        else:
            self.line.admit(self.route.gate.let_past(self._visit.client, exempt=False))

    def _answer(self, denied: Denied, status: int | None = None, challenged: str | None = None) -> None:
        self.done()
        reception, visit = self.route.reception, self._visit
        if reception.closes(visit, denied):
            key, subprotocol = handshake_key(self.scope), reception.subprotocol(visit)
            data = close_denial(denied, key, subprotocol, reception.ticket_cookie(visit))
            self.line.answer(data, lingers=True)
        elif challenged is None:
            self.line.answer(denial_answer(denied, status or reception.statuses[denied.reason]), lingers=False)
        else:
            self.line.answer(http_answer(*reception.http_answer(visit, denied, status, challenged)), lingers=False)

    def _be_gone(self) -> None:
        self.done()
        self.route.gate.gone += 1
        self.route.reception.report("gone", self._visit)


def handshake_key(scope: Scope) -> bytes:
    """Its `Sec-WebSocket-Key`."""
    key: bytes = dict(scope["headers"])[b"sec-websocket-key"]
    return key
