"""Two legs joined: messages go across both ways until one leg ends, then the other is ended too.

Each way is one pump, a task that takes one message at a time and waits until it is taken on: so neither leg is read
while the other does not take. The first pump to stop says how each leg is told; the other one is cancelled and joined.
"""

import asyncio
import math
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass

from herdgate import ConfigurationError
from herdgate.asgi import Message, Receive, Send
from herdgate.core.numbers import check_number
from herdgate_gateway.client_line import ClientLine
from herdgate_gateway.close_codes import GOING_AWAY, LOST, NO_CODE, fit_reason, to_client, to_worker
from herdgate_gateway.drain.sockets import Cuts
from herdgate_gateway.endings import (
    BROKEN,
    CLIENT_STALLED,
    IDLE,
    WORKER_STALLED,
    Ending,
    Farewell,
    jittered,
    too_old,
)
from herdgate_gateway.recall import Inviting, call_back, has_moved
from herdgate_gateway.tasks import reap
from herdgate_gateway.worker_leg import WorkerLeg

__all__ = ["Bridge", "RelaySettings"]

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class RelaySettings:
    """Limits of the relay.

    Attributes:
        max_message_bytes: the longest message, either way.
        max_fragment_bytes: the longest frame from a worker. None: as long as a message.
        max_queue: messages of a worker held while its client does not take them.
        setup_s: seconds from the dial to the worker's 101.
        idle_s: seconds after which both legs are closed, if nothing came either way. Where messages are relayed, pings
            of the worker's do not count: they are answered here. None: no limit.
        close_s: seconds a leg has to end once it is told to.
        stall_s: seconds a leg may take to take one message.
        max_age_s: seconds a socket may be open, cut by up to 10 % for each one, so that those who came together do not
            leave together. None: no limit.

    Raises:
        ConfigurationError: one of them is out of its range.
    """

    max_message_bytes: int = MIB
    max_fragment_bytes: int | None = None
    max_queue: int = 16
    setup_s: float = 10.0
    idle_s: float | None = None
    close_s: float = 10.0
    stall_s: float = 30.0
    max_age_s: float | None = None

    def __post_init__(self) -> None:
        check_number("max_message_bytes", self.max_message_bytes, least=1, unit="a whole number of bytes", whole=True)
        if self.max_fragment_bytes is not None:
            unit = "a whole number of bytes"
            check_number("max_fragment_bytes", self.max_fragment_bytes, least=1, unit=unit, whole=True)
        check_number("max_queue", self.max_queue, least=1, unit="a whole number of messages", whole=True)
        for name in ("setup_s", "idle_s", "close_s", "stall_s", "max_age_s"):
            seconds = getattr(self, name)
            none = "no limit" if name in ("idle_s", "max_age_s") else ""
            check_number(name, seconds, least=0, unit="seconds", none=none)
            if seconds == 0:
                raise ConfigurationError(name, seconds, "write seconds, more than 0")


