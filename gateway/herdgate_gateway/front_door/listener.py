"""Our own listener: accepts in batches, and answers who is refused on the bare socket, before any transport exists.

    accept -> head there, simple, refused, or a health check: send, close        (two system calls more, and no more)
           -> anything else: a transport and a FrontDoor, which goes on with what was read

Rules:
- the system wakes us only for connections whose first bytes are here (TCP_DEFER_ACCEPT), where it can;
- at most `BATCH` connections a turn, so that sockets that are open get theirs; once some were refused and nobody else
  waits, the next ones are looked for 2 ms later, and not announced one by one;
- TLS and the PROXY header come before any head: such connections get their transport at once, and TLS ones no faster
  than `tls_rate` a second, as each costs a handshake's worth of CPU (`turns`); the rest waits in the backlog, in order;
- out of descriptors, a spare one says so (`spare`).
"""

import asyncio
import logging
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any

from herdgate_gateway.app import Gateway
from herdgate_gateway.descriptors import OUT_OF_ROOM, say_out_of_room
from herdgate_gateway.front_door.bare_line import BareLine
from herdgate_gateway.front_door.bare_socket import LAST, BareSocket, accept, clothed
from herdgate_gateway.front_door.head import MOST_BYTES, read_head
from herdgate_gateway.front_door.health import HEALTHY, is_health_check
from herdgate_gateway.front_door.lingering import Lingering
from herdgate_gateway.front_door.protocol import FrontDoor, receive
from herdgate_gateway.front_door.spare import SpareDescriptor
from herdgate_gateway.front_door.turns import Turns
from herdgate_gateway.http_leg import HEAD_S

__all__ = ["BATCH", "OwnListener"]

BATCH = 16
"""Connections accepted in one turn of the loop: few enough for the caches, and for a health check among them."""

USUAL_BYTES = 4_096
"""Of a head, most of them."""

FULL_S = 0.1
"""Seconds without a look while there is not even a descriptor to say so with."""

TICK_S = 0.002
"""Seconds between two looks at a crowd. Woken for each connection, the process would wake up cold each time."""

DEFER_S = 5
"""Seconds the system waits for the first bytes of a connection."""

_END = b"\r\n\r\n"
_logger = logging.getLogger("herdgate.gateway")


