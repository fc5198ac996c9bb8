"""`herdgate connections`, as a person types it, against a real table."""

import json
import os
from dataclasses import replace

import pytest
from redis import Redis
from typer.testing import CliRunner

from herdgate import HerdgateError
from herdgate_gateway.connections.command import connections
from herdgate_gateway.leases.acts import checkpoint, claim, take
from herdgate_gateway.leases.dynamo import Place
from herdgate_gateway.leases.rows import WorkerRow, shard_of
from herdgate_gateway.leases.table import Done, LeaseTable
from tests.child_servers import free_port
from tests.dynamodb import DynamoServer
from tests.herdgate_gateway.leases.conftest import dynamodb, place
from tests.herdgate_gateway.leases.test_command import within
from tests.redis_servers import redis_server

__all__ = ["dynamodb", "place"]

OWNER = WorkerRow("w1", "i1", None, "UP", 0, 3_000, "", 4_000, 0)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HERDGATE_")]:
        monkeypatch.delenv(name)


def herdgate(place: Place | None, *arguments: object, typed: str | bytes | None = None) -> str:
    """What the command prints.

    Raises:
        HerdgateError: as it does for `herdgate.cli`, which prints it as one line and exits with 2.
    """
    where = () if place is None else ("--table", place.table, "--endpoint-url", str(place.endpoint_url))
    words = [str(argument) for argument in (*arguments, *where)]
    result = CliRunner().invoke(connections, words, input=typed, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def refused(place: Place | None, *arguments: object, typed: str | bytes | None = None) -> str:
    with pytest.raises(HerdgateError) as raised:
        herdgate(place, *arguments, typed=typed)
    text = str(raised.value)
    assert text.isprintable()
    return text


def test_several_are_started_and_stopped(place: Place) -> None:
    assert herdgate(place, "start", "b", "a", "b", "--attrs", '{"n": 1}') == "b: started\na: started\n"
    assert herdgate(place, "start", "a") == "a: started\n"
    assert herdgate(place, "stop", "b") == "b: stopped\n"
    told = {row["id"]: row for row in json.loads(herdgate(place, "list", "--json"))}
    assert told["a"] == {
        "id": "a",
        "want": "STARTED",
        "shard": shard_of("a"),
        "epoch": None,
        "last_seq": None,
        "attrs": {"n": 1},
    }
    assert told["b"]["want"] == "STOPPED"


def test_changes_are_told_as_json(place: Place) -> None:
    told = json.loads(herdgate(place, "start", "b", "a", "--json"))
    assert [(row["id"], row["want"]) for row in told] == [("b", "STARTED"), ("a", "STARTED")]
    told = json.loads(herdgate(place, "stop", "a", "--json"))
    assert [(row["id"], row["want"]) for row in told] == [("a", "STOPPED")]


def test_ids_come_from_stdin(place: Place) -> None:
    many = [f"c{number}" for number in range(150)]
    told = herdgate(place, "start", "first", "-", "last", typed="\n".join(many) + "\n\n")
    assert told.split("\n")[:-1] == [f"{name}: started" for name in ("first", *many, "last")]
    assert len(json.loads(herdgate(place, "list", "--json"))) == 152
    assert refused(place, "start", "-", typed="\n \n") == "ID: got nothing on stdin; write one id a line"


@pytest.mark.parametrize("line", ["a b", " a", "a\tb", "a\x0cb", "sö", b"s\xf6"], ids=repr)
def test_a_line_of_stdin_is_one_id_as_an_argument_is(place: Place, line: str | bytes) -> None:
    written = line if isinstance(line, bytes) else line.encode()
    told = refused(place, "start", "-", typed=b"fine\r\n\n" + written + b"\n")
    assert told == refused(place, "start", written.decode(errors="replace"))
    assert told.startswith("connection id: got ")
    assert json.loads(herdgate(place, "list", "--json")) == []


def test_list_is_filtered_and_cut(place: Place) -> None:
    assert herdgate(place, "list") == "no connections\n"
    herdgate(place, "start", *"abcd", "--attrs", json.dumps({"text": "x" * 80}))
    herdgate(place, "stop", "c")
    assert [row["id"] for row in json.loads(herdgate(place, "list", "--want", "stopped", "--json"))] == ["c"]
    assert len(json.loads(herdgate(place, "list", "--limit", "2", "--json"))) == 2
    head, *lines = herdgate(place, "list", "--want", "STARTED").splitlines()
    assert head.split() == ["connection", "want", "shard", "epoch", "last", "seq", "attrs"]
    assert sorted(line.split()[0] for line in lines) == ["a", "b", "d"]
    assert all(line.endswith("xxx...") for line in lines)
    assert json.loads(herdgate(place, "list", "--fleet", "other", "--json")) == []


def test_one_is_shown_with_its_owner(place: Place) -> None:
    herdgate(place, "start", "a", "--attrs", '{"url": "wss://\\u001b[31m"}')
    lines = dict(line.split("  ", 1) for line in herdgate(place, "show", "a").splitlines())
    assert lines["owner"].strip() == "nobody yet"
    assert lines["claimed with"].strip() == "never"
    assert "\x1b" not in lines["attrs"]

    async def serve(table: LeaseTable) -> None:
        for write in (
            take("default", OWNER, shard_of("a"), None),
            claim("default", "a", 1),
            checkpoint("default", "a", 1, 42),
        ):
            assert isinstance(await table.write(write), Done)

    within(place, serve)
    lines = dict(line.split("  ", 1) for line in herdgate(place, "show", "a").splitlines())
    assert lines["owner"].strip() == "w1, since epoch 1"
    assert (lines["claimed with"].strip(), lines["last seq"].strip()) == ("1", "42")
    told = json.loads(herdgate(place, "show", "a", "--json"))
    assert (told["owner"], told["epoch"], told["last_seq"]) == ("w1", 1, 42)


def test_workers_are_told(place: Place) -> None:
    with redis_server() as redis, Redis(port=redis.port) as client, client.pubsub() as channel:
        channel.subscribe("herdgate:leases:default")
        assert (channel.get_message(timeout=5) or {})["type"] == "subscribe"
        for command in ("start", "stop"):
            herdgate(place, command, "a", "--redis", redis.url)
            heard = channel.get_message(timeout=5)
            assert heard is not None
            assert json.loads(heard["data"]) == {"wants": [shard_of("a")]}


def test_environment_says_where(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERDGATE_LEASES__TABLE", place.table)
    monkeypatch.setenv("HERDGATE_LEASES__ENDPOINT_URL", str(place.endpoint_url))
    monkeypatch.setenv("HERDGATE_FLEET__NAME", "blue")
    herdgate(None, "start", "a")
    assert json.loads(herdgate(place, "list", "--fleet", "default", "--json")) == []
    assert len(json.loads(herdgate(None, "list", "--json"))) == 1


def test_stop_of_what_there_is_not_stops_the_others_and_says_so(place: Place) -> None:
    herdgate(place, "start", "a")
    told = refused(place, "stop", "x1", "a", *(f"x{number}" for number in range(2, 8)))
    assert told == "no such connection in fleet default: x1, x2, x3, x4, x5 and 2 more"
    assert json.loads(herdgate(place, "show", "a", "--json"))["want"] == "STOPPED"


def test_id_without_a_row_has_a_shard_and_an_owner(place: Place) -> None:
    async def serve(table: LeaseTable) -> None:
        assert isinstance(await table.write(take("default", OWNER, shard_of("a"), None)), Done)

    within(place, serve)
    lines = dict(line.split("  ", 1) for line in herdgate(place, "show", "a").splitlines())
    assert {name: text.strip() for name, text in lines.items()} == {
        "connection": "a",
        "want": "- (it has no row: nobody has started it)",
        "shard": str(shard_of("a")),
        "owner": "w1, since epoch 1",
    }
    told = json.loads(herdgate(place, "show", "a", "--json"))
    herdgate(place, "start", "a")
    assert told.keys() == json.loads(herdgate(place, "show", "a", "--json")).keys()
    known = {name: value for name, value in told.items() if value is not None}
    assert known == {"id": "a", "shard": shard_of("a"), "owner": "w1"}


@pytest.mark.parametrize("command", ["start", "stop"])
def test_redis_that_is_away_is_one_warning_and_changes_rows_all_the_same(place: Place, command: str) -> None:
    herdgate(place, "start", "a")
    where = ["--table", place.table, "--endpoint-url", str(place.endpoint_url), "--json"]
    nowhere = ["--redis", f"redis://127.0.0.1:{free_port()}/0"]
    done = CliRunner().invoke(connections, [command, "a", *where, *nowhere], catch_exceptions=False)
    assert done.exit_code == 0
    assert done.stderr.startswith("herdgate: --redis: Redis does not answer, so workers hear of it within a minute")
    assert done.stderr.count("\n") == 1
    assert [row["id"] for row in json.loads(done.stdout)] == ["a"]
    assert (
        json.loads(herdgate(place, "show", "a", "--json"))["want"] == {"start": "STARTED", "stop": "STOPPED"}[command]
    )


@pytest.mark.parametrize(
    "arguments", [("start", "a"), ("stop", "a"), ("list",), ("show", "a")], ids=lambda words: words[0]
)
def test_missing_table_names_init(place: Place, arguments: tuple[str, ...]) -> None:
    told = refused(replace(place, table="none-such"), *arguments)
    assert told.endswith(
        "there is no such table (or is it in another region?); create it: "
        f"herdgate leases init --table none-such --endpoint-url {place.endpoint_url}"
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("start", "a b"), "connection id: got a b; write 1 to 128"),
        (("stop", "a b"), "connection id: got a b; write 1 to 128"),
        (("show", "a b"), "connection id: got a b; write 1 to 128"),
        (("start", "a", "--attrs", "{"), "--attrs: got {; write a JSON object"),
        (("start", "a", "--fleet", "a#b"), "--fleet: got a#b; write 1 to 64"),
        (("start", "a", "--region", "a b"), "--region: got a b; write its name"),
        (("list", "--region", "a b"), "--region: got a b; write its name"),
        (("show", "a", "--region", "a b"), "--region: got a b; write its name"),
        (("stop", "a", "--region", "a b"), "--region: got a b; write its name"),
        (("start", "a", "--attrs", '{"b": [1.5]}'), "--attrs: got 1.5, a fraction, at b[0]; write it as a text"),
        (("start", "a", "--redis", "here"), "--redis: "),
        (("list", "--want", "RUNNING"), "--want: got RUNNING; write STARTED or STOPPED"),
    ],
    ids=str,
)
def test_bad_input_is_told(place: Place, arguments: tuple[str, ...], told: str) -> None:
    assert refused(place, *arguments).startswith(told)


def test_table_that_does_not_answer_is_told(place: Place, dynamodb: DynamoServer) -> None:
    nowhere = replace(place, endpoint_url="http://127.0.0.1:1")
    for arguments in (("start", "a"), ("list",)):
        told = refused(nowhere, *arguments)
        assert told.startswith(f"table {place.table} at http://127.0.0.1:1: Could not connect")
        assert told.endswith("; is the endpoint right, and the region, and is it up?")
