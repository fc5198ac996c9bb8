"""What is simulated: frozen, validated by `reading`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from herdgate.core.limits import Limits

__all__ = ["Failure", "GatewayDown", "RateChange", "Scenario", "Worker", "WorkerKilled"]

_BEYOND_IDEAL_S = 3_600.0


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker.

    Attributes:
        capacity: sockets at once, set-ups included; None: any number.
        latency_s: from the admission to its 101, seconds.
    """

    capacity: int | None = None
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True)
class GatewayDown:
    """Gateway number `gateway` (1: the first) dies at `at_s`, with every socket and handshake it has.

    Attributes:
        for_s: until it is back, seconds; None: for good.
    """

    at_s: float
    gateway: int
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class WorkerKilled:
    """Worker number `worker` (1: the first) is killed at `at_s`; its clients are called back, each with a hint.

    Attributes:
        for_s: until it is back, seconds; None: for good.
    """

    at_s: float
    worker: int
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class RateChange:
    """From `at_s` on the fleet admits `rate` a second; 0: nobody."""

    at_s: float
    rate: float


Failure = GatewayDown | WorkerKilled | RateChange


@dataclass(frozen=True, slots=True)
class Scenario:
    """A crowd that is cut off at 0 s, and the fleet it comes back to, whose bucket is full then.

    Attributes:
        clients: how many there are.
        limits: rate (not None), burst and the calendar's times.
        behaviours: shares of the clients by name; they add up to 1.
        seed: of everything random.
        spread_s: clients first come back uniformly over this many seconds.
        max_wait_s: a handshake whose firm slot is at most this far away is held until then; 0: never.
        max_held: handshakes that one gateway holds at once.
        gateways: how many share the calendar; client n's try number t goes to number n + t of them, in turn.
        answers_per_s: what one gateway answers a second at most, the others wait in line; None: all of them at once.
        workers: behind the gateways.
        failures: what else happens.
        until_s: when the simulation ends at the latest; None: an hour beyond the ideal time.
    """

    clients: int
    limits: Limits
    behaviours: Mapping[str, float]
    seed: int = 1
    spread_s: float = 0.3
    max_wait_s: float = 0.5
    max_held: int = 1_000
    gateways: int = 1
    answers_per_s: float | None = None
    workers: tuple[Worker, ...] = (Worker(),)
    failures: tuple[Failure, ...] = ()
    until_s: float | None = None

    @property
    def rate(self) -> float:
        """Admissions per second, at first."""
        return self.limits.rate or 0.0

    @property
    def burst(self) -> float:
        """Admissions at once."""
        return float(self.limits.burst or max(1.0, self.rate))

    @property
    def end_s(self) -> float:
        """When the simulation ends at the latest."""
        return self.clients / self.rate + _BEYOND_IDEAL_S if self.until_s is None else self.until_s

    def all_of(self, behaviour: str) -> "Scenario":
        """The same with every client of one kind."""
        return replace(self, behaviours={behaviour: 1.0})

    def counts(self) -> dict[str, int]:
        """Clients by behaviour: whole numbers, so the largest remainders are rounded up until all are told."""
        exact = {name: share * self.clients for name, share in self.behaviours.items()}
        counts = {name: int(clients) for name, clients in exact.items()}
        by_remainder = sorted(exact, key=lambda name: counts[name] - exact[name])
        for name in by_remainder[: self.clients - sum(counts.values())]:
            counts[name] += 1
        return counts
