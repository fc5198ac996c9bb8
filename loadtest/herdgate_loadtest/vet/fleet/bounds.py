"""How much is too much: bounds on the figures, each with where it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass

from herdgate_loadtest.vet.fleet.figures import Figures

__all__ = ["BOUNDS", "Bound", "Exceeded", "exceeded"]


@dataclass(frozen=True, slots=True)
class Bound:
    """The most a figure may be; what it is, and why no more."""

    most: float
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A figure beyond its bound."""

    figure: str
    value: float
    bound: Bound

    @property
    def shown(self) -> str:
        """The value, with as many digits as matter."""
        return f"{self.value:,.0f}" if 1000 <= self.value < 1e12 else f"{self.value:.3g}"


BOUNDS: Mapping[str, Bound] = {
    "peak_share": Bound(
        0.3,
        "largest part of the fleet within 100 ms of each other, after a cut at any attempt",
        "2,000 clients of whom 600 come in a tenth of a second are 6,000 a second, 60 times what is admitted",
    ),
    "tries_per_client": Bound(
        15,
        "tries of each client until all are back, at a server that admits them in 19 s",
        "doubling from 1 s takes 5; with 15 the server refuses 14 for each it admits",
    ),
    "tail_ratio": Bound(
        1,
        "when the last one was back / (3 times the ideal 19 s + twice the longest wait)",
        "who has just missed a place waits once more; whoever comes in step wastes what is admitted in between",
    ),
    "at_once_share": Bound(
        0.01,
        "waits under 100 ms, of all",
        "who comes back within 100 ms meets the failure it comes from",
    ),
    "sustained_rate": Bound(
        0.2,
        "tries a second of each client when a server has been away for five minutes",
        "one in 5 s: 2,000 clients make 400 a second, 4 times what is admitted when it comes back",
    ),
    "flap_ratio": Bound(
        2,
        "how much sooner they come after sockets that opened and were dropped than after refusals",
        "a socket that is dropped within 5 s is a failure too, and costs more than a refusal",
    ),
    "early_share": Bound(
        0.1,
        "tries before the time that was told, of those who were told one",
        "the server has set that time aside, and nothing before it",
    ),
    "sockets_per_client": Bound(1, "sockets that each client ends up with", "one client is one socket"),
    "hopeless_tries": Bound(1, "tries in ten minutes with a bad key", "no second try mends it"),
    "lost_on_restart": Bound(
        0, "ways to say `back soon` that clients take for good-bye", "a restart must not lose them"
    ),
    "broken_delays": Bound(
        0,
        "attempts, of the first 5,000, whose delay falls back or never ends",
        "a backoff that has grown stays grown",
    ),
    "aligned_share": Bound(
        0.3, "largest part of the fleet within 100 ms of each other, by the wall clock", "as for peak_share"
    ),
}
"""By name of the figure."""


def exceeded(figures: Figures) -> tuple[Exceeded, ...]:
    """Every figure beyond its bound."""
    values = {name: getattr(figures, name) for name in BOUNDS}
    return tuple(Exceeded(name, values[name], bound) for name, bound in BOUNDS.items() if values[name] > bound.most)
