"""A crowd of WebSocket clients in one process: bring it up, cut it off, watch it come back.

    async with Crowd(CrowdConfig(urls=("ws://127.0.0.1:8000/ws",), clients={"obey": 10_000})) as crowd:
        await crowd.bring_up(rate=500, deadline_s=60)
        await crowd.hold(2)
        crowd.cut("reset")
        await crowd.recover(deadline_s=60)
        await crowd.close()
        record = crowd.record(rate=500, burst=500)

Rules: no task per client. A phase begins with `bring_up` and with `cut`; `snapshot` and `record` are about the
latest. All moments are `time.monotonic()`, which processes of one machine share.
"""

import asyncio
import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from herdgate_loadtest.counted import counted
from herdgate_loadtest.engine.behaviour import parse_behaviour
from herdgate_loadtest.engine.client import Client, Shared
from herdgate_loadtest.engine.dialer import Dialer
from herdgate_loadtest.engine.health import Health
from herdgate_loadtest.engine.play import Play, Played, Step
from herdgate_loadtest.engine.poller import Poller
from herdgate_loadtest.engine.preflight import preflight
from herdgate_loadtest.engine.record import Outcome, Record, ServerCounts
from herdgate_loadtest.engine.recorded import Recorded
from herdgate_loadtest.engine.scheduler import Scheduler
from herdgate_loadtest.engine.target import Target
from herdgate_loadtest.engine.wire import Handshake
from herdgate_loadtest.errors import CrowdError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from types import TracebackType
    from typing import Self

    from herdgate_loadtest.engine.config import CrowdConfig
    from herdgate_loadtest.engine.scheduler import Attempt

__all__ = ["Crowd", "Cut", "Snapshot"]

Cut = Literal["close", "reset", "observe"]
"""How a crowd is cut off: every client closes (1001), every client resets, or the server does it and we watch."""

