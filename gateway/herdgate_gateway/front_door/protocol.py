"""The client's connection up to its verdict: decides on raw bytes, and becomes uvicorn's protocol only when it has to.

    head -> simple? -> route, checks, gate -> denied: prebuilt bytes
                                           -> admitted: worker dialled, legs spliced
         -> anything else: uvicorn parses it, and the same is tried again with what it has read

So a refusal costs no parser, no scope of uvicorn's, no task; and what is no simple handshake even for uvicorn's parser
goes the long way through the ASGI app, where the same gate decides.

Built on uvicorn 0.54 (the classes below it are not its public API).
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, cast

from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl

from herdgate import Gate, Refused
from herdgate.asgi import Scope
from herdgate.core.permits import Permit
from herdgate.reception import ADMITTED
from herdgate_gateway.app import NO_ROUTE, Gateway
from herdgate_gateway.front_door.answers import http_answer
from herdgate_gateway.front_door.bare_socket import BareSocket
from herdgate_gateway.front_door.head import MOST_BYTES, read_head
from herdgate_gateway.front_door.lingering import LINGER_S
from herdgate_gateway.front_door.visitor import Line, Visitor
from herdgate_gateway.handshake import answer_of
from herdgate_gateway.headers import refusal_headers
from herdgate_gateway.http_leg import HEAD_S, HttpLeg
from herdgate_gateway.splice.relay import SpliceRelay
from herdgate_gateway.tcp_options import set_tcp_options
from herdgate_gateway.worker_leg import WorkerRefused

__all__ = ["FrontDoor", "front_door_class", "has_hung_up", "receive"]

MOST_EARLY = 65_536
"""Bytes that a client may send behind its handshake before it is read no further."""

_END = b"\r\n\r\n"
_FAILED = http_answer(500, [(b"content-type", b"text/plain")], b"something failed here\n")
_logger = logging.getLogger("herdgate.gateway")


def front_door_class(gateway: Gateway) -> type["FrontDoor"]:
    """The class for `uvicorn.Config(http=...)` in front of this gateway."""
    return cast("type[FrontDoor]", type("GatewayFrontDoor", (FrontDoor,), {"gateway": gateway}))


def receive(gateway: Gateway, scope: Scope, line: Line) -> Visitor | None:
    """Let a handshake in to where it is asked who it is; None for one that is not sound, which is answered."""
    route = gateway.route_of(scope["path"])
    if route is None:
        line.answer(http_answer(*NO_ROUTE), lingers=False)
        return None
    fault = route.checks.check_simple(scope)
    if fault is not None:
        line.answer(http_answer(*answer_of(fault)), lingers=False)
        return None
    return Visitor(route, scope, line)


class FrontDoor(HttpLeg):
    """See above; `front_door_class` makes the one to use."""

    gateway: ClassVar[Gateway]

    def __init__(
        self, config: Any, server_state: Any, app_state: Any, _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        # uvicorn's own part is made when it is needed.
        self._late = (config, server_state, app_state, _loop)
        self.loop = _loop or asyncio.get_running_loop()
        self.transport: Any = None
        self.connections = server_state.connections
        self._is_awake = False
        self._head = self._early = b""
        self._visitor: Visitor | None = None
        self._work: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._moved: Callable[[FrontDoor], None] | None = None
        self._is_ending = self._is_parsed = self._is_turned_away = False

    def go_on(self, then: "Callable[[FrontDoor], None]") -> None:
        """Before it is connected: what to do once it is, instead of waiting for a head."""
        self._moved = then

    # What the event loop calls.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Connected."""
        self.transport = transport
        self.client, self.server = get_remote_addr(transport), get_local_addr(transport)
        self.scheme = "https" if is_ssl(transport) else "http"
        self.connections.add(self)
        if self._moved is not None:
            moved, self._moved = self._moved, None
            moved(self)
        else:
            self.expect_head()

    def data_received(self, data: bytes) -> None:
        """Bytes from the client."""
        if self._is_ending:
            self.transport.close()  # the answer to the close frame, or nothing we want to hear
        elif self._visitor is not None:
            self._wait_with(data)
        elif not self._is_awake:
            self._gather(data)
        elif self._is_between_requests():
            self._unset_keepalive_if_required()
            self._gather(data)
        else:
            super().data_received(data)

    def eof_received(self) -> None:
        """The client has ended its side, which a WebSocket client does not while it waits."""

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self.connections.discard(self)
        self._stop_timer()
        if self._work is not None:
            self._work.cancel()
        elif self._visitor is not None:
            self._visitor.leave()
        self._visitor = None
        if self._is_awake:
            super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read."""
        if self._is_awake:
            super().pause_writing()

    def resume_writing(self) -> None:
        """It does again."""
        if self._is_awake:
            super().resume_writing()

    def hurry(self) -> None:
        """A handshake that is held need not wait: the gateway lets nobody in any more."""
        if self._visitor is not None and self._work is None:
            self._stop_timer()
            self._visitor.hurry()

    def turn_away(self) -> None:
        """A handshake that waits for its worker is told when to come back: the gateway ends."""
        if self._work is not None and self._visitor is not None:
            self._is_turned_away = True
            self._work.cancel()

    def shutdown(self) -> None:
        """The server stops: a handshake that waits for its verdict gets none any more."""
        if self._is_awake and self._visitor is None:
            super().shutdown()
        else:
            self.transport.close()

    def handle_websocket_upgrade(self) -> None:
        """A handshake that uvicorn's parser has read: simple, once it is written plainly?"""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False  # one answer at a time: the connection ends with the one under way
            return
        if ADMITTED in self.app_state:
            super().handle_websocket_upgrade()
            return
        head = [self.scope["method"].encode(), b" ", self.url, b" HTTP/", self.parser.get_http_version().encode()]
        for name, value in self.headers:
            head += (b"\r\n", name, b": ", value)
        scope = self._read(b"".join([*head, _END]))
        if scope is None:
            super().handle_websocket_upgrade()
            return
        self._end_head()
        self._is_parsed = True
        self._receive(scope)

    # A visitor's line.

    def has_left(self) -> bool:
        """True if the client has hung up, whether the loop has noticed or not."""
        if self.transport.is_closing():
            return True
        sock = socket.socket(fileno=self.transport.get_extra_info("socket").fileno())  # uvloop's own cannot be read
        try:
            return has_hung_up(sock)
        finally:
            sock.detach()

    def answer(self, data: bytes, *, lingers: bool) -> None:
        """Send the last bytes."""
        self._is_ending = True
        self._visitor = None
        if self.transport.is_closing():
            return
        self.transport.write(data)
        if not lingers and self.transport.can_write_eof():  # not TLS
            self.transport.write_eof()  # a plain close would reset it, if the client is just sending something
            lingers = True
        if lingers:
            self._start_timer(LINGER_S, self.transport.close)
        else:
            self.transport.close()

    def admit(self, permit: Permit) -> None:
        """Take the visitor in."""
        visitor = self._visitor
        assert visitor is not None
        if self.gateway.splices is None:
            self._hand_to_app(visitor, permit)
        else:
            self._work = self.loop.create_task(self._bring_in(self.gateway.splices, visitor, permit))

    def hold(self, seconds: float) -> None:
        """Wait for a firm slot."""
        assert self._visitor is not None
        self._start_timer(seconds, self._visitor.resume)

    def drop(self) -> None:
        """The client has left."""
        self._visitor = None
        self.transport.abort()

    def take_over(self, visitor: Visitor, head: bytes, early: bytes) -> None:
        """A visitor that came on a bare socket goes on here."""
        self._visitor, self._head, self._early = visitor, head, early
        visitor.line = self

    def expect_head(self) -> None:
        """Give the client its time for the head of its request."""
        self._start_timer(HEAD_S, self.transport.abort)

    # Behind them.

    def _gather(self, data: bytes) -> None:
        """Decide once the head is whole, or cannot be a simple one."""
        data = self._head + data if self._head else data
        end = data.find(_END) + len(_END)
        if end < len(_END):
            if len(data) <= MOST_BYTES and data[:5] == b"GET /"[: len(data)]:
                self._head = data
                if self._timer is None:
                    self.expect_head()
                return
            self._wake(data)
            return
        self._head, self._early = data[:end], data[end:]
        scope = self._read(self._head)
        if scope is None:
            self._wake(data)
        else:
            self._receive(scope)

    def _read(self, head: bytes) -> Scope | None:
        return read_head(head, client=self.client, server=self.server, scheme="wss" if self.scheme == "https" else "ws")

    def _receive(self, scope: Scope) -> None:
        self._stop_timer()
        self._visitor = receive(self.gateway, scope, self)
        if self._visitor is not None:
            self._visitor.arrive()

    def _wake(self, data: bytes) -> None:
        """Become uvicorn's protocol, for these bytes and all that follow."""
        self._head = self._early = b""
        self._stop_timer()
        if not self._is_awake:
            self._is_awake = True
            transport, client = self.transport, self.client  # who may be named by a PROXY header
            HttpLeg.__init__(self, *self._late)
            HttpLeg.connection_made(self, transport)
            self.client = client
        HttpLeg.data_received(self, data)

    def _is_between_requests(self) -> bool:
        """True if uvicorn has answered all it was asked, and has read nothing of what comes next."""
        cycle = self.cycle
        is_over = cycle is not None and cycle.response_complete and not cycle.more_body
        return is_over and not self.pipeline and self._head_timer is None

    def _wait_with(self, data: bytes) -> None:
        self._early += data
        if len(self._early) > MOST_EARLY:
            self.transport.pause_reading()

    def _start_timer(self, seconds: float, then: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, self._timed_out, then)

    def _timed_out(self, then: Callable[[], None]) -> None:
        self._timer = None
        then()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _hand_to_app(self, visitor: Visitor, permit: Permit) -> None:
        """The relay is an ASGI app: it gets the handshake by uvicorn, and the permit with it."""
        visitor.done()
        self._visitor = None
        config, server_state, app_state, loop = self._late
        self._late = (config, server_state, {**app_state, ADMITTED: permit}, loop)
        head, early = self._head, self._early
        if self._is_awake:
            self.app_state = self._late[2]
        if self._is_parsed:
            super().handle_websocket_upgrade()
        else:
            self._wake(head)
        if early and not self.transport.is_closing():
            self.transport.get_protocol().data_received(early)

    async def _bring_in(self, splices: SpliceRelay, visitor: Visitor, permit: Permit) -> None:
        """From the grant to the worker's 101, or to a refusal."""
        is_in = False
        visitor.route.checks.identify(visitor.scope)
        try:
            if visitor.route.authentication is not None:
                await visitor.route.authentication.check(visitor.scope)
            is_in = await self._join(splices, visitor, permit)
        except Refused as refused:
            await visitor.refuse(permit, refused)
        except asyncio.CancelledError:
            if not self._is_turned_away:
                raise
            self._is_turned_away = False  # its client may still leave
            await visitor.refuse(permit, Refused("draining"))
        except WorkerRefused as refused:
            response = refused.response
            headers = refusal_headers(response.headers.raw_items(), bytes(response.body))
            permit.release()
            self.answer(http_answer(response.status_code, headers, bytes(response.body)), lingers=False)
        except Exception:
            _logger.exception("a handshake failed here")
            self.answer(_FAILED, lingers=False)
        finally:
            visitor.done()
            self._work = None
            if not is_in:
                permit.release()

    async def _join(self, splices: SpliceRelay, visitor: Visitor, permit: Permit) -> bool:
        """Dial, and join the worker with the client. False: that has left meanwhile, and nothing is open."""
        upstream = await splices.dial(visitor.scope, permit)
        self._visitor = None
        try:
            if self.transport.is_closing():  # over TLS it has no socket any more
                upstream.discard()
                return False
            permit.opened()
            set_tcp_options(self.transport.get_extra_info("socket"))
            for pair in visitor.session_headers():
                upstream.head = upstream.head[:-2] + b"%b: %b\r\n\r\n" % pair
            ended = partial(_leave, permit, visitor.route.gate)
            splices.join(upstream, self.transport, ended, self._early, invite=visitor.inviting())
        except BaseException:
            upstream.discard()
            raise
        self.connections.discard(self)
        return True


def _leave(permit: Permit, gate: Gate) -> None:
    """A socket has ended. Until then its gate is kept, so that a route that comes back finds it."""
    permit.release()


def has_hung_up(sock: BareSocket) -> bool:
    """True if nothing more will come on a connection, and nothing is left to be read."""
    try:
        return sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
