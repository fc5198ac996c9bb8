"""One spliced WebSocket: a client's leg and a worker's, and what ends them.

    open -> ending (one leg has said or been told goodbye) -> cut (not over after close_s) -> over (both are gone)

Rules:
- nothing here has a timer: the relay's sweeper asks `look` of those that are ending or stalled, `look_around` of all;
- bytes of any kind count as life: the ends' own pings keep a socket from being idle;
- once it is over, nothing of it refers to anything else of it, so that no garbage collection is needed.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from herdgate_gateway.bridge import RelaySettings
from herdgate_gateway.close_codes import GOING_AWAY, LOST, to_client, to_worker
from herdgate_gateway.endings import BROKEN, CLIENT_STALLED, IDLE, WORKER_STALLED, Ending, Farewell, jittered, too_old
from herdgate_gateway.recall import Inviting, call_back, has_moved
from herdgate_gateway.splice.frames import close_frame, close_words, text_frame
from herdgate_gateway.splice.halves import Half
from herdgate_gateway.splice.scanner import Scanner, Stop
from herdgate_gateway.splice.upstream import Upstream

if TYPE_CHECKING:
    from herdgate_gateway.splice.sweeper import Sweeper

__all__ = ["Joint"]

HIGH_WATER = 65_536
"""Bytes that one leg has not taken yet, above which the other one is read no further."""


class Joint:
    """A client, and the worker that has taken its handshake.

    Args:
        settings: limits.
        upstream: the worker.
        client: to whom nothing has been written yet.
        sweeper: keeps the time for it.
        ended: called once, when both connections are gone.
        invite: calls the client back, if its worker is lost.
    """

    __slots__ = (
        "_assignment",
        "_born",
        "_client",
        "_ended",
        "_ends_at",
        "_expires_at",
        "_invite",
        "_is_cut",
        "_is_over",
        "_is_recalled",
        "_moved_at",
        "_settings",
        "_sweeper",
        "_worker",
    )

    def __init__(
        self,
        settings: RelaySettings,
        upstream: Upstream,
        client: asyncio.Transport,
        sweeper: "Sweeper",
        ended: Callable[[], None],
        *,
        invite: Inviting | None,
    ) -> None:
        self._settings, self._sweeper, self._ended, self._invite = settings, sweeper, ended, invite
        self._assignment = upstream.assignment
        self._born = self._moved_at = self.now()
        self._expires_at = _expiry(self._born, settings.max_age_s)
        self._ends_at: float | None = None
        self._is_cut = self._is_over = self._is_recalled = False
        self._client = Half(self, client, _scanner(settings, upstream, is_masked=True))
        self._worker = Half(self, upstream.transport, _scanner(settings, upstream, is_masked=False))
        self._client.far, self._worker.far = self._worker, self._client

    @property
    def age_s(self) -> float:
        """Seconds since it was joined."""
        return self.now() - self._born

    @property
    def is_leaving(self) -> bool:
        """True once it has begun to end."""
        return self._is_over or self._ends_at is not None

    @property
    def invite(self) -> Inviting | None:
        """Calls its client back."""
        return self._invite

    def start(self, upstream: Upstream, early: bytes) -> None:
        """Write the client's 101 and what has come from either side so far; then let the bytes pass."""
        client, worker = self._client, self._worker
        lost = [client] if client.transport.is_closing() else []
        lost += [worker] if upstream.is_lost else []
        for half in (client, worker):
            half.told = half in lost
            if not half.told:
                half.transport.set_write_buffer_limits(high=HIGH_WATER)
                half.start()
        if not client.told:
            client.write(upstream.head)
        for half, data in ((worker, upstream.first), (client, early)):
            if data and not half.far.told:
                half.data_received(data)
            half.regulate()
        for half in lost:
            half.connection_lost(None)

    def when_over(self, also: Callable[[], None]) -> None:
        """Call this too, once it is over. Before `start`."""
        self._ended = partial(_both, self._ended, also)

    def close(self, code: int, reason: str, message: str | None = None) -> None:
        """Close it: the client is told so at its next boundary, the worker that the client is going.

        Both have `close_s` to end. Harmless to repeat, and once it is over.

        Args:
            message: text for the client before that, if there is a place between two messages.
        """
        if message is not None and not self.is_leaving:
            self.say(message)
        self._end(Ending(Farewell(to_client(code), reason), Farewell(GOING_AWAY)))

    def recall(self, *, firm: bool = True) -> None:
        """Close it, and call the client back: with a firm slot, or a hint; see `herdgate_gateway.recall`.

        The first call counts: each costs the fleet a slot. Harmless once it is over.
        """
        if not (self._is_recalled or self._is_over or self._client.told):
            self._is_recalled = True
            self._sweeper.run(self._recall(firm))

    def say(self, text: str) -> None:
        """A text message to the client, at the next place between two; none once it is told goodbye."""
        if not self._is_over:
            self._client.say(text_frame(text))

    def abort(self) -> None:
        """Cut both connections at once."""
        if not self._is_over:
            self._client.transport.abort()
            self._worker.transport.abort()

    # What the sweeper asks.

    def look(self, now: float) -> bool:
        """End what has not ended or not been read for too long. False: nothing of that is going on."""
        if self._is_over:
            return False
        if self._is_cut:
            self.abort()
        elif self._ends_at is None:
            return self._look_for_stalls(now)
        elif now >= self._ends_at:
            self._cut()
        return True

    def look_around(self, now: float) -> None:
        """End what has been idle for too long, or there."""
        if self._is_over:
            return
        idle_s, client, worker = self._settings.idle_s, self._client, self._worker
        if client.has_moved or worker.has_moved:
            client.has_moved = worker.has_moved = False
            self._moved_at = now
        elif idle_s is not None and now - self._moved_at >= idle_s:
            self._end(IDLE)
        if self._expires_at is not None and now >= self._expires_at:
            self._end(too_old())

    # What the legs call.

    def now(self) -> float:
        """The loop's seconds."""
        return self._sweeper.now()

    def watch(self) -> None:
        """A leg does not take what is written."""
        self._sweeper.watch(self)

    def hurry(self) -> None:
        """A leg has said or been told goodbye: both have to end within `close_s` from the first one on."""
        if self._ends_at is None:
            self._ends_at = self.now() + self._settings.close_s
            self._sweeper.watch(self)

    def settle(self) -> None:
        """Hang up on a client that is done, as a server does first, and on a worker that has hung up."""
        client, worker = self._client, self._worker
        if client.told and client.said:
            client.transport.close()
        if worker.told and worker.said and worker.eof:
            worker.transport.close()

    def vanished(self, half: Half) -> None:
        """A leg has ended without goodbye."""
        if half is self._client:
            if not self.is_leaving:
                self._sweeper.cut_off()
            half.far.tell(self.farewell(half.far))
        else:
            self.recall(firm=False)

    def takes(self, half: Half, close: bytes) -> bool:
        """True for a close frame that does not pass, as the client is called back instead."""
        is_ours = half is self._worker and has_moved(*close_words(close))
        if is_ours:
            self.recall()
        return is_ours

    def farewell(self, half: Half) -> bytes:
        """A close frame for a leg whose other one is gone; an empty one if it has said goodbye itself."""
        to = to_client if half is self._client else to_worker
        return self._close_frame(half, Farewell(None if half.said else to(LOST)))

    def broken(self, half: Half, stop: Stop) -> None:
        """A leg has broken the protocol or a limit."""
        self._end(BROKEN["client" if half is self._client else "worker", stop])

    def lost(self) -> None:
        """A connection is gone."""
        client, worker = self._client, self._worker
        if not (client.gone and worker.gone):
            self.hurry()
            self.settle()
        elif not self._is_over:
            self._is_over = True
            for half in (client, worker):
                del half.far, half.joint, half.transport
            del self._client, self._worker
            self._assignment.release()
            self._sweeper.forget(self)
            ended = self._ended
            del self._ended  # it may know of this joint
            ended()

    # Behind them.

    def _end(self, ending: Ending) -> None:
        if self._is_over:
            return
        for half, farewell in ((self._client, ending.client), (self._worker, ending.worker)):
            if farewell is not None:
                half.tell(self._close_frame(half, farewell))
        self.hurry()
        self.settle()

    async def _recall(self, firm: bool) -> None:
        self._end(Ending(await call_back(self._invite, firm=firm), Farewell(GOING_AWAY)))

    def _cut(self) -> None:
        """Hang up with a last word, where there is a place for it. The next look aborts."""
        self._is_cut = True
        for half in (self._client, self._worker):
            half.tell(self.farewell(half))
            half.end()

    def _look_for_stalls(self, now: float) -> bool:
        is_paused = False
        for half, ending in ((self._client, CLIENT_STALLED), (self._worker, WORKER_STALLED)):
            if half.paused_at is not None:
                is_paused = True
                if now - half.paused_at >= self._settings.stall_s:
                    self._end(ending)
        return is_paused

    def _close_frame(self, half: Half, farewell: Farewell) -> bytes:
        return close_frame(*farewell, is_masked=half is self._worker)


def _both(one: Callable[[], None], other: Callable[[], None]) -> None:
    one()
    other()


def _scanner(settings: RelaySettings, upstream: Upstream, *, is_masked: bool) -> Scanner:
    return Scanner(
        is_masked=is_masked,
        is_extended=upstream.is_extended,
        max_frame_bytes=settings.max_fragment_bytes or settings.max_message_bytes,
        max_message_bytes=settings.max_message_bytes,
    )


def _expiry(born: float, max_age_s: float | None) -> float | None:
    age_s = jittered(max_age_s)
    return None if age_s is None else born + age_s
