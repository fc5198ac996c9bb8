"""What a worker says of itself when it starts."""

import pytest

from herdgate_gateway.leases.worker_process import Joining
from herdgate_gateway.worker_kit.process import Job, _first_line
from herdgate_gateway.worker_kit.triggers import Triggers


@pytest.mark.parametrize(("capacity", "told"), [(4_000, "room for 4000"), (0, "takes no clients, as --capacity is 0")])
def test_first_line_says_for_how_many_there_is_room(capacity: int, told: str) -> None:
    joining = Joining("herd", "us-east-1", None, "default", "w", "ws://127.0.0.1:1", capacity, None, 3.0, 0)
    assert _first_line(Job(joining, "a:b", None, [], 30.0, Triggers(None, False, 120.0))).startswith(
        f"worker w: a:b at ws://127.0.0.1:1; {told}; fleet default; "
    )
