"""What a worker knows of its load: sockets pending and open, and how long set-ups take. Pure: `now` is an argument.

A socket is *pending* from its handshake to its acceptance, then *open*, and gone once. It is counted by the gateway it
came through, too.
"""

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Load", "LoadFigures", "Socket"]

WINDOW_S = 10.0
MOST_TIMES = 1_000
"""Set-ups remembered: of more in one window, the last ones."""

MOST_GATEWAYS = 64
"""Gateways told by name, those with the most sockets; more are taken together."""


class LoadFigures(NamedTuple):
    """The load at one moment.

    Attributes:
        open: sockets accepted and not yet gone.
        pending: handshakes not accepted yet.
        setup_p95_s: seconds in which 95 of 100 set-ups were over, in the last 10 s; or in which they are not over yet,
            if that is longer.
        gateways: sockets by the name of the gateway they came through; those through none under an empty name.
    """

    open: int
    pending: int
    setup_p95_s: float
    gateways: Mapping[str, int]


class Socket:
    """One socket of a worker. Made by `Load.arrive`."""

    def __init__(self, load: "Load", gateway: str, now: float) -> None:
        self._load, self._gateway, self._since = load, gateway, now
        self._is_gone = False

    def accepted(self, now: float) -> None:
        """The app has accepted; harmless to repeat."""
        if self._load.pending.pop(self, None) is not None:
            self._load.open += 1
            self._load.times.append((now, now - self._since))

    def gone(self) -> None:
        """It is over; harmless to repeat."""
        if self._is_gone:
            return
        self._is_gone = True
        if self._load.pending.pop(self, None) is None:
            self._load.open -= 1
        self._load.gateways[self._gateway] -= 1
        if not self._load.gateways[self._gateway]:
            del self._load.gateways[self._gateway]


class Load:
    """The sockets of one worker.

    Attributes:
        open: sockets accepted and not yet gone.
        pending: handshakes not accepted yet, and since when.
        times: set-ups that are over: when, and how long they took.
        gateways: sockets by gateway.
    """

    def __init__(self) -> None:
        self.open = 0
        self.pending: dict[Socket, float] = {}
        self.times: deque[tuple[float, float]] = deque(maxlen=MOST_TIMES)
        self.gateways: Counter[str] = Counter()

    @property
    def sockets(self) -> int:
        """Pending and open."""
        return self.open + len(self.pending)

    def arrive(self, gateway: str, now: float) -> Socket:
        """One more socket, through this gateway; an empty name for none."""
        socket = Socket(self, gateway, now)
        self.pending[socket] = now
        self.gateways[gateway] += 1
        return socket

    def figures(self, now: float) -> LoadFigures:
        """All of it as of `now`."""
        while self.times and self.times[0][0] < now - WINDOW_S:
            self.times.popleft()
        over = _p95([seconds for _, seconds in self.times])
        so_far = _p95([now - since for since in self.pending.values()])
        return LoadFigures(self.open, len(self.pending), max(over, so_far), self._by_gateway())

    def _by_gateway(self) -> Mapping[str, int]:
        told = Counter(dict(self.gateways.most_common(MOST_GATEWAYS)))
        rest = self.sockets - told.total()
        return told + Counter({"": rest}) if rest else told


def _p95(seconds: Sequence[float]) -> float:
    """The nearest rank; 0.0 of nothing."""
    return sorted(seconds)[math.ceil(0.95 * len(seconds)) - 1] if seconds else 0.0
