"""The relay, message by message: an ASGI app that joins a client's WebSocket to one of its own at a worker.

    handshake -> choose a worker -> dial -> its 101 -> accept -> Bridge, until a leg ends

Rules:
- nothing is sent to the client before the worker has answered: its 101 becomes the client's 101, its refusal the
  client's refusal, whole; anything else raises `Refused`, which the middleware around answers;
- one arrival is one attempt at one worker, on a fresh connection: at the one that the fleet has granted, if any;
- a client that leaves ends its dial; nothing outlives the call, neither task nor socket;
- a worker that breaks the rules, or a client that leaves, is nobody's error here: nothing is logged for one client.

On uvicorn with `herdgate_gateway.client_leg` the client's connection is seen to its end; other servers see to it
themselves. A close without a code is sent as `"code": None`, which uvicorn takes.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from websockets.http11 import Response

from herdgate import Refused
from herdgate.asgi import Message, Receive, Scope, Send
from herdgate.core.clients import ForwardingHeader
from herdgate.reception import HELD, Held
from herdgate.refusal import let_go, refuse_http
from herdgate_gateway.asking import asking
from herdgate_gateway.bridge import Bridge, RelaySettings
from herdgate_gateway.client_line import line_of
from herdgate_gateway.close_codes import LOST, to_worker
from herdgate_gateway.drain.sockets import Register
from herdgate_gateway.handshake import NO_HANDSHAKE, Answer, answer_of, refuse
from herdgate_gateway.headers import Forwarding, accept_headers, refusal_headers, request_headers, target
from herdgate_gateway.routing.destination import Destination
from herdgate_gateway.routing.router import Router
from herdgate_gateway.tasks import reap
from herdgate_gateway.worker_leg import WorkerLeg, WorkerRefused
from herdgate_gateway.workers import Assignment, WorkerPool

__all__ = ["MessageRelay", "RelaySettings"]


class MessageRelay:
    """An ASGI app for WebSockets, to stand behind `CheckedHandshake` and `AdmissionMiddleware`.

    Plain requests are told what is spoken here (426).

    Args:
        pool: the workers.
        settings: its limits.
        trusted_proxies: networks of peers whose word on the client's address and scheme is passed on.
        forwarding_header: where they write the address.
        member: what the fleet calls this process; workers are told it, and report by it.
        router: knows which worker an arrival needs; None: any will do.
        register: what it has open is put in there; None: nobody asks.

    Attributes:
        forwarding: what workers are told of the clients.

    Raises:
        ConfigurationError: one of these is not of its kind.
    """

    def __init__(
        self,
        pool: WorkerPool,
        settings: RelaySettings | None = None,
        *,
        trusted_proxies: Sequence[str] = (),
        forwarding_header: ForwardingHeader = "x-forwarded-for",
        member: str | None = None,
        router: Router | None = None,
        register: Register | None = None,
    ) -> None:
        self._pool, self._router = pool, router
        self._told = [] if member is None else [("herdgate-gateway", member)]
        self._settings = settings or RelaySettings()
        self._register = register or Register(lambda: len(self._register.bridges))
        self.forwarding = Forwarding(trusted_proxies, forwarding_header)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Relay one WebSocket.

        Raises:
            Refused: `upstream`, before anything was sent: no worker may have it (502), the one chosen is out of reach
                or speaks no sense (502), or has not answered in time (504). `no_owner`: nobody owns its shard.
        """
        if scope["type"] == "http":
            await refuse_http(send, *answer_of(NO_HANDSHAKE))
            return
        if (await receive())["type"] != "websocket.connect":
            return
        client = _Client(receive)
        try:
            await self._serve(scope, client, send)
        finally:
            client.close()

    async def _serve(self, scope: Scope, client: "_Client", send: Send) -> None:
        try:
            upstream = await self._dial(client, scope)
        except WorkerRefused as refused:
            await refuse(scope, client.receive, send, _worker_s(refused.response))
            return
        if upstream is None:
            await let_go(send)
            return
        with upstream.assignment:
            try:
                await self._join(scope, client, send, upstream)
            finally:
                upstream.leg.abort()

    async def _join(self, scope: Scope, client: "_Client", send: Send, upstream: "_Upstream") -> None:
        leg = upstream.leg
        headers = accept_headers(upstream.response.headers.raw_items())
        try:
            await send({"type": "websocket.accept", "subprotocol": leg.subprotocol, "headers": headers})
        except OSError:
            await leg.close(to_worker(LOST), "", self._settings.close_s)
            return
        held = _held(scope)
        invite, register = held.invite if held else None, self._register
        bridge = Bridge(client.receive, send, line_of(scope), leg, self._settings, invite=invite, cuts=register.cuts)
        register.bridges[bridge] = None
        try:
            await self._run(bridge, upstream)
        finally:
            del register.bridges[bridge]

    async def _run(self, bridge: Bridge, upstream: "_Upstream") -> None:
        if self._router is None or upstream.destination is None:
            await bridge.run()
            return
        forget = self._router.opened(upstream.destination, bridge.recall)
        try:
            await bridge.run()
        finally:
            forget()

    async def _dial(self, client: "_Client", scope: Scope) -> "_Upstream | None":
        """The worker that has taken it; None if the client left meanwhile."""
        dialling = asyncio.ensure_future(self._route(scope))
        closing = asyncio.ensure_future(self._register.is_closing.wait())
        is_taken = False
        try:
            await client.wait_left(dialling, closing)
            if closing.done() and not dialling.done():
                raise Refused("draining")
            is_taken = dialling.done()
            return dialling.result() if is_taken else None
        finally:
            await reap(dialling, closing)
            if not is_taken and not dialling.cancelled() and dialling.exception() is None:  # answered all the same
                dialling.result().drop()

    async def _route(self, scope: Scope) -> "_Upstream":
        held = _held(scope)
        permit = held.permit if held else None
        if self._router is None:
            return await self._open(scope, permit.worker if permit else None)
        upstream, destination = await self._router.dial(
            scope, lambda destination: self._open(scope, destination.url, destination.stamp)
        )
        if permit is not None:
            permit.move(destination.url)
        return upstream._replace(destination=destination)

    async def _open(self, scope: Scope, worker: str | None, stamp: Sequence[tuple[str, str]] = ()) -> "_Upstream":
        """Dial, and tell the pool what came of it."""
        assignment = self._pool.choose(worker)
        if assignment is None:
            raise Refused("upstream")
        leg = self._leg(scope, stamp)
        try:
            async with asking(assignment, self._settings.setup_s):
                response = await leg.open(assignment.worker.host, assignment.worker.port)
        except BaseException:
            leg.abort()
            assignment.release()
            raise
        return _Upstream(leg, assignment, response)

    def _leg(self, scope: Scope, stamp: Sequence[tuple[str, str]]) -> WorkerLeg:
        settings = self._settings
        return WorkerLeg(
            target(scope),
            [*request_headers(scope, self.forwarding), *self._told, *stamp],
            [name for name in scope.get("subprotocols") or () if name],
            max_message_bytes=settings.max_message_bytes,
            max_fragment_bytes=settings.max_fragment_bytes or settings.max_message_bytes,
            max_queue=settings.max_queue,
        )


