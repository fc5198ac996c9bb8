"""The line of a visitor that has a socket and nothing else: enough to be refused on. All else gets it a transport."""

from collections.abc import Callable
from typing import Protocol

from herdgate.core.permits import Permit
from herdgate_gateway.front_door.bare_socket import BareSocket
from herdgate_gateway.front_door.protocol import FrontDoor, has_hung_up
from herdgate_gateway.front_door.visitor import Visitor

__all__ = ["BareLine"]


class Owner(Protocol):
    """Whose listener accepted the socket."""

    def move(self, accepted: BareSocket, go_on: Callable[[FrontDoor], None], give_up: Callable[[], None]) -> None:
        """Give a connection a transport, and go on there; or give up, if its client has gone."""
        ...

    def refuse(self, accepted: BareSocket, data: bytes, *, lingers: bool) -> None:
        """Send the last bytes of a connection."""
        ...


class BareLine:
    """See `herdgate_gateway.front_door.visitor.Line`.

    Args:
        owner: whose listener accepted the socket.
        accepted: the socket.
        head: what was read from it.
        early: what came behind the head.

    Attributes:
        visitor: who waits here for a verdict.
    """

    __slots__ = ("_accepted", "_early", "_head", "_owner", "visitor")

    def __init__(self, owner: Owner, accepted: BareSocket, head: bytes, early: bytes) -> None:
        self._owner, self._accepted, self._head, self._early = owner, accepted, head, early
        self.visitor: Visitor | None = None

    def has_left(self) -> bool:
        """True if the client has hung up."""
        return has_hung_up(self._accepted)

    def answer(self, data: bytes, *, lingers: bool) -> None:
        """Send the last bytes."""
        self.visitor = None
        self._owner.refuse(self._accepted, data, lingers=lingers or bool(self._early))

    def admit(self, permit: Permit) -> None:
        """Take the visitor in, on a line that lasts."""
        visitor = self.visitor
        assert visitor is not None

        def give_up() -> None:
            permit.release()
            visitor.done()

        self._move(lambda door: door.admit(permit), give_up)

    def hold(self, seconds: float) -> None:
        """Wait for a firm slot, on a line that notices who leaves."""
        assert self.visitor is not None
        self._move(lambda door: door.hold(seconds), self.visitor.leave)

    def drop(self) -> None:
        """The client has left."""
        self._accepted.close()

    def _move(self, then: Callable[[FrontDoor], None], give_up: Callable[[], None]) -> None:
        visitor, head, early = self.visitor, self._head, self._early
        assert visitor is not None

        def go_on(door: FrontDoor) -> None:
            door.take_over(visitor, head, early)
            then(door)

        self._owner.move(self._accepted, go_on, give_up)
