"""Options as texts, what they make, and the one line about each that is wrong."""

import pytest

from herdgate_loadtest.engine import Record, compute_record
from herdgate_loadtest.engine.record import Outcome
from herdgate_loadtest.errors import LoadtestError
from herdgate_loadtest.herd.bounds import BOUNDS, missed
from herdgate_loadtest.herd.options import wanted

URL = ("ws://127.0.0.1:9/",)


def test_defaults_make_a_plan() -> None:
    asked = wanted(URL, {})
    assert asked.plan.crowd.clients == {"obey": 1000}
    assert (asked.plan.rate, asked.plan.burst, asked.plan.ramp) == (500, 500, 500)
    assert (asked.plan.rounds, asked.plan.cut, asked.most) == (1, "reset", {})


def test_everything_may_be_said_as_text() -> None:
    given = {
        "clients": "obey=8,fixed:15=2",
        "rate": "50",
        "burst": "5",
        "ramp": "0",
        "cut": "kill",
        "kill-pid": "12, 13",
        "gateway": "http://127.0.0.1:9901  /run/control",
        "token": "letmein",
        "expect": "4",
        "header": "X-User: {n}\nX-Other: b",
        "failover": "yes",
        "sources": "2",
        "most": "recovery_ratio=1.15,failed=0",
    }
    asked = wanted(URL, given)
    crowd = asked.plan.crowd
    assert crowd.clients == {"obey": 8, "fixed:15": 2}
    assert crowd.headers == (("X-User", "{n}"), ("X-Other", "b"))
    assert crowd.sources == ("127.0.0.2", "127.0.0.3")
    assert crowd.failover
    assert (asked.plan.kill_pids, asked.plan.expect, asked.plan.ramp) == ((12, 13), 4, 0)
    assert asked.plan.gateways == ("http://127.0.0.1:9901", "/run/control")
    assert asked.token == "letmein"
    assert "letmein" not in repr(asked)
    assert asked.most == {"recovery_ratio": 1.15, "failed": 0}


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("clients", "many", "--clients: got many; write a number, or pairs"),
        ("clients", "polite=1", "--clients: got polite; write one of obey"),
        ("rate", "fast", "--rate: got fast; write a number"),
        ("rounds", "1.5", "--rounds: got 1.5; write a whole number"),
        ("kill-pid", "me", "--kill-pid: got me; write a whole number"),
        ("header", "novalue", "--header: got novalue; write 'Name: value'"),
        ("sources", "here", "--sources: got here; write IP addresses"),
        ("failover", "perhaps", "--failover: got perhaps; write yes or no"),
        ("spread", "-1", "--spread: got -1.0; write seconds"),
        ("timeout", "0", "--timeout: got 0.0; write seconds"),
        ("most", "speed=1", "--most: got speed=1; write NAME=NUMBER, with a name of recovery_ratio"),
        ("token", "a\nb", "--token: got something else; write ASCII letters"),
        ("most", "failed=few", "--most: got few; write a number"),
    ],
)
def test_option_that_cannot_be_right_is_one_line(name: str, text: str, complaint: str) -> None:
    with pytest.raises(LoadtestError) as raised:
        wanted(URL, {name: text})
    assert str(raised.value).startswith(complaint)
    assert "\n" not in str(raised.value)


def test_with_several_urls_a_drain_needs_clients_that_go_on() -> None:
    given = {"cut": "drain", "gateway": "/run/control"}
    with pytest.raises(LoadtestError, match="--failover: got no; write --failover: who is called back goes on"):
        wanted(URL * 2, given)
    assert wanted(URL * 2, given | {"failover": "yes"}).plan.crowd.moves_on
    assert wanted(URL, given).plan.crowd.moves_on


def record_of(*backs_s: float | None) -> Record:
    outcomes = [Outcome("obey", 1, back_s, back_s) for back_s in backs_s]
    return compute_record(outcomes, rate=1.0, burst=1.0, denied=0, failed=3, denials_s=[], admissions_s=[])


def test_every_bound_is_a_field_of_the_record() -> None:
    assert all(hasattr(record_of(1.0), name) for name in BOUNDS)


def test_bounds_are_kept_up_to_their_value() -> None:
    assert missed([record_of(1.0, 2.0)], {"t100_s": 2.0, "failed": 3, "recovery_ratio": 2.0}) == []


def test_each_missed_bound_is_a_line_with_its_round() -> None:
    lines = missed([record_of(1.0, 2.0), record_of(1.0, 3.0)], {"t100_s": 2.5, "failed": 2})
    assert lines == [
        "round 1: failed was 3, may be 2 at most",
        "round 2: t100_s was 3, may be 2.5 at most",
        "round 2: failed was 3, may be 2 at most",
    ]


def test_figure_that_is_infinite_or_absent_is_out_of_its_bound() -> None:
    never = missed([record_of(1.0, None)], {"t100_s": 1e9, "denial_p99_ms": 1e9})
    assert never == [
        "round 1: t100_s was inf, may be 1e+09 at most",
        "round 1: denial_p99_ms was null, may be 1e+09 at most",
    ]
