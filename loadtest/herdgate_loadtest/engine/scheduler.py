"""Decides when each client dials again, and keeps the tally of what came of it.

Rules: every latency counts from the *intended* moment, never from when the event loop got round to it: a generator or
server that stalls makes figures worse, not rarer (no coordinated omission). A client whose socket ends unasked always
comes back. An admission counts once it has settled: a close 1013 within `SETTLE_S` of the 101 is a denial, since a
gateway answers browsers that way; any other end is an admission that was lost.
"""

import time
from typing import TYPE_CHECKING, NamedTuple

from herdgate_loadtest.engine.agenda import Agenda, Deadlines
from herdgate_loadtest.engine.answer import NO_ANSWER, TRY_AGAIN_LATER, Denial
from herdgate_loadtest.engine.tally import Tally

if TYPE_CHECKING:
    import asyncio
    import random
    from collections.abc import Callable, Iterable

    from herdgate_loadtest.engine.client import Client
    from herdgate_loadtest.engine.config import CrowdConfig
    from herdgate_loadtest.engine.health import Health

__all__ = ["SETTLE_S", "Attempt", "Scheduler"]

SETTLE_S = 0.5
_SWEEP_S = 0.05


class Attempt(NamedTuple):
    """What came of one try.

    Attributes:
        client: its number.
        behaviour: its behaviour's name.
        outcome: "admitted", "denied" or "failed".
        answer: `101`, `429 rate`, `close 1013`, `reset`, ...
        latency_s: from the intended moment of the try to the answer.
        wait_s: from the intended first try to the admission; None unless admitted.
    """

    client: int
    behaviour: str
    outcome: str
    answer: str
    latency_s: float
    wait_s: float | None


