"""How a herd is divided among processes, what cannot be played, and what this machine cannot carry."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_loadtest.engine.preflight import Limits
from herdgate_loadtest.errors import ConfigurationError, PreflightError
from tests.herdgate_loadtest.herd.stages import plan_of


@given(obey=st.integers(0, 50), jitter=st.integers(0, 50), processes=st.integers(1, 9))
def test_shares_add_up_and_no_two_clients_have_one_number(obey: int, jitter: int, processes: int) -> None:
    if not obey + jitter:
        return
    shares = plan_of(clients={"obey": obey, "jitter": jitter}).shares(processes)
    kinds: Counter[str] = Counter()
    numbers: list[int] = []
    for share in shares:
        kinds.update(share.config.clients)
        numbers += range(share.config.first, share.config.first + share.config.total)
    assert (kinds["obey"], kinds["jitter"]) == (obey, jitter)
    assert sorted(numbers) == list(range(obey + jitter))
    sizes = [share.config.total for share in shares]
    assert max(sizes) - min(sizes) <= 1


def test_ramp_and_messages_are_shared_out_by_clients() -> None:
    shares = plan_of(clients={"obey": 3}, ramp=30.0, messages=6.0).shares(2)
    assert [share.ramp for share in shares] == [20.0, 10.0]
    assert [share.messages for share in shares] == [4.0, 2.0]


def test_without_a_ramp_all_come_at_once() -> None:
    assert [share.ramp for share in plan_of(ramp=0.0).shares(2)] == [None, None]


def test_each_process_draws_its_own_random_numbers() -> None:
    assert len({share.config.seed for share in plan_of().shares(3)}) == 3


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"rate": 0.0}, "--rate: got 0.0; write admissions per second, more than 0"),
        ({"rate": float("nan")}, "--rate: got nan"),
        ({"burst": -1.0}, "--burst: got -1.0"),
        ({"ramp": float("inf")}, "--ramp: got inf"),
        ({"hold_s": -1.0}, "--hold: got -1.0"),
        ({"deadline_s": 0.0}, "--deadline: got 0.0"),
        ({"messages": -1.0}, "--messages: got -1.0"),
        ({"rounds": 0}, "--rounds: got 0; write a number, 1 or more"),
        ({"cut": "loose"}, "--cut: got loose; write one of reset, close, kill, drain, observe"),
        ({"cut": "drain"}, "--gateway: got none; write the admin listener or control socket to tell to drain"),
        ({"cut": "drain", "gateways": ("/c",), "rounds": 2}, "--rounds: got 2; write 1: who is drained takes nobody"),
        ({"gateways": ("ftp://h:1",)}, "--gateway: got ftp://h:1; write http://HOST:PORT, an admin listener"),
        ({"gateways": ("http://h:1/x",)}, "--gateway: got http://h:1/x; write http://HOST:PORT"),
        ({"gateways": ("http://h:x",)}, "--gateway: got http://h:x; write http://HOST:PORT"),
        ({"cut": "kill"}, "--kill-pid: got none; write --cut kill, and --kill-pid"),
        ({"kill_pids": (5,)}, "--kill-pid: got 5; write --cut kill"),
        ({"cut": "kill", "kill_pids": (1,)}, "--kill-pid: got 1; write ids of processes of your own"),
        ({"cut": "kill", "kill_pids": (5,), "rounds": 2}, "--rounds: got 2; write 1: a process is killed once"),
        ({"expect": 1}, "--expect: got 1; leave it out: with --cut reset all are cut off"),
        ({"cut": "observe", "expect": 5}, "--expect: got 5; write a number of clients, 1 to 4"),
    ],
)
def test_what_cannot_be_played_is_one_line(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        plan_of(**settings)
    assert str(raised.value).startswith(complaint)


def test_descriptors_are_those_of_all_processes_and_ports_those_of_one_address() -> None:
    plan = plan_of(clients={"obey": 40_000})
    limits = Limits(descriptors=1_024, most_descriptors=20_000, ports=28_232)
    with pytest.raises(PreflightError) as raised:
        plan.preflight(2, limits)
    assert "40,000 ports, one source address has 28,232" in str(raised.value)
    with pytest.raises(PreflightError) as raised:
        plan_of(clients={"obey": 28_000}).preflight(1, limits)
    assert "descriptors" in str(raised.value)
    assert plan_of(clients={"obey": 28_000}).preflight(2, limits) == []
