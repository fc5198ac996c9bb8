"""Handshakes that shall be refused: a new TCP connection each, and every answer is looked at.

    visits = Visits("http", with_ticket=True)
    visits.run(port, 2.0)                      -> Tally(done=..., admitted=..., wrong={})

Rules: what counts as done is said in `visit`; who was let in is `admitted`, which the limiter's own rate explains or
not. A fixed number is in flight, from many loopback addresses, so that ports do not run out. No visit waits longer than
ten seconds.
"""

import select
import time
from collections import Counter
from dataclasses import dataclass, field

from herdgate_loadtest.bench.sides.visit import ADMITTED, DONE, Manner, Visit
from herdgate_loadtest.demo.process import HOST
from herdgate_loadtest.engine.dialer import Dialer
from herdgate_loadtest.engine.target import Target
from herdgate_loadtest.engine.wire import Handshake

__all__ = ["SOURCES", "Tally", "Visits"]

SOURCES = tuple(f"127.0.1.{number}" for number in range(1, 65))
"""Where visits come from."""

MOST = 200_000
"""Visits of one run."""

_IN_FLIGHT, _PACED_IN_FLIGHT = 64, 2_000
_TIMEOUT_S = 10.0


@dataclass(slots=True)
class Tally:
    """What became of visits.

    Attributes:
        done: refused as they ought to be.
        admitted: let in.
        wrong: anything else, by what it was.
        kept: share of the pace that was kept; 1.0 where there was none.
        most_open: in flight at the same time.
        took_s: from the first visit to the end of the last one.
    """

    done: int = 0
    admitted: int = 0
    wrong: Counter[str] = field(default_factory=Counter)
    kept: float = 1.0
    most_open: int = 0
    took_s: float = 0.0

    def faults(self, admissions_per_s: float) -> list[str]:
        """Why this proves nothing, if so many may be let in, and one more; with 0 a second, none."""
        faults = [f"{count} of {count + self.done} visits: {what}" for what, count in self.wrong.items()]
        if self.admitted > (admissions_per_s and admissions_per_s * (self.took_s + 1) + 1):
            faults.append(f"{self.admitted} visits were let in within {self.took_s:.1f} s")
        return faults


class Visits:
    """Comes again and again.

    Args:
        manner: how visits shall be refused; they come with an Origin if it is by a close.
        with_ticket: each is due a ticket.
    """

    def __init__(self, manner: Manner, *, with_ticket: bool) -> None:
        self._manner: Manner = manner
        self._with_ticket = with_ticket
        self._dialer = Dialer(SOURCES)
        self._number = 0

    def run(self, port: int, seconds: float, *, pace: float | None = None) -> Tally:
        """Visit a port of 127.0.0.1 for so long, and wait for those in flight.

        Args:
            pace: visits a second, which begin when they are due whatever the server does. None: one after the other.
        """
        return _Run(self, port, seconds, pace).finish()

    def begin(self, target: Target, handshake: Handshake) -> Visit:
        """One visit from the next address.

        Raises:
            OSError: it cannot be begun.
        """
        self._number += 1
        sock = self._dialer.open(target, self._number)
        return Visit(sock, handshake, self._manner, with_ticket=self._with_ticket)

    def handshake(self, target: Target) -> Handshake:
        """What is sent."""
        origin = f"http://{target.host}" if self._manner == "close" else None
        return Handshake(target.host, target.path, origin=origin)


class _Run:
    """One run of visits."""

    def __init__(self, visits: Visits, port: int, seconds: float, pace: float | None) -> None:
        self._visits, self._seconds, self._pace = visits, seconds, pace
        self._target = Target.of(f"ws://{HOST}:{port}/leave")
        self._handshake = visits.handshake(self._target)
        self._tally = Tally()
        self._flying: dict[int, Visit] = {}
        self._begun = 0
        self._epoll = select.epoll()

    def finish(self) -> Tally:
        self._began = time.monotonic()
        with self._epoll:
            while self._begin_due() or self._flying:
                for descriptor, _ in self._epoll.poll(self._patience_s()):
                    self._go_on(self._flying[descriptor])
                self._give_up_late()
        self._tally.took_s = time.monotonic() - self._began
        if self._pace is not None:
            self._tally.kept = self._begun / (self._pace * self._seconds)
        return self._tally

    def _patience_s(self) -> float:
        if self._pace is not None:
            return 0.001
        return 1.0 if self._flying else 0.0

    def _begin_due(self) -> bool:
        """Begin what is due; False: there will be no more."""
        elapsed = time.monotonic() - self._began
        if elapsed >= self._seconds or self._begun >= MOST:
            return False
        if self._pace is None:
            due = _IN_FLIGHT - len(self._flying)
        else:
            due = min(int(elapsed * self._pace) - self._begun, _PACED_IN_FLIGHT - len(self._flying))
        for _ in range(due):
            self._begin()
        self._tally.most_open = max(self._tally.most_open, len(self._flying))
        return True

    def _begin(self) -> None:
        self._begun += 1
        try:
            visit = self._visits.begin(self._target, self._handshake)
        except OSError as error:
            self._tally.wrong[f"could not connect ({error.strerror})"] += 1
            return
        self._flying[visit.sock.fileno()] = visit
        self._epoll.register(visit.sock, select.EPOLLIN)
        self._send(visit)

    def _send(self, visit: Visit) -> None:
        try:
            visit.unsent = visit.unsent[visit.sock.send(visit.unsent) :]
        except BlockingIOError:
            pass  # not connected yet
        except OSError as error:
            self._end(visit, f"could not send ({error.strerror})")
            return
        self._epoll.modify(visit.sock, select.EPOLLIN | (select.EPOLLOUT if visit.unsent else 0))

    def _go_on(self, visit: Visit) -> None:
        if visit.unsent:
            self._send(visit)
            return
        try:
            outcome = visit.read()
        except BlockingIOError:
            return
        except OSError as error:
            outcome = f"broken ({error.strerror})"
        if outcome is not None:
            self._end(visit, outcome)

    def _end(self, visit: Visit, outcome: str) -> None:
        del self._flying[visit.sock.fileno()]
        visit.sock.close()
        if outcome == DONE:
            self._tally.done += 1
        elif outcome == ADMITTED:
            self._tally.admitted += 1
        else:
            self._tally.wrong[outcome] += 1

    def _give_up_late(self) -> None:
        late = time.monotonic() - _TIMEOUT_S
        while self._flying:
            oldest = next(iter(self._flying.values()))
            if oldest.began > late:
                return
            self._end(oldest, f"no answer within {_TIMEOUT_S:g} s")
