"""What is open, oldest first; and who was cut off of late."""

from dataclasses import dataclass

from herdgate_gateway.drain.sockets import Cuts, OpenSockets
from herdgate_gateway.drain.status import DrainStatus, sum_of


@dataclass(frozen=True)
class Still:
    """A socket that only has an age."""

    age_s: float
    is_leaving: bool = False
    invite: None = None

    def close(self, code: int, reason: str, message: str | None = None) -> None:
        raise AssertionError("nobody closes it")


def test_sockets_of_both_relays_come_by_age() -> None:
    spliced, bridged = [Still(9), Still(5), Still(1)], [Still(7), Still(5.5)]
    sockets = OpenSockets(lambda: spliced, lambda: bridged)
    assert [socket.age_s for socket in sockets] == [9, 7, 5.5, 5, 1]
    assert len(sockets) == 5
    spliced.clear()
    assert [socket.age_s for socket in sockets] == [7, 5.5]


def test_cuts_are_forgotten_after_half_a_minute() -> None:
    cuts = Cuts()
    for moment in (0.0, 0.2, 10.0, 10.9):
        cuts.note(moment)
    assert [cuts.recent(now) for now in (11.0, 30.0, 30.5, 41.0)] == [4, 4, 2, 0]


def test_processes_are_as_far_as_the_last_of_them() -> None:
    one = DrainStatus("drained", "call", 5.0, 0.0, 0)
    other = DrainStatus("draining", "call", 4.0, 20.0, 7)
    assert sum_of([one, other]) == DrainStatus("draining", "call", 5.0, 20.0, 7)
    assert sum_of([]) is None
