"""The one model that deployments of any platform are read into: all that the rules look at."""

from dataclasses import dataclass, field
from typing import Literal

from herdgate_gateway.settings import Settings

__all__ = ["Balancer", "Budget", "Copies", "Deployed", "PreStop", "Probe", "Role", "Scaler", "Workload"]

Role = Literal["gateway", "worker"]


@dataclass(frozen=True, slots=True)
class PreStop:
    """What runs before SIGTERM.

    Attributes:
        drains: it is `herdgate drain --wait`.
        seconds: that it takes, at most; None: as long as the settings say (`call_s`), or not known.
        beside_s: that it sleeps before or after it drains.
    """

    drains: bool = False
    seconds: float | None = None
    beside_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Probe:
    """A question of the platform over HTTP or TCP, to a port of the workload.

    Attributes:
        path: empty for TCP.
    """

    port: int
    path: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """A disruption budget: how many copies may be away at once."""

    away: int


@dataclass(frozen=True, slots=True)
class Scaler:
    """An autoscaler.

    Attributes:
        at_once: copies that it may take away at once.
        by_use: it goes by CPU or memory alone.
    """

    at_once: int
    by_use: bool


@dataclass(frozen=True, slots=True)
class Copies:
    """How many there are, and how they are replaced by others.

    Attributes:
        least, most: of them, as an autoscaler or a person has set it.
        away: of `least`, that may be missing during a rollout.
        at_once: of `most`, that may be told to end together in a rollout.
        apart_s: seconds between one such lot and the next, at least.
    """

    least: int
    most: int
    away: int
    at_once: int
    apart_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Gateways or workers, as they are deployed.

    Attributes:
        where: file or folder, and the object.
        words: of its command, the first one PID 1; empty: the image has it.
        grace_s: seconds from the platform's word to SIGKILL; None: only the platform knows.
        grace: what the platform calls it.
        most_grace_s: more than that it does not take.
        is_pod: of Kubernetes, where PreStop runs within the grace.
        copies: None: as many as there are nodes, or only the platform knows.
        settings: of a gateway; None: they cannot be seen.
        unseen: where more of them are, that cannot be seen.
        stop_s: of a worker, longest time of its good end.
    """

    where: str
    role: Role
    words: tuple[str, ...] = ()
    grace_s: float | None = None
    grace: str = ""
    most_grace_s: float | None = None
    is_pod: bool = False
    prestop: PreStop | None = None
    readiness: Probe | None = None
    liveness: Probe | None = None
    has_readiness: bool = False
    copies: Copies | None = None
    budget: Budget | None = None
    scaler: Scaler | None = None
    settings: Settings | None = None
    unseen: tuple[str, ...] = ()
    stop_s: float | None = None


@dataclass(frozen=True, slots=True)
class Balancer:
    """What stands before gateways.

    Attributes:
        deregistration_s: seconds that a target which leaves keeps its sockets, then they are cut.
        idle_s: seconds without a byte after which it cuts a socket.
    """

    where: str
    deregistration_s: float | None = None
    idle_s: float | None = None


@dataclass(frozen=True, slots=True)
class Deployed:
    """All that was found.

    Attributes:
        ping_s: seconds between pings of the servers behind, where one says.
        faults: lines about what cannot be read.
    """

    workloads: tuple[Workload, ...] = ()
    balancers: tuple[Balancer, ...] = ()
    ping_s: float | None = None
    faults: tuple[str, ...] = field(default=())

    def __add__(self, other: "Deployed") -> "Deployed":
        pings = [each for each in (self.ping_s, other.ping_s) if each is not None]
        return Deployed(
            self.workloads + other.workloads,
            self.balancers + other.balancers,
            max(pings, default=None),
            self.faults + other.faults,
        )
