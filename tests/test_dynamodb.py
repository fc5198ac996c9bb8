"""The emulator behind the tests of leases: it is what it has to be, and would be found out if it were not."""

import re
import threading
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.dynamodb import RACERS, ROUNDS, CheatError, DynamoServer, check_by_a_race, dynamodb, dynamodb_server
from tests.servers import ROOT

__all__ = ["dynamodb"]


class Table:
    """A conditional write that is won by the first who try, in each round: by one, unless told otherwise."""

    def __init__(self, **winners: int) -> None:
        self.winners = winners
        self.tried: Counter[int] = Counter()
        self.lock = threading.Lock()

    def attempt(self, number: int) -> bool:
        with self.lock:
            self.tried[number] += 1
            return self.tried[number] <= self.winners.get(f"round_{number}", 1)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (Table(round_7=2), rf"in 1 rounds of {ROUNDS} it was \[2\]"),
        (Table(round_0=2, round_19=50), rf"in 2 rounds of {ROUNDS} it was \[2, 50\]"),
        (Table(round_3=0), rf"in 1 rounds of {ROUNDS} it was \[0\]"),
    ],
    ids=["two winners", "two and more winners", "no winner"],
)
def test_table_that_cheats_is_found_out(table: Table, told: str) -> None:
    with pytest.raises(CheatError, match=told):
        check_by_a_race(lambda: nullcontext(table.attempt))


def test_table_that_does_not_cheat_passes() -> None:
    table = Table()
    check_by_a_race(lambda: nullcontext(table.attempt))
    assert set(table.tried.values()) == {RACERS}
    assert len(table.tried) == ROUNDS


def test_emulator_has_run_the_race_and_listens_on_loopback_only(dynamodb: DynamoServer) -> None:
    _, reply = dynamodb.ask("GetItem", TableName="race", Key={"pk": {"S": "one"}, "sk": {"S": "@"}})
    assert reply["Item"]["epoch"] == {"N": str(ROUNDS)}
    listening = f":{dynamodb.port:04X} 00000000:0000 0A"
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    lines = [line for table in tables if table.exists() for line in table.read_text().splitlines() if listening in line]
    assert all(f"0100007F{listening}" in line for line in lines), lines


@pytest.mark.parametrize(("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)])
def test_missing_emulator_skips_a_test_and_fails_it_in_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setattr("tests.ministack.PROGRAM", ROOT / "none" / "ministack")
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="needs ministack: run scripts/setup"), dynamodb_server():
        pass


def test_pins_of_the_emulator_hold_names_and_versions_only() -> None:
    pins = (ROOT / "constraints-emulator.txt").read_text().splitlines()
    assert [line for line in pins if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", line)] == []
    assert any(line.startswith("ministack==") for line in pins)