class Scheduler:
    """The listener of all clients.

    Attributes:
        tally: of the current phase.
        open: clients that are in.
        cut_off: clients that were cut off since the phase began.
    """

    def __init__(
        self,
        loop: "asyncio.AbstractEventLoop",
        config: "CrowdConfig",
        *,
        rng: "random.Random",
        health: "Health",
        observe: "Callable[[Attempt], None] | None",
    ) -> None:
        self.tally = Tally(time.monotonic())
        self.open = 0
        self.cut_off = 0
        self._loop = loop
        self._spread_s = config.spread_s
        self._rng = rng
        self._health = health
        self._observe = observe
        self._agenda: Agenda[Client] = Agenda(loop, self._dial)
        self._unanswered: Deadlines[Client] = Deadlines(config.timeout_s)
        self._settling: Deadlines[Client] = Deadlines(SETTLE_S)
        self._timer = loop.call_later(_SWEEP_S, self._sweep)

    @property
    def dialling(self) -> int:
        """Tries without an answer yet."""
        return len(self._unanswered)

    @property
    def settled(self) -> bool:
        """Nobody's admission may still turn out to be a denial."""
        return not self._settling

    def begin(self, now: float, clients: "Iterable[Client]") -> None:
        """A new phase with a new tally; whoever is outside counts as cut off at its beginning."""
        self._settle_all()
        self.tally = Tally(now)
        self.cut_off = 0
        for client in clients:
            client.start = None
            if client.admitted_at is None:
                self.cut_off += 1
                client.start, client.tries = now, 0

    def send_off(self, entries: "Iterable[tuple[float, Client]]") -> None:
        """Everybody is outside; each client first dials at its moment (monotonic seconds)."""
        entries = list(entries)
        for when, client in entries:
            client.start = client.due = when
            client.tries = 0
            client.ticket = client.admitted_at = None
        self.open, self.cut_off = 0, len(entries)
        self._unanswered.clear()
        self._agenda.replace(entries)

    def cut_off_one(self, client: "Client", now: float) -> None:
        """A client that is in has been cut off, with its socket gone: it comes back, and waits from now on."""
        self._take_out(client)
        self._cut_off(client, NO_ANSWER, now)
        client.start = client.due

    def join_later(self, client: "Client", when: float) -> None:
        """A client that is not in, nor on its way, comes at its moment (monotonic seconds)."""
        client.start, client.tries = when, 0
        self.cut_off += 1
        self._dial_at(when, client)

    def leave(self, client: "Client") -> None:
        """A client that is in has left for good, with its socket gone."""
        self._take_out(client)
        if client.start is not None and client.admitted_at is not None:
            self.tally.ended_admissions.append(client.admitted_at)
        client.start = client.admitted_at = None

    def _take_out(self, client: "Client") -> None:
        self.open -= 1
        if client in self._settling:
            self._settling.stop(client)
            self._settle(client)

    def stop(self) -> None:
        """Nobody dials any more."""
        self._settle_all()
        self._unanswered.clear()
        self._agenda.replace(())
        self._timer.cancel()

    # What clients report.

    def admitted(self, client: "Client") -> None:
        """A 101: in, unless a close 1013 follows."""
        now = time.monotonic()
        self._unanswered.stop(client)
        self._settling.start(client, now)
        client.admitted_at = now
        client.ticket = None
        self.open += 1
        self.tally.admitted += 1

    def denied(self, client: "Client", denial: Denial) -> None:
        """An orderly refusal: the client's behaviour says when it comes back."""
        now = time.monotonic()
        self._unanswered.stop(client)
        self.tally.denied += 1
        self.tally.denials_s.append(now - client.due)
        self._report(client, "denied", denial.label, now)
        self._come_back(client, denial, now)

    def failed(self, client: "Client", why: str, *, ours: bool) -> None:
        """No orderly answer: it keeps its ticket, and its behaviour decides as if it had been told no time."""
        now = time.monotonic()
        self._unanswered.stop(client)
        self.tally.failed += 1
        if ours:
            self._health.faults[why] += 1
        self._report(client, "failed", why, now)
        self._come_back(client, Denial(ticket=client.ticket), now)

    def lost(self, client: "Client", denial: Denial) -> None:
        """An open socket has ended: as denied, if that is what the 101 was for; else the client is cut off."""
        self.open -= 1
        if client in self._settling:
            self._settling.stop(client)
            if denial.status == TRY_AGAIN_LATER:
                self.tally.admitted -= 1
                client.admitted_at = None
                self.denied(client, denial)
                return
            self._settle(client)
        self._cut_off(client, denial, time.monotonic())

    def _cut_off(self, client: "Client", denial: Denial, now: float) -> None:
        self.tally.lost += 1
        if client.start is not None and client.admitted_at is not None:  # for the second time in this phase
            self.tally.ended_admissions.append(client.admitted_at)
        told = denial.delay_s is not None
        due = now if told else now + self._rng.uniform(0, self._spread_s)
        if client.start is None:
            self.cut_off += 1
            client.start = due
            client.tries = 0
        client.admitted_at = None
        if told:
            self._come_back(client, denial, now)
        else:
            self._dial_at(due, client)

    # When clients dial.

    def _come_back(self, client: "Client", denial: Denial, now: float) -> None:
        delay_s, client.ticket = client.behaviour.after(denial, client.tries, self._rng)
        self._dial_at(now + delay_s, client)

    def _dial_at(self, when: float, client: "Client") -> None:
        client.due = when
        self._agenda.put(when, client)

    def _dial(self, client: "Client") -> None:
        now = time.monotonic()
        self.tally.tried(now)
        self._health.dialled(now - client.due)
        self._unanswered.start(client, now)
        client.dial()

    def _sweep(self) -> None:
        self._timer = self._loop.call_later(_SWEEP_S, self._sweep)
        now = time.monotonic()
        for client in self._unanswered.take_due(now):
            client.give_up()
        for client in self._settling.take_due(now):
            self._settle(client)

    def _settle_all(self) -> None:
        for client in self._settling.take_due(float("inf")):
            self._settle(client)

    def _settle(self, client: "Client") -> None:
        if client.admitted_at is not None:
            self._report(client, "admitted", "101", client.admitted_at)

    def _report(self, client: "Client", outcome: str, answer: str, now: float) -> None:
        self.tally.answered(answer)
        if self._observe is not None:
            wait_s = now - client.start if outcome == "admitted" and client.start is not None else None
            latency_s = now - client.due
            self._observe(Attempt(client.number, client.behaviour.name, outcome, answer, latency_s, wait_s))
