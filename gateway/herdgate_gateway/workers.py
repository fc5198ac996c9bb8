"""The workers behind the gateway, and which of them takes the next arrival.

Rules: the one with the fewest sockets, open and pending, of those whose breaker lets the arrival through; turns are
taken between equals, behind those that let nobody wait for long. An assignment counts until it is released, once,
however it ends. One arrival is one attempt: nothing here tries a second worker. Where a fleet has chosen, nothing here
chooses: another one may be full. A worker that was removed is remembered by its URL while it has sockets, to count on
when it comes back, and for a minute for those whom a fleet has just granted it.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from types import TracebackType
from typing import Literal, Self
from urllib.parse import SplitResult, urlsplit

from herdgate import ConfigurationError
from herdgate_gateway.breaker import Breaker, BreakerSettings, BreakerState
from herdgate_gateway.worker_log import WorkerLog

__all__ = ["Assignment", "Worker", "WorkerPool", "WorkerSnapshot", "check_url"]

MOST_NAMES = 254
"""Workers that one call to the fleet can name."""

SILENCE_S = 1.0
"""Seconds without an answer, after which a worker is to blame if its client leaves."""

GONE_S = 60.0
"""Seconds that a removed worker without sockets is remembered: longer than from a grant to its dial."""

_WAY_OUT = 'write "ws://host:port"'


@dataclass(frozen=True, slots=True)
class WorkerSnapshot:
    """One worker at one moment.

    Attributes:
        open: sockets relayed to it.
        pending: handshakes it has not answered yet.
        state: of its breaker; `removed`: it is not listed any more, and has sockets left.
        failures: handshakes it failed to answer, so far.
    """

    url: str
    open: int
    pending: int
    state: BreakerState | Literal["removed"]
    failures: int


class Worker:
    """One worker.

    Attributes:
        url: as configured.
        host: where it listens.
        port: where it listens.
        open: sockets relayed to it.
        failures: handshakes it failed to answer, so far.
        waiting: who waits for its answer, the first one first, and since when.
        removed_at: since when it is not listed any more; None: it is.
        log: what is said of it.

    Raises:
        ConfigurationError: `url` is not `ws://host:port`.
    """

    def __init__(self, url: str, breaker: Breaker) -> None:
        self.url = url
        self.host, self.port = _read_url(url)
        self.breaker = breaker
        self.open = self.failures = 0
        self.waiting: dict[Assignment, float] = {}
        self.removed_at: float | None = None
        self.log = WorkerLog(url)

    @property
    def pending(self) -> int:
        """Handshakes it has not answered yet."""
        return len(self.waiting)

    def is_silent(self, now: float) -> bool:
        """True if somebody waits for its answer for long."""
        return now - next(iter(self.waiting.values()), now) >= SILENCE_S

    @property
    def load(self) -> int:
        """Sockets, open and pending."""
        return self.open + self.pending


class Assignment:
    """One arrival's way to one worker; pending until `connected`, and over with `release`.

    A context manager that releases.
    """

    def __init__(self, worker: Worker, clock: Callable[[], float]) -> None:
        self.worker = worker
        self._clock = clock
        self._since = clock()
        self._is_probe = worker.breaker.begin()
        self._state = "pending"
        worker.waiting[self] = self._since

    def connected(self) -> None:
        """The worker has taken the handshake: the socket is open."""
        self.answered()
        if self._state == "pending":
            del self.worker.waiting[self]
            self.worker.open += 1
            self._state = "open"

    def answered(self) -> None:
        """The worker has refused the handshake, as is its business: it is well."""
        worker, now = self.worker, self._clock()
        was = worker.breaker.state(now)
        worker.breaker.succeed(now)
        worker.log.answered(now, is_back=was == "broken")

    def failed(self, why: str) -> None:
        """The worker cannot be reached, takes nobody, or has given no answer that could be understood.

        Args:
            why: what it did, for the log.
        """
        worker, now = self.worker, self._clock()
        worker.failures += 1
        broke = worker.breaker.fail(now, self._since, probe=self._is_probe)
        worker.log.failed(why, now, self._since, broke=broke)

    def left(self) -> None:
        """The client has left before an answer: a failure if the worker has kept silent for `SILENCE_S`."""
        waited_s = self._clock() - self._since
        if waited_s >= SILENCE_S:
            self.failed(f"no answer for {waited_s:.1f} s, until its client left")

    def release(self) -> None:
        """It is over; harmless to repeat."""
        if self._state == "pending":
            del self.worker.waiting[self]
        elif self._state == "open":
            self.worker.open -= 1
        if self._is_probe and self._state != "released":
            self.worker.breaker.end_probe()
        self._state = "released"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.release()


class WorkerPool:
    """The workers of the settings.

    Args:
        urls: each `ws://host:port`.
        breaker: when one of them counts as broken.
        clock: seconds, monotonic.

    Raises:
        ConfigurationError: a URL is wrong, or there twice.
    """

    def __init__(
        self,
        urls: Sequence[str],
        breaker: BreakerSettings | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = breaker or BreakerSettings()
        self._clock = clock
        self._workers: list[Worker] = []
        self._removed: list[Worker] = []
        self.replace(urls)

    def replace(self, urls: Sequence[str]) -> None:
        """Change the set: who stays keeps its counts and its breaker; who goes gets nobody new, and loses nobody.

        Raises:
            ConfigurationError: a URL is wrong, or there twice; nothing has changed then.
        """
        if isinstance(urls, str):
            raise ConfigurationError("workers", urls, 'write a list, as in ["ws://127.0.0.1:9000"]')
        known = {worker.url: worker for worker in chain(self._removed, self._workers)}
        workers = [known.get(url) or Worker(url, Breaker(self._settings)) for url in urls]
        places = [(worker.host, worker.port) for worker in workers]
        for url, place in zip(urls, places, strict=True):
            if places.count(place) > 1:
                raise ConfigurationError("workers", url, "name each worker once")
        self._workers = workers
        self._remember(known[url] for url in known.keys() - set(urls))

    def _remember(self, removed: Iterable[Worker]) -> None:
        now = self._clock()
        for worker in self._workers:
            worker.removed_at = None
        self._removed = []
        for worker in removed:
            worker.removed_at = now if worker.removed_at is None else worker.removed_at
            if worker.load or now - worker.removed_at < GONE_S:
                self._removed.append(worker)

    def names(self) -> list[str]:
        """Those that arrivals may go to now, at most 254, for a fleet to choose from. To be asked once for a batch."""
        now = self._clock()
        return [worker.url for worker in self._workers if worker.breaker.lets_through(now)][:MOST_NAMES]

    def takes(self, url: str) -> bool:
        """True if an arrival that needs this worker may go there now."""
        now = self._clock()
        return any(_is_open(worker, now) for worker in self._workers if worker.url == url)

    def welcome(self, url: str) -> None:
        """Another process serves there: what the one before has failed is forgotten."""
        for worker in self._workers:
            if worker.url == url:
                worker.breaker = Breaker(self._settings, self._clock())

    def choose(self, name: str | None = None) -> Assignment | None:
        """Give the next arrival to a worker, to this one if it is named; None: none of them may have it."""
        now = self._clock()
        if name is not None:
            return self._take(name, now)
        allowed = [worker for worker in self._workers if worker.breaker.lets_through(now)]
        if not allowed:
            return None
        best = min(allowed, key=lambda worker: (worker.load, worker.is_silent(now)))
        # To the end of the line, so that equals take turns.
        self._workers.remove(best)
        self._workers.append(best)
        return Assignment(best, self._clock)

    def _take(self, name: str, now: float) -> Assignment | None:
        """A worker of `names`, unless it has broken since. Its ramp has counted this batch already."""
        for worker in chain(self._workers, self._removed):
            if worker.url == name and _is_open(worker, now):
                return Assignment(worker, self._clock)
        return None

    def snapshot(self) -> tuple[WorkerSnapshot, ...]:
        """All of them, by URL, and those that were removed and have sockets left."""
        now = self._clock()
        there = [*self._workers, *(worker for worker in self._removed if worker.load)]
        return tuple(_snapshot(worker, now) for worker in sorted(there, key=lambda worker: worker.url))


def _is_open(worker: Worker, now: float) -> bool:
    """True if those who need this one may go there: there is no other one, so no ramp holds them back."""
    return worker.breaker.state(now) != "broken" or worker.breaker.lets_through(now)


def check_url(url: str) -> None:
    """Look whether this can be a worker's.

    Raises:
        ConfigurationError: it is not `ws://host:port`.
    """
    _read_url(url)


def _snapshot(worker: Worker, now: float) -> WorkerSnapshot:
    state = worker.breaker.state(now) if worker.removed_at is None else "removed"
    return WorkerSnapshot(worker.url, worker.open, worker.pending, state, worker.failures)


def _read_url(url: object) -> tuple[str, int]:
    if not isinstance(url, str):
        raise ConfigurationError("workers", url, _WAY_OUT)
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ConfigurationError("workers", url, _WAY_OUT) from None
    if parts.scheme != "ws" or not host or port == 0 or _has_more(parts) or url != url.strip():
        raise ConfigurationError("workers", url, _WAY_OUT)
    return host, 80 if port is None else port


def _has_more(parts: SplitResult) -> bool:
    return bool(parts.path.strip("/") or parts.query or parts.fragment or "@" in parts.netloc)
