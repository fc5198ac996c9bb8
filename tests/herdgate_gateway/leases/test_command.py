"""`herdgate leases`, as a person types it, against a real table."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import pytest
from typer.testing import CliRunner

from herdgate import HerdgateError
from herdgate_gateway.leases.acts import beat, register, set_state, take
from herdgate_gateway.leases.command import leases
from herdgate_gateway.leases.dynamo import DynamoLeases, Place
from herdgate_gateway.leases.rows import WorkerRow, worker_key
from herdgate_gateway.leases.table import Done, LeaseTable
from tests.dynamodb import DynamoServer

T = TypeVar("T")

FIRST = WorkerRow("w1", "i1", None, "UP", 0, 3_000, "host:1", 4_000, 17)
SECOND = WorkerRow("w2", "i2", None, "UP", 0, 3_000, "host:2", 4_000, 0)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HERDGATE_")]:
        monkeypatch.delenv(name)


def herdgate(place: Place | None, *arguments: object, typed: str | None = None, code: int = 0) -> str:
    """What the command prints.

    Raises:
        HerdgateError: as it does for `herdgate.cli`, which prints it as one line and exits with 2.
    """
    where = () if place is None else ("--table", place.table, "--endpoint-url", str(place.endpoint_url))
    words = [str(argument) for argument in (*arguments, *where)]
    result = CliRunner().invoke(leases, words, input=typed, catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def refused(place: Place | None, *arguments: object) -> str:
    with pytest.raises(HerdgateError) as raised:
        herdgate(place, *arguments)
    text = str(raised.value)
    assert text.isprintable()
    return text


def within(place: Place, work: Callable[[LeaseTable], Awaitable[T]]) -> T:
    async def run() -> T:
        table = DynamoLeases(place, call_s=20)
        try:
            return await work(table)
        finally:
            await table.aclose()

    return asyncio.run(run())


@pytest.fixture
def filled(place: Place) -> Place:
    """Two workers of fleet `default`, the second owner of shard 3; shard 4 of a dead one; a worker of `other`."""

    async def fill(table: LeaseTable) -> None:
        writes = [register("default", row, None) for row in (FIRST, SECOND)]
        writes += [beat("default", "w2", "i2", 5), set_state("default", "w1", "i1", "DRAINING")]
        writes += [take("default", SECOND, 3, None), take("default", replace(FIRST, inc="i0"), 4, None)]
        writes.append(register("other", replace(FIRST, inc="i9"), None))
        for write in writes:
            assert isinstance(await table.write(write), Done)

    within(place, fill)
    return place


def test_table_is_made_once(dynamodb: DynamoServer, place: Place) -> None:
    new = replace(place, table=f"new-{uuid4()}")
    assert herdgate(new, "init") == f"table {new.table} at {new.endpoint_url}: made, and ready\n"
    assert herdgate(new, "init") == f"table {new.table} at {new.endpoint_url}: is there, and ready\n"
    assert herdgate(new, "list") == "no workers\n"


def test_workers_of_a_fleet_are_listed(filled: Place) -> None:
    lines = [line.split() for line in herdgate(filled, "list").splitlines()]
    assert lines[1:] == [
        ["w1", "DRAINING", "i1", "0", "host:1", "4,000", "17"],
        ["w2", "UP", "i2", "1", "host:2", "4,000", "5"],
    ]
    (row,) = json.loads(herdgate(filled, "list", "--json", "--fleet", "other"))
    assert row["worker"] == "w1"
    assert row["inc"] == "i9"
    assert row["hb"] == 0


def test_owners_and_orphans_are_listed(filled: Place) -> None:
    lines = [line.split() for line in herdgate(filled, "owners").splitlines()]
    assert lines[1:] == [["w1", "0"], ["w2", "1", "3"], ["(dead)", "1", "4"], ["(never", "owned)", "1022"]]
    found = json.loads(herdgate(filled, "owners", "--json"))
    assert found["owners"] == {"w1": [], "w2": [3]}
    assert [(row["shard"], row["owner"], row["inc"], row["epoch"]) for row in found["orphans"]] == [(4, "w1", "i0", 1)]
    assert found["unowned"] == 1_022


def state(place: Place, worker: str) -> str:
    item = within(place, lambda table: table.read(worker_key("default", worker), strong=True))
    assert item is not None
    return str(item["st"])


def test_fence_asks_first_and_says_what_it_means(filled: Place) -> None:
    told = herdgate(filled, "fence", "w2", typed="n\n", code=1)
    assert "others take its shards at once" in told
    assert "for up to 3 s" in told
    assert state(filled, "w2") == "UP"
    assert herdgate(filled, "fence", "w2", typed="y\n").endswith("w2 is dead (inc i2)\n")
    assert state(filled, "w2") == "DEAD"
    assert "w2" not in json.loads(herdgate(filled, "owners", "--json"))["owners"]


def test_fence_does_not_ask_with_yes_and_repeats_harmlessly(filled: Place) -> None:
    assert herdgate(filled, "fence", "w1", "--yes") == "w1 is dead (inc i1)\n"
    assert herdgate(filled, "fence", "w1", "--yes") == "w1 is dead already (inc i1)\n"
    assert state(filled, "w2") == "UP"


def test_fence_of_a_life_that_was_replaced_meanwhile_does_nothing(
    filled: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def replace_it(table: LeaseTable) -> None:
        await table.write(set_state("default", "w2", "i2", "DEAD"))
        assert isinstance(await table.write(register("default", replace(SECOND, inc="i3"), SECOND)), Done)

    def answer(*_: object, **__: object) -> bool:
        within(filled, replace_it)
        return True

    monkeypatch.setattr("typer.confirm", answer)
    assert "another life of w2 has begun meanwhile; nothing was done" in refused(filled, "fence", "w2")
    assert state(filled, "w2") == "UP"


def test_fence_of_nobody_names_the_list(filled: Place) -> None:
    told = refused(filled, "fence", "w3", "--yes")
    assert told.endswith("no worker w3 in fleet default; `herdgate leases list` shows who is there")


@pytest.mark.parametrize(
    "arguments", [("list",), ("hold", "w1"), ("owners",), ("fence", "w1", "--yes")], ids=lambda words: words[0]
)
def test_missing_table_names_init(place: Place, arguments: tuple[str, ...]) -> None:
    told = refused(replace(place, table="none-such"), *arguments, "--region", "eu-west-1")
    assert told == (
        f"table none-such in eu-west-1 at {place.endpoint_url}: there is no such table (or is it in another region?); "
        f"create it: herdgate leases init --table none-such --region eu-west-1 --endpoint-url {place.endpoint_url}"
    )


@pytest.mark.parametrize("name", ["", "a b", "a#b", "x\ny"])
def test_worker_of_an_odd_name_is_refused(place: Place, name: str) -> None:
    assert refused(place, "hold", name).endswith("write 1 to 64 letters, digits, ., - and _")


def test_bad_input_is_told(place: Place) -> None:
    assert refused(None, "list", "--table", "a b").startswith("--table: got a b; write 3 to 255")
    assert refused(None, "list", "--table", "herd", "--endpoint-url", "here").startswith(
        "--endpoint-url: got here; write"
    )
    assert refused(place, "list", "--fleet", "a#b").startswith("--fleet: got a#b; write 1 to 64")
    for words in (("init",), ("list",), ("owners",), ("fence", "w1"), ("hold", "w1")):
        assert refused(place, *words, "--region", "a b") == "--region: got a b; write its name, as in eu-west-1"


def test_environment_says_where_the_table_is(filled: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERDGATE_LEASES__TABLE", filled.table)
    monkeypatch.setenv("HERDGATE_LEASES__ENDPOINT_URL", str(filled.endpoint_url))
    monkeypatch.setenv("HERDGATE_LEASES__REGION", "us-east-1")
    monkeypatch.setenv("HERDGATE_FLEET__NAME", "other")
    assert [row["inc"] for row in json.loads(herdgate(None, "list", "--json"))] == ["i9"]


def test_plan_of_ten_thousand_connections() -> None:
    lines = [line.split("  ") for line in herdgate(None, "plan", 10_000).splitlines()]
    assert lines[0] == ["10,000 connections, 3 workers"]
    figures = {cells[0]: [cell.strip() for cell in cells[1:] if cell.strip()] for cells in lines[3:6]}
    assert figures == {
        "leases of workers": ["3", "46", "20"],
        "the same, with checkpoints": ["1,003", "46", "1,663"],
        "a lease per connection": ["4,500", "0", "7,391"],
    }
    assert lines[-1] == ["a lease per connection: one partition of its index is full at 3,333 connections"]


def test_plan_takes_other_prices_and_paces() -> None:
    options = ("--write-price", "1", "--read-price", "0", "--checkpoints-per-s", "1", "--per-worker", "1000")
    answer = json.loads(herdgate(None, "plan", 1_000, *options, "--lease-s", "60", "--json"))
    assert answer["leases of workers"]["usd_per_month"] == pytest.approx(2.628)
    assert answer["the same, with checkpoints"]["writes_per_s"] == 1_001
    assert answer["a lease per connection"]["writes_per_s"] == 150
    assert "is full" not in herdgate(None, "plan", 1_000)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["list"], "missing option '--table'"),
        (["list", "--table", "none-such"], "no AWS credentials"),
        (["plan", "0"], "connections: got 0;"),
        (["hold", "w", "--table", "t", "--generation", "8192"], "--generation: got 8192;"),
        (["plan", "10", "--lease-s", "inf"], "--lease-s: got inf;"),
    ],
    ids=str,
)
def test_error_is_one_line_and_exit_code_2(arguments: list[str], told: str, tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REGION": "us-east-1",
    }
    command = [sys.executable, "-c", "from herdgate.cli import main; main()", "leases", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=environment)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert told in done.stderr
    assert done.stdout == ""
