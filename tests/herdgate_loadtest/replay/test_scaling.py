"""From events to steps: who was there, who returns, who is new; time and population scaled."""

from typing import Any

import pytest

from herdgate_loadtest.engine.play import Step
from herdgate_loadtest.errors import ConfigurationError
from herdgate_loadtest.replay.scaling import Script, script_of
from herdgate_loadtest.replay.trace import Event, Trace


def opens(t: float, socket: str, client: str = "a") -> Event:
    return Event(t, True, socket, client)


def closes(t: float, socket: str, client: str = "a", *, how: str = "reset", returns: bool | None = True) -> Event:
    return Event(t, False, socket, client, how, returns)


def script(*events: Event, **scale: Any) -> Script:
    return script_of(Trace(events), **scale)


def test_socket_that_ends_without_an_opening_was_there_before() -> None:
    made = script(closes(1, "s"))
    assert made == Script(1, frozenset({0}), (Step(1, 0, "reset"),))


def test_return_is_not_played() -> None:
    made = script(closes(1, "s"), opens(2, "t"), closes(3, "t", how="close"))
    assert made.clients == 1
    assert made.steps == (Step(1, 0, "reset"), Step(3, 0, "close"))


def test_somebody_new_comes_at_its_moment() -> None:
    made = script(opens(2, "s"), closes(3, "s"))
    assert made == Script(1, frozenset(), (Step(2, 0, "come"), Step(3, 0, "reset")))


def test_client_with_two_sockets_has_two_places() -> None:
    made = script(closes(1, "s"), closes(1, "t"), opens(2, "u"), opens(2, "v"), opens(2, "w"))
    assert (made.clients, made.present) == (3, frozenset({0, 1}))
    assert made.steps[-1] == Step(2, 2, "come")


def test_others_do_not_fill_a_client_s_place() -> None:
    made = script(closes(1, "s", "a"), opens(2, "t", "b"))
    assert made.clients == 2


def test_client_that_does_not_return_leaves() -> None:
    made = script(closes(1, "s", how="close", returns=False), opens(2, "t"))
    assert made.clients == 2
    assert made.steps == (Step(1, 0, "leave"), Step(2, 1, "come"))


def test_where_nothing_is_said_it_returns_if_it_is_heard_of_within_five_minutes() -> None:
    assert script(closes(1, "s", returns=None), opens(301, "t")).clients == 1
    late = script(closes(1, "s", returns=None), opens(302, "t"))
    assert [step.act for step in late.steps] == ["leave", "come"]
    never = script(closes(1, "s", returns=None))
    assert [step.act for step in never.steps] == ["leave"]


def test_where_nothing_is_said_a_refusal_shows_that_it_means_to_return() -> None:
    events = (closes(1, "s", returns=None),)
    assert [step.act for step in script_of(Trace(events, ((2.0, "a"),))).steps] == ["reset"]
    assert [step.act for step in script_of(Trace(events, ((2.0, "b"),))).steps] == ["leave"]
    assert [step.act for step in script_of(Trace(events, ((0.5, "a"),))).steps] == ["leave"]


def test_time_is_scaled() -> None:
    assert [step.at_s for step in script(closes(10, "s"), closes(20, "t"), speed=4.0).steps] == [2.5, 5]


def test_what_was_before_the_entry_is_over() -> None:
    events = (
        closes(1, "left", "a", returns=False),
        closes(2, "cut", "b"),
        opens(3, "new", "c"),
        closes(9, "new", "c"),
        opens(9.5, "later", "d"),
    )
    made = script(*events, enter_s=5.0)
    assert made == Script(3, frozenset({0, 1}), (Step(4, 1, "reset"), Step(4.5, 2, "come")))


def test_population_is_scaled_by_whole_places() -> None:
    events = [closes(float(number), str(number), str(number)) for number in range(1000)]
    for factor in (0.25, 1.5, 3.0):
        made = script(*events, population=factor)
        assert made.clients == pytest.approx(1000 * factor, rel=0.1)
        assert len(made.steps) == made.clients
        assert made == script(*events, population=factor), "the seed decides"
    assert script(*events, population=0.25) != script(*events, population=0.25, seed=2)


def test_first_cut_is_that_of_a_client_that_returns() -> None:
    made = script(closes(1, "s", returns=False), opens(2, "t"), closes(3, "u"))
    assert made.first_cut_s == 3
    assert script(opens(2, "t")).first_cut_s is None


@pytest.mark.parametrize(
    ("scale", "complaint"),
    [
        ({"speed": 0.0}, "--speed: got 0.0; write a factor, more than 0"),
        ({"speed": float("nan")}, "--speed: got nan"),
        ({"population": -1.0}, "--population: got -1.0"),
        ({"enter_s": 2.0}, "--from: got 2.0; write seconds of the trace, 0 to 1"),
    ],
)
def test_scale_that_cannot_be_is_one_line(scale: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        script(closes(1, "s"), **scale)
    assert str(raised.value).startswith(complaint)
