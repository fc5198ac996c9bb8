"""The way into a worker's app: who comes with a stamp that holds, and as long as there is room.

    stamp -> strong read, where it claims to know better -> room -> the app, which finds in its scope's state

    shard, epoch    that the socket belongs to
    connection      `connection.Connection`
    checkpoint      that connection's, for short

A route may have one socket a connection (`duplicates`): then the newer one is refused, or the older one closed, as the
app accepts the newer, for one that the app refuses must not push anybody out.

Plain requests pass. A handshake that is refused does not count against the capacity.
"""

import asyncio
import random
from collections.abc import Callable

from herdgate.asgi import ASGIApp, Message, Receive, Scope, Send
from herdgate.refusal import refuse_websocket
from herdgate_gateway.worker_kit.answers import Answer, beyond_capacity, duplicate, misdirected, without_stamp
from herdgate_gateway.worker_kit.connection import Connection
from herdgate_gateway.worker_kit.duty import Parts
from herdgate_gateway.worker_kit.line import EXTENSION, Line
from herdgate_gateway.worker_kit.lookups import Lookups
from herdgate_gateway.worker_kit.sockets import Socket, Sockets
from herdgate_gateway.worker_kit.stamps import Known, Stamp, StampError, judge, read_stamp

__all__ = ["StampGate"]


class StampGate:
    """In front of an app that is served by `line.Line`.

    Args:
        app: finds the line in its scope, see `line.hidden`.
        capacity: sockets at once.
        rng: uniform numbers in [0, 1).

    Attributes:
        sockets: those that are in.
    """

    def __init__(self, app: ASGIApp, parts: Parts, *, capacity: int, rng: Callable[[], float] = random.random) -> None:
        self._app, self._parts = app, parts
        self._capacity, self._rng = capacity, rng
        self._known: dict[int, Known] = {}
        self._lookups = Lookups(parts.owner.adopt)
        self.sockets = Sockets()

    def gained(self, shard: int, epoch: int) -> None:
        """As `duty.Duty`."""
        self.sockets.drop(shard, self._learn(shard, Known(epoch, self._parts.worker)))

    def lost(self, shard: int, epoch: int) -> None:
        """As `duty.Duty`."""
        self.sockets.drop(shard, self._learn(shard, Known(epoch, None)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        line: Line = scope["extensions"][EXTENSION]
        try:
            stamp = read_stamp(scope["headers"])
        except StampError as error:
            await _refuse(receive, send, without_stamp(str(error)))
            return
        answer = await self._refusal(stamp)
        if answer is None:
            await self._serve(stamp, line, scope, receive, send)
        else:
            await _refuse(receive, send, answer)

    async def _refusal(self, stamp: Stamp) -> Answer | None:
        """None: it may come in, at this moment."""
        verdict = self._judge(stamp)
        if verdict == "look":
            row = await self._lookups.look(stamp.shard)
            if row is not None:
                self._learn(stamp.shard, Known(row.epoch, row.owner))
            verdict = self._judge(stamp)
        if verdict != "in":
            return misdirected(stamp.shard, self._known.get(stamp.shard, Known(0, None)))
        if self.sockets.count >= self._capacity:
            return beyond_capacity(self._capacity, self._rng())
        return None

    def _judge(self, stamp: Stamp) -> str:
        known = self._known.get(stamp.shard, Known(0, None))
        return judge(stamp.epoch, self._parts.owner.epoch(stamp.shard), known.epoch)

    def _learn(self, shard: int, told: Known) -> Known:
        """What is known now: the highest epoch, and of that the latest word."""
        known = self._known.get(shard)
        if known is None or told.epoch >= known.epoch:
            self._known[shard] = told
        return self._known[shard]

    async def _serve(self, stamp: Stamp, line: Line, scope: Scope, receive: Receive, send: Send) -> None:
        owner, connection = self._parts.owner, Connection(self._parts, stamp)
        line.may_act = lambda: owner.epoch(stamp.shard) == stamp.epoch
        scope["state"] = {
            **scope.get("state", {}),
            "shard": stamp.shard,
            "epoch": stamp.epoch,
            "connection": connection,
            "checkpoint": connection.checkpoint,
        }
        with self.sockets.entered(stamp, line) as socket:
            try:
                await self._app(scope, receive, self._one_at_a_time(socket, line, send))
            except asyncio.CancelledError:
                if not socket.is_over:
                    raise

    def _one_at_a_time(self, socket: Socket, line: Line, send: Send) -> Send:
        """A `send` that has one socket of the connection at most accepted, but for those that may be several."""

        async def refusing(message: Message) -> None:
            may_accept = message["type"] == "websocket.accept" and line.is_unanswered and line.may_act()
            if may_accept and self.sockets.accepted_beside(socket):
                line.refuse(duplicate(socket.stamp.connection_id, self._rng()))
            await send(message)

        async def replacing(message: Message) -> None:
            await send(message)
            if message["type"] == "websocket.accept" and line.is_accepted:  # not before: it may be one that fails
                for other in self.sockets.accepted_beside(socket):
                    self.sockets.replace(other)

        return {"allow": send, "refuse": refusing, "replace": replacing}[socket.stamp.duplicates]


async def _refuse(receive: Receive, send: Send, answer: Answer) -> None:
    await refuse_websocket(receive, send, *answer)
