"""Asks the fleet about its limits per client: arrivals in batches, one call of `clients.lua` at a time.

    ask -> batch -> call (at most 50 a second) -> clients.lua -> reply -> the whole batch is answered

What is told of places goes with the same calls: those taken beyond the caps, those given back, those to be renewed. A
call that is not answered in time, or cannot be made, leaves its batch without an answer; what becomes of it then is for
`herdgate.stores.redis.fleet_clients`. Places that Redis has lost are put back with the first call it answers.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from herdgate.core.errors import ConfigurationError
from herdgate.stores.links import open_link
from herdgate.stores.redis.budget import CallBudget
from herdgate.stores.redis.client_wire import ClientAsk, Told, pack_call, read_told
from herdgate.stores.redis.errors import LinkError
from herdgate.stores.redis.places import HeldPlace, Places
from herdgate.stores.redis.scripts import Script

__all__ = ["CLIENTS", "ClientStore"]

CLIENTS = Script.load("clients")
MOST_ASKS = 250  # in a call, so that none keeps Redis for more than some milliseconds
PAUSE_S = 0.05  # after a call that failed

_logger = logging.getLogger("herdgate.redis")


class _Waiting(NamedTuple):
    ask: ClientAsk
    answer: "asyncio.Future[Told | None]"


class ClientStore:
    """The limits per client of a fleet, for one process of it. Belongs to one event loop.

    Args:
        url: of its Redis.
        name: of the fleet.
        clock: monotonic seconds.

    Attributes:
        places: those this process holds.
        is_away: the last call was not answered.
    """

    def __init__(self, url: str, name: str, clock: Callable[[], float]) -> None:
        self._wake = asyncio.Event()
        self.places = Places(secrets.token_hex(8), clock, self._wake.set)
        self.is_away = False
        self._link = open_link(url)
        self._prefix = f"{{herdgate:{name}}}"
        self._clock = clock
        self._budget = CallBudget(clock())
        self._batch: list[_Waiting] = []
        self._pump: asyncio.Task[None] | None = None

    async def ask(self, ask: ClientAsk) -> Told | None:
        """The fleet's answer; None: there is none, and if it took the place is not known."""
        self.start()
        if self.is_away and not self._link.is_up:
            return None
        waiting = _Waiting(ask, asyncio.get_running_loop().create_future())
        self._batch.append(waiting)
        self._wake.set()
        return await waiting.answer

    def start(self) -> None:
        """Call from now on, in the running loop; harmless to repeat."""
        if self._pump is None or self._pump.done():
            self._pump = asyncio.get_running_loop().create_task(self._run())

    async def aclose(self) -> None:
        """Give back what is free, if Redis is there; stop calling, and close the link."""
        if self._pump is not None:
            self._pump.cancel()
            await asyncio.wait((self._pump,))
        self._leave_alone(self._take_batch())
        if self._link.is_up and self.places.dropped():
            with suppress(LinkError):
                await self._call([])
        await self._link.aclose()

    async def _run(self) -> None:
        with suppress(ConfigurationError, LinkError):  # what is wrong is said by the calendar, which asks the same
            await self._link.check(self._prefix)
        while True:
            await self._wait_for_work()
            await asyncio.sleep(self._budget.wait_s(self._clock()))
            self._budget.spend()
            await self._call_once(self._take_batch())

    async def _call_once(self, batch: Sequence[_Waiting]) -> None:
        try:
            await self._call(batch)
        except asyncio.CancelledError:
            self._leave_alone(batch)
            raise
        except LinkError:
            self._lose(batch)
            await asyncio.sleep(PAUSE_S)
        except Exception:
            _logger.exception("a call about clients failed; its arrivals are settled by this process alone")
            self._lose(batch)
            await asyncio.sleep(PAUSE_S)

    async def _wait_for_work(self) -> None:
        while not self._batch and (wait_s := self.places.wait_s()) != 0:
            self._wake.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._wake.wait()

    def _take_batch(self) -> list[_Waiting]:
        """Those who wait and have not gone, at most as many as go into a call."""
        waiting = [waiting for waiting in self._batch if not waiting.answer.done()]
        self._batch = waiting[MOST_ASKS:]
        return waiting[:MOST_ASKS]

    async def _call(self, batch: Sequence[_Waiting]) -> None:
        fresh, due, dropped = self.places.fresh(), self.places.due(), self.places.dropped()
        call = pack_call([waiting.ask for waiting in batch], drop=_named(dropped), put=_named(fresh), renew=_named(due))
        reply: Any = await self._link.call(CLIENTS, [self._prefix], [call])
        lost, answers = read_told(reply)
        self.is_away = False
        self.places.told([*fresh, *due], dropped)
        if lost:
            _logger.warning("Redis had lost %d sockets of clients; they are put back", lost)
        for waiting, told in zip(batch, answers, strict=True):
            if not waiting.answer.done():
                waiting.answer.set_result(told)

    def _lose(self, batch: Sequence[_Waiting]) -> None:
        """Redis is away, or slow: nothing is known of what this process holds there."""
        self.is_away = True
        self.places.doubt()
        self._leave_alone([*batch, *self._take_batch()])

    def _leave_alone(self, batch: Sequence[_Waiting]) -> None:
        for waiting in batch:
            if not waiting.answer.done():
                waiting.answer.set_result(None)


def _named(places: Sequence[HeldPlace]) -> list[tuple[str, Sequence[str]]]:
    return [(place.id, place.names) for place in places]