class OwnListener:
    """Serves listening sockets until it is closed; it does not own them.

    Args:
        listeners: non-blocking.
        gateway: decides.
        make: a FrontDoor for a connection that needs one.
        context: TLS.
        is_plain: heads come first, without a PROXY header before them.
        tls_rate: TLS handshakes begun per second. None: no limit.
    """

    def __init__(
        self,
        listeners: Sequence[socket.socket],
        gateway: Gateway,
        make: Callable[[], FrontDoor],
        *,
        context: ssl.SSLContext | None,
        is_plain: bool,
        tls_rate: float | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listeners = listeners
        self._gateway, self._make, self._context = gateway, make, context
        self._turns = None if context is None else Turns(self._wait_for_head, tls_rate)
        self._lingering = Lingering(self._loop)
        self._spare = SpareDescriptor()
        self._moving: set[asyncio.Task[None]] = set()
        self._resting: dict[socket.socket, asyncio.TimerHandle] = {}
        self._came: list[tuple[BareSocket, bytes, Any]] = []
        self._refused: list[tuple[BareSocket, bytes, bool]] = []
        self._is_deciding = False
        self.take(is_plain=is_plain, tls_rate=tls_rate)
        for listener in listeners:
            if listener.family != socket.AF_UNIX and hasattr(socket, "TCP_DEFER_ACCEPT"):
                listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, DEFER_S)
            self._listen(listener)

    def take(self, *, is_plain: bool, tls_rate: float | None) -> None:
        """Take over other settings, for the connections to come."""
        self._reads_heads = is_plain and self._context is None
        if self._turns is not None:
            self._turns.set_rate(tls_rate)

    def close(self) -> None:
        """Accept no more; harmless to repeat."""
        for resting in self._resting.values():
            resting.cancel()
        for listener in self._listeners:
            if listener.fileno() >= 0:
                self._loop.remove_reader(listener.fileno())

    async def aclose(self) -> None:
        """Let go of all that is not handed on."""
        self.close()
        self._lingering.close()
        if self._turns is not None:
            self._turns.close()
        self._spare.close()
        for task in self._moving:
            task.cancel()
        await asyncio.gather(*self._moving, return_exceptions=True)

    def _listen(self, listener: socket.socket) -> None:
        """Be woken for the next connection."""
        self._loop.add_reader(listener.fileno(), self._wake, listener)

    def _wake(self, listener: socket.socket) -> None:
        rest_s = self._serve(listener)
        if rest_s:
            self._loop.remove_reader(listener.fileno())
            self._rest(listener, rest_s)

    def _rest(self, listener: socket.socket, seconds: float) -> None:
        """Look again after so many seconds, woken or not."""
        self._resting[listener] = self._loop.call_later(seconds, self._look, listener)

    def _look(self, listener: socket.socket) -> None:
        del self._resting[listener]
        rest_s = self._serve(listener)
        if rest_s:
            self._rest(listener, rest_s)
        else:
            self._listen(listener)

    def _serve(self, listener: socket.socket) -> float:
        """Serve who waits, in three rounds: the system's work and ours in turns would each find its caches cold.

        Returns:
            Seconds until it is worth looking again; 0: as soon as somebody comes.
        """
        rest_s, is_full = self._take(listener)
        came, self._came = self._came, []
        self._is_deciding = True
        for accepted, data, address in came:
            try:
                self._receive(accepted, data, address)
            except Exception:
                _logger.exception("a handshake failed here")
                accepted.close()
        self._is_deciding = False
        refused, self._refused = self._refused, []
        for accepted, data, lingers in refused:
            self._end(accepted, data, lingers=lingers)
        if is_full:
            os.sched_yield()  # to the thread of health checks, which the system may let wait for milliseconds
            return rest_s
        return max(rest_s, TICK_S if refused else 0.0)

    def _take(self, listener: socket.socket) -> tuple[float, bool]:
        """Accept a batch, and read what is there; seconds as `_serve`, and whether the batch is full."""
        for _ in range(BATCH):
            if self._turns is not None and (wait_s := self._turns.advance()):
                return wait_s, False
            try:
                accepted, address = accept(listener)
            except BlockingIOError:
                return 0.0, False
            except OSError as error:
                if error.errno not in OUT_OF_ROOM:  # this one is gone
                    return 0.0, False
                if not self._turn_away(listener):
                    return FULL_S, False
            else:
                self._receive_later(accepted, address)
        return 0.0, True

    def _receive_later(self, accepted: BareSocket, address: Any) -> None:
        if self._turns is not None:
            self._turns.add(accepted)
        else:
            self._came.append((accepted, self._read(accepted) if self._reads_heads else b"", address))

    def _turn_away(self, listener: socket.socket) -> bool:
        say_out_of_room()
        return self._spare.turn_away(listener)

    def _receive(self, accepted: BareSocket, data: bytes, address: Any) -> None:
        end = data.find(_END) + len(_END)
        client = None if accepted.family == socket.AF_UNIX else (str(address[0]), int(address[1]))
        scope = None if end < len(_END) else read_head(data[:end], client=client, server=None, scheme="ws")
        if scope is None and is_health_check(data, self._gateway.health_path):
            self.refuse(accepted, HEALTHY, lingers=False)
            return
        if scope is None:
            if data:
                self.move(accepted, lambda door: door.data_received(data), _nothing)
            else:
                self._wait_for_head(accepted)
            return
        line = BareLine(self, accepted, data[:end], data[end:])
        line.visitor = visitor = receive(self._gateway, scope, line)
        if visitor is not None:
            visitor.arrive()

    def _wait_for_head(self, accepted: BareSocket) -> None:
        self.move(accepted, lambda door: door.expect_head(), _nothing)

    def _read(self, accepted: BareSocket) -> bytes:
        """What is here of a connection; nothing yet, or never, as its transport will find out."""
        data = b""
        try:
            data = accepted.recv(USUAL_BYTES, socket.MSG_DONTWAIT)
            if len(data) == USUAL_BYTES:
                data += accepted.recv(MOST_BYTES, socket.MSG_DONTWAIT)
        except OSError:
            pass
        return data

    def move(self, accepted: BareSocket, go_on: Callable[[FrontDoor], None], give_up: Callable[[], None]) -> None:
        """Give a connection a transport, and go on there; or give up, if its client has gone."""
        task = self._loop.create_task(self._connect(accepted, go_on, give_up))
        self._moving.add(task)
        task.add_done_callback(self._moving.discard)

    def refuse(self, accepted: BareSocket, data: bytes, *, lingers: bool) -> None:
        """Send the last bytes of a connection, which fit into a new socket; now, or with a batch."""
        if self._is_deciding:
            self._refused.append((accepted, data, lingers))
        else:
            self._end(accepted, data, lingers=lingers)

    def _end(self, accepted: BareSocket, data: bytes, *, lingers: bool) -> None:
        try:
            accepted.send(data, LAST)
            accepted.shutdown(socket.SHUT_WR)  # or what a client sends meanwhile would have the answer thrown away
        except OSError:  # its client is gone
            lingers = False
        if lingers:
            self._lingering.add(accepted)
        else:
            accepted.close()

    async def _connect(
        self, accepted: BareSocket, go_on: Callable[[FrontDoor], None], give_up: Callable[[], None]
    ) -> None:
        sock = clothed(accepted)
        door = self._make()
        door.go_on(go_on)
        try:
            await self._loop.connect_accepted_socket(
                lambda: door, sock, ssl=self._context, ssl_handshake_timeout=HEAD_S if self._context else None
            )
        except OSError:  # its client is gone, or speaks no TLS
            pass
        finally:
            if door.transport is None:
                give_up()
                sock.close()


def _nothing() -> None:
    """Nobody has arrived yet on a connection without a head."""
