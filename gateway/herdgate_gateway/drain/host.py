"""What a drain does to the gateway of this process."""

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Protocol

from herdgate_gateway.drain.sockets import Cuts, OpenSockets
from herdgate_gateway.drain.turns import FleetTurns, OwnTurns, Turns
from herdgate_gateway.front_door.protocol import FrontDoor

if TYPE_CHECKING:
    from herdgate_gateway.app import Gateway
    from herdgate_gateway.settings import Settings

__all__ = ["GatewayHost", "turns_of"]


class Server(Protocol):
    """What serves the gateway."""

    started: bool

    @property
    def connections(self) -> Collection[object]:
        """Those that are no relayed socket yet, or are one of messages."""
        ...

    def end(self, within_s: float) -> None:
        """Stop serving; what is open may take so long."""
        ...


class GatewayHost:
    """See `coordinator.Host`."""

    def __init__(self, gateway: "Gateway", server: Server) -> None:
        self._gateway, self._server = gateway, server
        self.sockets: OpenSockets = gateway.sockets
        self.cuts: Cuts = gateway.register.cuts
        self.end: Callable[[float], None] = server.end

    @property
    def is_serving(self) -> bool:
        """True once it accepts connections."""
        return self._server.started

    def rate(self) -> float | None:
        """Admissions per second; None: no limit."""
        return next(iter(self._gateway.gates.values())).snapshot().rate

    def under_way(self) -> int:
        """Handshakes that are let in, or held, and not over."""
        counts = [gate.snapshot() for gate in self._gateway.gates.values()]
        return sum(count.pending + count.held for count in counts)

    def refuse(self) -> None:
        """Let nobody in from now on; who is held hears of it."""
        self._gateway.drain()
        for door in self._doors():
            door.hurry()

    def turn_away(self) -> None:
        """Give handshakes that wait for a worker a word."""
        self._gateway.register.is_closing.set()
        for door in self._doors():
            door.turn_away()

    def _doors(self) -> Iterable[FrontDoor]:
        return [door for door in self._server.connections if isinstance(door, FrontDoor)]


def turns_of(gateway: "Gateway", settings: "Settings", group: str | None) -> Turns:
    """When this process may drain beside others.

    Args:
        group: the same in all processes of one gateway. None: it has one.
    """
    fleet = settings.fleet.fleet()
    if fleet is None:
        return OwnTurns(settings.processes)
    from herdgate.stores.redis.drains import FleetDrains

    gate = next(iter(gateway.gates.values()))
    process = gate.member or ""
    drains = FleetDrains(fleet, process, group or process, settings.processes)
    return FleetTurns(drains, settings.drain.max_draining, lambda: gate.snapshot().fleet)
