"""`herdgate worker` as a person types it: what is wrong is one line, before anything starts."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from herdgate import HerdgateError
from herdgate_gateway.leases.dynamo import Place
from herdgate_gateway.worker_kit.command import worker
from tests.dynamodb import DynamoServer, dynamodb
from tests.herdgate_gateway.leases.conftest import place

__all__ = ["dynamodb", "place"]


ANYWHERE = ("--listen", "127.0.0.1:0")


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HERDGATE_")]:
        monkeypatch.delenv(name)


def refused(*arguments: object) -> str:
    """What it says."""
    app = typer.Typer()
    app.command()(worker)
    with pytest.raises(HerdgateError) as raised:
        CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert str(raised.value).isprintable()
    return str(raised.value)


def test_something_to_do_has_to_be_given() -> None:
    assert refused("--table", "herd") == "give an APP to serve, or --dial module:handler, or both"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--fleet", "a#b"), "--fleet: got a#b; write 1 to 64 letters, digits, ., - and _"),
        (("--name", "a b"), "--name: got a b; write 1 to 64 letters, digits, ., - and _"),
        *(
            (("--listen", where), f"--listen: got {where}; write host:port, as in 127.0.0.1:9001")
            for where in ("7050", "unix:/tmp/x", "fd:3", "systemd", "127.0.0.1:99999", "ws://127.0.0.1:9001")
        ),
        (("--listen", "0.0.0.0:0"), "--listen: got 0.0.0.0:0; say with --addr ws://host:port what gateways dial"),
        (("--listen", "[::]:0"), "--listen: got [::]:0; say with --addr ws://host:port what gateways dial"),
        (("--addr", "http://host:1"), '--addr: got http://host:1; write "ws://host:port"'),
        (("--redis", "http://host"), "--redis: "),
        (("--endpoint-url", "here"), "--endpoint-url: got here; write "),
        (("--region", "a b"), "--region: got a b; write its name"),
    ],
    ids=str,
)
def test_wrong_option_is_told(arguments: tuple[str, ...], told: str) -> None:
    assert refused("a:b", "--table", "herd", "--listen", "127.0.0.1:0", *arguments).startswith(told)


@pytest.mark.parametrize(
    ("option", "value"), [("--listen", "127.0.0.1:0"), ("--addr", "ws://h:1"), ("--listen", "127.0.0.1:9000")], ids=str
)
def test_where_gateways_connect_means_nothing_without_an_app(option: str, value: str) -> None:
    told = refused("--dial", "a:b", "--table", "herd", option, value)
    assert told == f"{option}: got {value}; give an APP to serve there as well, or leave it out"


def test_ecs_is_watched_in_ecs_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ECS_CONTAINER_METADATA_URI_V4", raising=False)
    told = refused("a:b", "--table", "herd", "--listen", "127.0.0.1:0", "--drain-ecs")
    assert told == "--drain-ecs: got outside ECS; leave it out there: ECS_CONTAINER_METADATA_URI_V4 is not set"


def test_table_of_an_odd_name_is_told() -> None:
    assert refused("a:b", "--table", "a b", "--listen", "127.0.0.1:0").startswith("--table: got a b; write 3 to 255")


def test_wrong_redis_url_does_not_show_its_password() -> None:
    told = refused("a:b", "--table", "herd", "--listen", "127.0.0.1:0", "--redis", "redis://:hunter2@host:port/0")
    assert "hunter2" not in told


def test_address_in_use_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = f"127.0.0.1:{listener.getsockname()[1]}"
        told = refused("a:b", "--table", "herd", "--listen", where)
    assert told.startswith(f"--listen: got {where}; the port is in use: choose another")


def test_missing_redis_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "herdgate.stores.redis.driver", raising=False)
    monkeypatch.setitem(sys.modules, "redis", None)
    told = refused("a:b", "--table", "herd", "--listen", "127.0.0.1:0", "--redis", "redis://127.0.0.1:1/0")
    assert told == "redis: got no redis-py to reach it with; run: pip install 'herdgate[redis]'"


def run(place: Place, folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The command in a folder, to its end."""
    where = ["--table", place.table, "--region", "us-east-1", "--endpoint-url", str(place.endpoint_url)]
    command = [sys.executable, "-m", "herdgate", "worker", *map(str, arguments), *where]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=False, cwd=folder)


def test_missing_table_names_init(place: Place, tmp_path: Path) -> None:
    (tmp_path / "wild.py").write_text("open('imported', 'w')\n")
    done = run(Place("none-such", place.region, place.endpoint_url), tmp_path, "wild:app", *ANYWHERE)
    assert done.returncode == 2
    where = f"--table none-such --region us-east-1 --endpoint-url {place.endpoint_url}"
    assert done.stderr.endswith(f"(or is it in another region?); create it: herdgate leases init {where}\n")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "imported").exists()


@pytest.mark.parametrize(
    ("named", "told"),
    [
        ("nowhere:app", "APP: cannot import nowhere: No module named 'nowhere'"),
        ("broken:app", "APP: cannot import broken: ZeroDivisionError: division by zero"),
        ("empty:app", "APP: module empty has no app; write module:attribute"),
    ],
)
def test_app_that_cannot_be_imported_is_one_line(place: Place, tmp_path: Path, named: str, told: str) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "empty.py").write_text("")
    done = run(place, tmp_path, named, *ANYWHERE)
    assert (done.returncode, done.stderr) == (2, f"herdgate: {told}\n")


def test_handler_that_cannot_be_imported_is_one_line(place: Place, tmp_path: Path) -> None:
    done = run(place, tmp_path, "--dial", "nowhere:handler")
    assert done.returncode == 2
    assert done.stderr.startswith("herdgate: --dial: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", ["", "connection, more", "*, connection"])
def test_handler_that_does_not_take_just_a_connection_is_one_line(
    place: Place, dynamodb: DynamoServer, tmp_path: Path, arguments: str
) -> None:
    (tmp_path / "odd.py").write_text(f"async def handler({arguments}): ...\n")
    done = run(place, tmp_path, "--dial", "odd:handler")
    told = "herdgate: --dial: got odd:handler; it has to take one argument, the connection\n"
    assert (done.returncode, done.stderr) == (2, told)
    status, reply = dynamodb.ask("Scan", TableName=place.table)
    assert (status, reply["Items"]) == (200, [])


def test_app_whose_startup_fails_takes_no_shard(place: Place, dynamodb: DynamoServer, tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(
        "async def app(scope, receive, send):\n"
        "    await receive()\n"
        "    await send({'type': 'lifespan.startup.failed', 'message': 'no database'})\n"
    )
    done = run(place, tmp_path, "failing:app", "--name", "failing", *ANYWHERE)
    assert done.returncode == 2
    assert "no database" in done.stderr
    assert done.stderr.endswith("herdgate: the app's startup failed: what it said of it is above\n")
    status, reply = dynamodb.ask("Scan", TableName=place.table)
    assert (status, reply["Items"]) == (200, [])