_LOOK_S = 0.02
_REFUSED_S = 2.0  # a server that starts at the same time as the crowd has so long
_NOBODY_THERE = frozenset(("refused", "EHOSTUNREACH", "ENETUNREACH"))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The crowd now; counts are since the phase began.

    Attributes:
        elapsed_s: seconds since then.
        clients: all of them.
        open: those that are in.
        cut_off: those that were cut off, back or not.
        dialling: those that wait for an answer; the others wait for their time.
        tries: dials.
        tries_per_s: dials in the last whole second.
        admitted: admissions.
        denied: orderly denials.
        failed: tries with neither.
        lost: sockets that ended unasked.
    """

    elapsed_s: float
    clients: int
    open: int
    cut_off: int
    dialling: int
    tries: int
    tries_per_s: int
    admitted: int
    denied: int
    failed: int
    lost: int


class Crowd:
    """A crowd; see the module for its life.

    Args:
        config: who they are and where they go.
        observe: called with every try's outcome, from within the event loop; must be quick.
        heard: called with every message from the server, the same way.

    Attributes:
        config: as given.
        warnings: what the preflight found disturbing.
        health: the generator's watch over itself.

    Raises:
        ConfigurationError: a URL or a header is wrong.
    """

    def __init__(
        self,
        config: "CrowdConfig",
        observe: "Callable[[Attempt], None] | None" = None,
        heard: "Callable[[bytes], None] | None" = None,
    ) -> None:
        self.config = config
        self.warnings: list[str] = []
        self.health = Health()
        self._observe, self._heard = observe, heard
        self._speaker = -1
        self._rng = random.Random(config.seed)
        self._routes = [(target, self._handshake(target)) for target in map(Target.of, config.urls)]
        self._clients: list[Client] = []
        self._poller: Poller | None = None
        self._scheduler: Scheduler | None = None

    def _handshake(self, target: Target) -> Handshake:
        config = self.config
        return Handshake(
            target.host,
            target.path,
            origin=config.origin,
            subprotocol=config.subprotocol,
            headers=config.headers,
        )

    async def __aenter__(self) -> "Self":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: "TracebackType | None",
    ) -> None:
        await self.close()

    async def bring_up(self, *, rate: float | None = None, deadline_s: float = 60.0) -> None:
        """Connect everybody: client n first dials at n / `rate` seconds, or all dial at once.

        Raises:
            PreflightError: this machine cannot carry them; nothing was opened.
            CrowdError: not all were in by the deadline, or every connection was refused for the first two seconds.
        """
        await self.bring_up_some(range(self.config.first, self.config.first + self.config.total), rate, deadline_s)

    async def bring_up_some(self, numbers: "Collection[int]", rate: float | None, deadline_s: float) -> None:
        """Connect clients of these numbers, as `bring_up` does; the others come when a step of `play` says so."""
        scheduler = self._open()
        interval_s = 1 / rate if rate else 0.0
        now = time.monotonic()
        coming = [client for client in self._clients if client.number in numbers]
        scheduler.begin(now, coming)
        scheduler.send_off((now + place * interval_s, client) for place, client in enumerate(coming))
        await self._check_listening(scheduler, deadline_s)
        if not await self._are_in(len(coming), deadline_s):
            answers = ", ".join(f"{label}: {times:,}" for label, times in scheduler.tally.answers.most_common(5))
            came = f"{scheduler.open:,} of {counted(len(coming), 'client')} came up in {deadline_s:g} s"
            raise CrowdError(f"only {came} ({answers or 'no answers'})")

    async def hold(self, seconds: float) -> None:
        """Leave everybody where they are."""
        await asyncio.sleep(seconds)

    def cut(self, how: Cut) -> float:
        """Begin the recovery: cut everybody off in one instant, or expect the server to do so from now on.

        Returns:
            The instant, monotonic seconds.
        """
        scheduler = self._running()
        now = time.monotonic()
        scheduler.begin(now, self._clients)
        if how == "observe":
            return now
        for client in self._clients:
            if how == "close":
                client.leave()
            else:
                client.reset()
        spread_s = self.config.spread_s
        scheduler.send_off((now + self._rng.uniform(0, spread_s), client) for client in self._clients)
        self.health.excuse()
        return now

    async def recover(self, *, deadline_s: float, expected: int | None = None) -> bool:
        """Wait until `expected` clients (None: all) have been cut off and everybody is in.

        Returns:
            False: the deadline, seconds from the beginning of the phase, came first.
        """
        return await self._are_in(self.config.total, deadline_s, self.config.total if expected is None else expected)

    async def play(self, steps: "Sequence[Step]", *, began: float, deadline_s: float) -> Played:
        """Play steps, counted from `began` (monotonic seconds), and wait for everybody who should be in then."""
        return await Play(self._clients, self._running()).play(steps, began=began, deadline_s=deadline_s)

    def begin(self) -> float:
        """A new phase, from now on, for those who have come by now; returns the moment, monotonic seconds."""
        now = time.monotonic()
        known = [client for client in self._clients if client.start is not None or client.admitted_at is not None]
        self._running().begin(now, known)
        return now

    def is_back(self, expected: int) -> bool:
        """True if so many clients at least have been cut off, and everybody is in, for sure."""
        scheduler = self._running()
        return scheduler.cut_off >= expected and scheduler.open == self.config.total and scheduler.settled

    async def close(self) -> None:
        """Everybody leaves (close 1001). `snapshot` and `record` still speak of the latest phase."""
        if self._poller is None or self._scheduler is None:
            return
        self.health.stop()
        self._scheduler.stop()
        for client in self._clients:
            client.leave()
        self._poller.close()
        self._poller = None

    def snapshot(self) -> Snapshot:
        """The crowd as it is now."""
        scheduler = self._running()
        tally, now = scheduler.tally, time.monotonic()
        return Snapshot(
            elapsed_s=now - tally.began,
            clients=self.config.total,
            open=scheduler.open,
            cut_off=scheduler.cut_off,
            dialling=scheduler.dialling,
            tries=tally.tries,
            tries_per_s=tally.tries_per_s(now),
            admitted=tally.admitted,
            denied=tally.denied,
            failed=tally.failed,
            lost=tally.lost,
        )

    def answers(self) -> dict[str, int]:
        """What the tries of the latest phase came to: `101`, `429 rate`, `close 1013`, `reset`, ..."""
        return dict(self._running().tally.answers.most_common())

    def record(self, *, rate: float, burst: float, server: ServerCounts | None = None) -> Record:
        """The result of the latest phase.

        Args:
            rate: admissions per second the fleet may do.
            burst: admissions at once.
            server: what gateway and workers counted; their moments of admission, if any, make the peak.
        """
        return self.recorded().record(rate=rate, burst=burst, server=server)

    def recorded(self) -> Recorded:
        """All that the clients recorded in the latest phase, for a record of several crowds."""
        tally = self._running().tally
        moments = [client.admitted_at for client in self._back()] + list(tally.ended_admissions)
        return Recorded(
            tally.began,
            [self._outcome(client, tally.began) for client in self._clients if client.start is not None],
            tries=tally.tries,
            admitted=tally.admitted,
            denied=tally.denied,
            failed=tally.failed,
            denials_s=tally.denials_s,
            admissions_s=[moment - tally.began for moment in moments if moment is not None],
            reasons=self.health.reasons(),
        )

    def say(self, text: bytes) -> bool:
        """One text message, by the next client that is in; False: it was not sent."""
        clients = self._clients
        for _ in range(len(clients)):
            self._speaker = (self._speaker + 1) % len(clients)
            if clients[self._speaker].admitted_at is not None:
                return clients[self._speaker].say(text)
        return False

    async def _are_in(self, wanted: int, deadline_s: float, cut_off: int = 0) -> bool:
        scheduler = self._running()
        end = scheduler.tally.began + deadline_s
        while scheduler.cut_off < cut_off or scheduler.open < wanted or not scheduler.settled:
            if time.monotonic() >= end:
                return False
            await asyncio.sleep(_LOOK_S)
        return True

    async def _check_listening(self, scheduler: Scheduler, deadline_s: float) -> None:
        """Wait until there is any answer but a refused connection; without one, nobody will come up."""
        tally = scheduler.tally
        end = tally.began + min(deadline_s, _REFUSED_S)
        while not scheduler.open and tally.answers.keys() <= _NOBODY_THERE:
            if time.monotonic() >= end:
                break
            await asyncio.sleep(_LOOK_S)
        else:
            return
        if deadline_s > _REFUSED_S and tally.answers:
            where = ", ".join(dict.fromkeys(target.host for target, _ in self._routes))
            met = ", ".join(f"{label}: {times:,}" for label, times in tally.answers.most_common())
            raise CrowdError(f"nobody listens at {where} ({met}): start the server, or correct the URL")

    def _open(self) -> Scheduler:
        if self._scheduler is not None:
            raise CrowdError("a crowd comes up once: make a new one")
        config, loop = self.config, asyncio.get_running_loop()
        self.warnings = preflight(
            config.total,
            sources=max(1, len(config.sources)),
            listeners=len({target.address for target, _ in self._routes}),
            loopback=all(target.loopback for target, _ in self._routes),
        )
        dialer = Dialer(config.sources)
        for target, _ in self._routes:
            dialer.check(target)
        self._poller = Poller(loop)
        scheduler = Scheduler(
            loop,
            config,
            rng=self._rng,
            health=self.health,
            observe=self._observe,
        )
        shared = Shared(
            scheduler,
            self._poller,
            dialer,
            self._routes,
            self._rng,
            failover=config.failover,
            moves_on=config.moves_on,
            heard=self._heard,
        )
        behaviours = [parse_behaviour(name) for name, count in config.clients.items() for _ in range(count)]
        self._rng.shuffle(behaviours)  # so that no kind has the first numbers, and the first moments, to itself
        self._clients = [Client(number, behaviour, shared) for number, behaviour in enumerate(behaviours, config.first)]
        self._scheduler = scheduler
        self.health.start(loop)
        return scheduler

    def _running(self) -> Scheduler:
        if self._scheduler is None:
            raise CrowdError("the crowd is not up: call bring_up first")
        return self._scheduler

    def _back(self) -> list[Client]:
        return [client for client in self._clients if client.start is not None and client.admitted_at is not None]

    @staticmethod
    def _outcome(client: Client, began: float) -> Outcome:
        at, start = client.admitted_at, client.start
        if at is None or start is None:
            return Outcome(client.behaviour.name, client.tries)
        return Outcome(client.behaviour.name, client.tries, back_s=at - began, wait_s=at - start)
