"""What a worker knows of its load."""

from hypothesis import given
from hypothesis import strategies as st

from herdgate.load import Load, LoadFigures, Socket


def test_a_socket_is_pending_then_open_then_gone() -> None:
    load = Load()
    socket = load.arrive("g", 0.0)
    assert load.figures(0.0)[:2] == (0, 1)
    socket.accepted(0.5)
    socket.accepted(0.6)
    assert load.figures(0.6) == LoadFigures(1, 0, 0.5, {"g": 1})
    socket.gone()
    socket.gone()
    assert load.figures(0.6) == LoadFigures(0, 0, 0.5, {})


def test_one_that_goes_before_it_was_accepted_is_no_set_up() -> None:
    load = Load()
    load.arrive("", 0.0).gone()
    assert load.figures(5.0) == LoadFigures(0, 0, 0.0, {})


def test_the_p95_is_of_the_last_ten_seconds() -> None:
    load = Load()
    for number in range(1, 101):
        load.arrive("", 0.0).accepted(number / 100)
    assert load.figures(1.0).setup_p95_s == 0.95
    assert load.figures(10.95).setup_p95_s == 1.0
    assert load.figures(11.1).setup_p95_s == 0.0


def test_set_ups_that_do_not_end_count_by_how_long_they_have_taken() -> None:
    load = Load()
    load.arrive("", 0.0).accepted(0.1)
    load.arrive("", 0.0)
    assert load.figures(8.0).setup_p95_s == 8.0


def test_memory_does_not_grow_with_the_crowd() -> None:
    load = Load()
    for number in range(5_000):
        socket = load.arrive(str(number), 0.0)
        socket.accepted(0.1)
        socket.gone()
    assert len(load.times) == 1_000
    assert not load.gateways


def test_no_more_than_sixty_four_gateways_are_named() -> None:
    load = Load()
    for number in range(100):
        load.arrive(str(number), 0.0)
    named = load.figures(0.0).gateways
    assert (len(named), named[""]) == (65, 36)


@given(st.lists(st.tuples(st.sampled_from(["arrive", "accepted", "gone"]), st.integers(0, 9))))
def test_counts_come_back_to_nothing(steps: list[tuple[str, int]]) -> None:
    load, sockets = Load(), list[Socket]()
    for what, which in steps:
        if what == "arrive":
            sockets.append(load.arrive(str(which % 3), 0.0))
        elif sockets and what == "accepted":
            sockets[which % len(sockets)].accepted(1.0)
        elif sockets:
            sockets[which % len(sockets)].gone()
        figures = load.figures(1.0)
        assert sum(figures.gateways.values()) == figures.open + figures.pending == load.sockets
    for socket in sockets:
        socket.gone()
    assert load.figures(1.0)[:2] == (0, 0)