class _Upstream(NamedTuple):
    """A worker that has taken the handshake."""

    leg: WorkerLeg
    assignment: Assignment
    response: Response
    destination: Destination | None = None

    def drop(self) -> None:
        """Nobody is left to be joined with it."""
        self.leg.abort()
        self.assignment.release()


def _held(scope: Scope) -> Held | None:
    """What the middleware holds for this arrival."""
    return (scope.get("state") or {}).get(HELD)


class _Client:
    """The client's messages, with one read ahead while the worker is dialled, so that its leaving is seen."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ahead: asyncio.Future[Message] | None = None

    async def wait_left(self, dialling: asyncio.Future[_Upstream], closing: asyncio.Future[Any]) -> None:
        """Wait until the client has left, or the dial is over, or the gateway closes."""
        self._ahead = asyncio.ensure_future(self._receive())
        await asyncio.wait((dialling, closing, self._ahead), return_when=asyncio.FIRST_COMPLETED)
        if self._ahead.done() and self._ahead.result()["type"] != "websocket.disconnect":
            await asyncio.wait(
                (dialling, closing), return_when=asyncio.FIRST_COMPLETED
            )  # it speaks before its 101: that message waits, and nothing watches it

    async def receive(self) -> Message:
        """The next message."""
        ahead, self._ahead = self._ahead, None
        return await (self._receive() if ahead is None else ahead)

    def close(self) -> None:
        """Drop a read nobody waits for any more."""
        if self._ahead is not None:
            self._ahead.cancel()


def _worker_s(response: Response) -> Answer:
    body = bytes(response.body)
    return Answer(response.status_code, refusal_headers(response.headers.raw_items(), body), body)
