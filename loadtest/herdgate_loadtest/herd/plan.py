"""What a herd plays: who comes, how it is cut off, for how long it is waited.

Rules: validated once; a fault names the option as it is typed. Nothing is opened here.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from herdgate_loadtest.engine import CrowdConfig
from herdgate_loadtest.engine.preflight import Limits, check_limits, read_limits
from herdgate_loadtest.engine.target import Target
from herdgate_loadtest.errors import ConfigurationError
from herdgate_loadtest.herd.gateways import check_address

__all__ = ["HowToCut", "Plan", "Share"]

HowToCut = Literal["reset", "close", "kill", "drain", "observe"]
"""Every client resets, every client closes (1001), processes are killed, a gateway is told to drain, or the server
cuts as it likes and we watch."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one process of a herd does.

    Attributes:
        config: of its crowd.
        ramp: clients a second that it brings up first; None: all at once.
        messages: that it says a second.
    """

    config: CrowdConfig
    ramp: float | None
    messages: float

    def as_order(self, at: float, deadline_s: float) -> dict[str, Any]:
        """To come up from `at` on, its clock's seconds."""
        plain = asdict(replace(self.config, clients=dict(self.config.clients)))
        return {
            "order": "up",
            "at": at,
            "config": plain,
            "ramp": self.ramp,
            "deadline_s": deadline_s,
            "messages": self.messages,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """A herd.

    Attributes:
        crowd: all of the clients, as if one process had them.
        rate: admissions per second the fleet may do, more than 0.
        burst: admissions at once, 0 or more.
        ramp: clients per second to begin with; 0: all at once.
        hold_s: seconds between the last admission and the cut.
        cut: how the herd is cut off.
        kill_pids: who is killed then, with SIGKILL; processes of the machine of Locust's master.
        gateways: admin listeners or control sockets; the first one drains, all are asked for permits in the end.
        expect: clients that a killed process, a drain, or the server, cuts off; None: at least one, and then until the
            gateway is drained, or 2 s long nobody more.
        deadline_s: seconds to come up, on top of the ramp, and to recover.
        rounds: how often it is cut off.
        messages: a second, over all sockets, each of which has to come back.
        most_skew_s: seconds between the first and the last process that cuts; more makes a round invalid.

    Raises:
        ConfigurationError: names the option.
    """

    crowd: CrowdConfig
    rate: float
    burst: float
    ramp: float
    hold_s: float = 1.0
    cut: HowToCut = "reset"
    kill_pids: tuple[int, ...] = ()
    gateways: tuple[str, ...] = ()
    expect: int | None = None
    deadline_s: float = 120.0
    rounds: int = 1
    messages: float = 0.0
    most_skew_s: float = field(default=0.1)

    def __post_init__(self) -> None:
        _check("--rate", self.rate, "admissions per second, more than 0", above_0=True)
        _check("--burst", self.burst, "admissions, 0 or more")
        _check("--ramp", self.ramp, "clients per second; 0: all at once")
        _check("--hold", self.hold_s, "seconds, 0 or more")
        _check("--deadline", self.deadline_s, "seconds, more than 0", above_0=True)
        _check("--messages", self.messages, "messages per second, 0 or more")
        if self.cut not in get_args(HowToCut):
            raise ConfigurationError("--cut", self.cut, f"write one of {', '.join(get_args(HowToCut))}")
        if self.rounds < 1:
            raise ConfigurationError("--rounds", self.rounds, "write a number, 1 or more")
        self._check_cut()

    def _check_cut(self) -> None:
        if (self.cut == "kill") != bool(self.kill_pids):
            raise ConfigurationError(
                "--kill-pid",
                ", ".join(map(str, self.kill_pids)) or "none",
                "write --cut kill, and --kill-pid for every process to kill",
            )
        if any(pid < 2 for pid in self.kill_pids):
            pids = ", ".join(map(str, self.kill_pids))
            raise ConfigurationError("--kill-pid", pids, "write ids of processes of your own")
        if self.cut in ("kill", "drain") and self.rounds > 1:
            once = "a process is killed once" if self.cut == "kill" else "who is drained takes nobody any more"
            raise ConfigurationError("--rounds", self.rounds, f"write 1: {once}")
        self._check_gateways()
        if self.expect is not None and self.is_ours:
            raise ConfigurationError("--expect", self.expect, f"leave it out: with --cut {self.cut} all are cut off")
        if self.expect is not None and not 1 <= self.expect <= self.crowd.total:
            raise ConfigurationError("--expect", self.expect, f"write a number of clients, 1 to {self.crowd.total}")

    def _check_gateways(self) -> None:
        for address in self.gateways:
            check_address(address)
        if self.cut != "drain":
            return
        if not self.gateways:
            raise ConfigurationError("--gateway", "none", "write the admin listener or control socket to tell to drain")
        if len(self.crowd.urls) > 1 and not self.crowd.failover:
            raise ConfigurationError("--failover", "no", "write --failover: who is called back goes on to the next URL")

    @property
    def is_ours(self) -> bool:
        """The clients cut themselves off."""
        return self.cut in ("reset", "close")

    @property
    def up_deadline_s(self) -> float:
        """Seconds in which all have to come up."""
        return self.deadline_s + (self.crowd.total / self.ramp if self.ramp else 0.0)

    def preflight(self, processes: int, limits: Limits | None = None) -> list[str]:
        """Can this machine carry it, in so many processes? Returns warnings.

        Raises:
            PreflightError: it cannot; one line with the numbers.
        """
        targets = [Target.of(url) for url in self.crowd.urls]
        return check_limits(
            self.crowd.total,
            limits or read_limits(),
            processes=processes,
            sources=max(1, len(self.crowd.sources)),
            listeners=len({target.address for target in targets}),
            loopback=all(target.loopback for target in targets),
        )

    def shares(self, processes: int) -> list[Share]:
        """What each of so many processes does; never more of them than clients."""
        processes = min(processes, self.crowd.total)
        shares, first = [], 0
        for index in range(processes):
            clients = _part(self.crowd.clients, index, processes)
            config = replace(self.crowd, clients=clients, first=first, seed=self.crowd.seed + index)
            part = config.total / self.crowd.total
            shares.append(Share(config, self.ramp * part or None, self.messages * part))
            first += config.total
        return shares


def _part(clients: Mapping[str, int], index: int, processes: int) -> dict[str, int]:
    """Each process has its part of each kind; what does not divide goes round."""
    part, before = {}, 0
    for name, count in clients.items():
        part[name] = sum((before + number) % processes == index for number in range(count))
        before += count
    return part


def _check(option: str, value: float, unit: str, *, above_0: bool = False) -> None:
    if not 0 <= value < math.inf or (above_0 and value == 0):
        raise ConfigurationError(option, value, f"write {unit}")
