"""What stands in front of the decision: a handshake that cannot be relayed costs nothing but its answer.

    handshake -> can it be read in one way only -> which connection is it -> the app, which decides

A handshake with a fault is answered here, whole (400 or 426): it takes no token, no permit and no worker, and moves no
counter. One without goes on with its id in `scope["state"]["connection_id"]`, and with `duplicates` where its route
says something of them. What is no handshake passes untouched.
"""

from typing import NamedTuple

from herdgate.asgi import ASGIApp, Receive, Scope, Send
from herdgate.refusal import offers_http_denial, refuse_websocket, reject_websocket
from herdgate_gateway.connection_ids import ConnectionIds
from herdgate_gateway.headers import Fault, check_handshake, check_path

__all__ = ["NO_HANDSHAKE", "Answer", "CheckedHandshake", "answer_of", "refuse"]

NO_HANDSHAKE = Fault(426, "only WebSockets are spoken here")
"""What a request is told that is no handshake, or one for another protocol."""


class CheckedHandshake:
    """Lets handshakes through that can be relayed.

    Args:
        app: what decides about them.
        connection_ids: where their ids are from; by default each is drawn.
    """

    def __init__(self, app: ASGIApp, connection_ids: ConnectionIds | None = None) -> None:
        self._app = app
        self._connection_ids = connection_ids or ConnectionIds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        fault = self.check(scope) if scope["type"] == "websocket" else None
        if fault is None:
            await self._app(scope, receive, send)
            return
        await receive()
        await refuse(scope, receive, send, answer_of(fault))

    def check(self, scope: Scope) -> Fault | None:
        """Why this handshake is refused; None for one that goes on, its id in the scope."""
        return check_handshake(scope) or self.identify(scope)

    def check_simple(self, scope: Scope) -> Fault | None:
        """As `check`, for a handshake that `read_head` has read; an id that is drawn is left to `identify`."""
        fault = check_path(scope["raw_path"])
        return fault if fault or self._connection_ids.are_drawn else self.identify(scope)

    def identify(self, scope: Scope) -> Fault | None:
        """Find the id of a handshake, or draw it; nothing if it has one."""
        state = scope.setdefault("state", {})
        if "connection_id" in state:
            return None
        found = self._connection_ids.find(scope)
        if isinstance(found, Fault):
            return found
        state["connection_id"] = found
        if self._connection_ids.duplicates != "allow":
            state["duplicates"] = self._connection_ids.duplicates
        return None


class Answer(NamedTuple):
    """An HTTP response to a handshake."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def answer_of(fault: Fault) -> Answer:
    """What is said of a fault: its line."""
    body = f"{fault.text}\n".encode()
    headers = [(b"content-type", b"text/plain"), (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
    if fault.status == 426:
        headers += [(b"upgrade", b"websocket"), (b"sec-websocket-version", b"13")]  # RFC 9110 section 15.5.22
    return Answer(fault.status, headers, body)


async def refuse(scope: Scope, receive: Receive, send: Send, answer: Answer) -> None:
    """Answer a handshake whose first event has been read; a server that takes no answers is asked to refuse."""
    if offers_http_denial(scope):
        await refuse_websocket(receive, send, *answer)
    else:
        await reject_websocket(send)