class Bridge:
    """One client and one worker.

    Args:
        receive: the client's messages.
        send: to the client, whose handshake is accepted.
        line: the client's connection, where the server offers it.
        leg: the worker's, open.
        invite: calls the client back, if its worker is lost.
        cuts: counts clients that vanish.

    Attributes:
        invite: as given.
        is_leaving: it has begun to end.
    """

    def __init__(
        self,
        receive: Receive,
        send: Send,
        line: ClientLine | None,
        leg: WorkerLeg,
        settings: RelaySettings,
        *,
        invite: Inviting | None = None,
        cuts: Cuts | None = None,
    ) -> None:
        self._receive, self._send, self._line = receive, send, line
        self._leg, self.invite = leg, invite
        self._settings = settings
        self._cuts = cuts
        self._recalled = asyncio.Event()
        self._farewell: Farewell | None = None
        self._message: str | None = None
        self._clock = asyncio.get_running_loop().time
        self._born = self._last = self._clock()
        self.is_leaving = False

    async def run(self) -> None:
        """Relay until a leg ends, and end the other."""
        ways = (self._to_worker(), self._to_client(), self._recall())
        pumps = tuple(map(asyncio.ensure_future, ways))
        try:
            ending = await self._first_ending(pumps)
        finally:
            self.is_leaving = True
            await reap(*pumps)
        await asyncio.gather(
            self._end_client(ending.client),
            self._leg.close(ending.worker.code, ending.worker.reason, self._settings.close_s),
        )

    @property
    def age_s(self) -> float:
        """Seconds since it was joined."""
        return self._clock() - self._born

    def close(self, code: int, reason: str, message: str | None = None) -> None:
        """Close it; harmless to repeat, and once it is over.

        Args:
            message: text for the client before that.
        """
        if self._farewell is None:
            self._farewell, self._message = Farewell(code, reason), message
            self._recalled.set()

    def abort(self) -> None:
        """Cut the worker's connection, and the client's if there is a way to it; harmless once it is over."""
        self._leg.abort()
        if self._line is not None:
            self._line.cut()

    def recall(self) -> None:
        """Close it, and call the client back with a firm slot; harmless to repeat, and once it is over."""
        self._recalled.set()

    async def _recall(self) -> Ending:
        await self._recalled.wait()
        if self._farewell is None:
            return Ending(await call_back(self.invite, firm=True), Farewell(GOING_AWAY))
        if self._message is not None:
            with suppress(OSError, RuntimeError):
                await _in_time(self._send({"type": "websocket.send", "text": self._message}), self._settings.close_s)
        return Ending(self._farewell, Farewell(GOING_AWAY))

    async def _first_ending(self, pumps: tuple[asyncio.Future[Ending], ...]) -> Ending:
        idle_s = self._settings.idle_s or math.inf
        expires_at = self._clock() + (jittered(self._settings.max_age_s) or math.inf)
        while True:
            left = min(self._heard_at() + idle_s, expires_at) - self._clock()
            if left <= 0:
                return too_old() if expires_at <= self._clock() else IDLE
            timeout = None if math.isinf(left) else left
            done, _ = await asyncio.wait(pumps, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if done:
                return next(pump for pump in pumps if pump in done).result()

    def _heard_at(self) -> float:
        """When there was last a message, or anything at all from the client."""
        return self._last if self._line is None else max(self._last, self._line.heard_at)

    async def _to_worker(self) -> Ending:
        leg, stall_s = self._leg, self._settings.stall_s
        while (message := await self._receive())["type"] != "websocket.disconnect":
            text = message.get("text")
            data: str | bytes = message["bytes"] if text is None else text
            if _is_longer(data, self._settings.max_message_bytes):
                return BROKEN["client", "too big"]
            if not leg.write(data) and not await _in_time(leg.drain(), stall_s):
                return WORKER_STALLED
            self._last = self._clock()
        code, reason = message.get("code", NO_CODE), message.get("reason") or ""
        if code == LOST and self._cuts is not None:
            self._cuts.note(self._clock())
        return Ending(None, Farewell(to_worker(code), reason))

    async def _to_client(self) -> Ending:
        while (message := await self._leg.receive()) is not None:
            event = {"type": "websocket.send", "text" if isinstance(message, str) else "bytes": message}
            try:
                if not await _in_time(self._send(event), self._settings.stall_s):
                    return CLIENT_STALLED
            except (OSError, RuntimeError):  # uvicorn raises the second one if it has just ended the leg itself
                return Ending(None, Farewell(to_worker(LOST)))
            self._last = self._clock()
        code, reason = self._leg.code, self._leg.reason
        if has_moved(code, reason):
            self.recall()
        if self._recalled.is_set():  # once is enough: each call costs the fleet a slot
            await asyncio.get_running_loop().create_future()
        if code == LOST:
            return Ending(await call_back(self.invite, firm=False), Farewell(None))
        return Ending(Farewell(to_client(code), reason), Farewell(None))

    async def _end_client(self, farewell: Farewell | None) -> None:
        end = self._clock() + self._settings.close_s
        if farewell is not None:
            code, reason = farewell
            event: Message = {"type": "websocket.close", "code": code, "reason": fit_reason(reason) if code else ""}
            with suppress(OSError, RuntimeError):
                await _in_time(self._send(event), self._settings.close_s)
        if self._line is not None:
            await self._line.end(end - self._clock())


async def _in_time(doing: Awaitable[None], seconds: float) -> bool:
    """False if it was not done within that time."""
    try:
        async with asyncio.timeout(seconds):
            await doing
    except TimeoutError:
        return False
    return True


def _is_longer(message: str | bytes, most: int) -> bool:
    """True if its bytes on the wire are more than that many."""
    if isinstance(message, bytes) or len(message) > most or 4 * len(message) <= most:
        return len(message) > most
    return len(message.encode()) > most
