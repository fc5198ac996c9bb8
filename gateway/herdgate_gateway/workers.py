"""The workers behind the gateway, and which of them takes the next arrival.

Rules: the one with the fewest sockets, open and pending, of those whose breaker lets the arrival through; turns are
taken between equals. An assignment counts until it is released, once, however it ends. One arrival is one attempt:
nothing here tries a second worker. Where a fleet has chosen, nothing here chooses: another one may be full.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import SplitResult, urlsplit

from herdgate import ConfigurationError
from herdgate_gateway.breaker import Breaker, BreakerSettings, BreakerState

__all__ = ["Assignment", "Worker", "WorkerPool", "WorkerSnapshot"]

MOST_NAMES = 254
"""Workers that one call to the fleet can name."""

_WAY_OUT = 'write "ws://host:port"'
_logger = logging.getLogger("herdgate.workers")


@dataclass(frozen=True, slots=True)
class WorkerSnapshot:
    """One worker at one moment.

    Attributes:
        open: sockets relayed to it.
        pending: handshakes it has not answered yet.
        state: of its breaker.
        failures: handshakes it never answered, so far.
    """

    url: str
    open: int
    pending: int
    state: BreakerState
    failures: int


class Worker:
    """One worker.

    Attributes:
        url: as configured.
        host: where it listens.
        port: where it listens.
        open: sockets relayed to it.
        pending: handshakes it has not answered yet.
        failures: handshakes it never answered, so far.

    Raises:
        ConfigurationError: `url` is not `ws://host:port`.
    """

    def __init__(self, url: str, breaker: Breaker) -> None:
        self.url = url
        self.host, self.port = _read_url(url)
        self.breaker = breaker
        self.open = self.pending = self.failures = 0

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
        worker.pending += 1

    def connected(self) -> None:
        """The worker has taken the handshake: the socket is open."""
        self.answered()
        if self._state == "pending":
            self.worker.pending -= 1
            self.worker.open += 1
            self._state = "open"

    def answered(self) -> None:
        """The worker has refused the handshake: it is alive."""
        was = self.worker.breaker.state(self._clock())
        self.worker.breaker.succeed(self._clock())
        if was == "broken":
            _logger.info("worker is back: %s", self.worker.url)

    def failed(self) -> None:
        """The worker cannot be reached, or has given no answer that could be understood."""
        self.worker.failures += 1
        if self.worker.breaker.fail(self._clock(), self._since, probe=self._is_probe):
            _logger.warning("worker does not answer, leaving it alone: %s", self.worker.url)

    def release(self) -> None:
        """It is over; harmless to repeat."""
        if self._state == "pending":
            self.worker.pending -= 1
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
    """A fixed set of workers.

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
        self.replace(urls)

    def replace(self, urls: Sequence[str]) -> None:
        """Change the set: who stays keeps its counts and its breaker; who goes gets nobody new, and loses nobody.

        Raises:
            ConfigurationError: a URL is wrong, or there twice; nothing has changed then.
        """
        if isinstance(urls, str):
            raise ConfigurationError("workers", urls, 'write a list, as in ["ws://127.0.0.1:9000"]')
        known = {worker.url: worker for worker in self._workers}
        workers = [known.get(url) or Worker(url, Breaker(self._settings)) for url in urls]
        places = [(worker.host, worker.port) for worker in workers]
        for url, place in zip(urls, places, strict=True):
            if places.count(place) > 1:
                raise ConfigurationError("workers", url, "name each worker once")
        self._workers = workers

    def names(self) -> list[str]:
        """Those that arrivals may go to now, at most 254, for a fleet to choose from. To be asked once for a batch."""
        now = self._clock()
        return [worker.url for worker in self._workers if worker.breaker.lets_through(now)][:MOST_NAMES]

    def choose(self, name: str | None = None) -> Assignment | None:
        """Give the next arrival to a worker, to this one if it is named; None: none of them may have it."""
        now = self._clock()
        if name is not None:
            return self._take(name, now)
        allowed = [worker for worker in self._workers if worker.breaker.lets_through(now)]
        if not allowed:
            return None
        best = min(allowed, key=lambda worker: worker.load)
        # To the end of the line, so that equals take turns.
        self._workers.remove(best)
        self._workers.append(best)
        return Assignment(best, self._clock)

    def _take(self, name: str, now: float) -> Assignment | None:
        """A worker of `names`, unless it is gone or has broken since. Its ramp has counted this batch already."""
        for worker in self._workers:
            if worker.url == name and (worker.breaker.state(now) != "broken" or worker.breaker.lets_through(now)):
                return Assignment(worker, self._clock)
        return None

    def snapshot(self) -> tuple[WorkerSnapshot, ...]:
        """All of them, by URL."""
        now = self._clock()
        return tuple(
            WorkerSnapshot(worker.url, worker.open, worker.pending, worker.breaker.state(now), worker.failures)
            for worker in sorted(self._workers, key=lambda worker: worker.url)
        )


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
