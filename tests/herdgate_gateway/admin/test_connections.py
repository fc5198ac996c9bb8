"""Connections over the admin listener: read and changed by those who may, told in one line otherwise."""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from herdgate_gateway.admin import AdminServer, AdminSettings, Status
from herdgate_gateway.admin.connection_routes import MOST_BODY
from herdgate_gateway.connections.store import Connections
from herdgate_gateway.leases.acts import Write
from herdgate_gateway.leases.dynamo import DynamoLeases, Place
from herdgate_gateway.leases.memory import MemoryLeases
from herdgate_gateway.leases.rows import Item, Key, shard_of
from herdgate_gateway.leases.table import LeaseTable, Outcome, Unknown
from tests.herdgate_gateway.admin.running import Still, ask
from tests.herdgate_gateway.leases.conftest import dynamodb, place

__all__ = ["dynamodb", "place"]

TOKEN = "correct-horse-battery"
BEARER = {"authorization": f"Bearer {TOKEN}"}
STATUS = Status({}, [], 0.0, "0.0.1")


@contextmanager
def admin(table: LeaseTable | None, socket: Path | None = None, token: str | None = TOKEN) -> Iterator[AdminServer]:
    settings = AdminSettings(listen="127.0.0.1:0", token=token, socket=socket)
    server = AdminServer(Still(STATUS), settings, None if table is None else Connections(table, "f"))
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def server() -> Iterator[AdminServer]:
    with admin(MemoryLeases()) as server:
        yield server


def call(server: AdminServer, method: str, path: str, **options: object) -> httpx.Response:
    return ask(server, path, method, headers=BEARER, **options)


def row(name: str, want: str = "STARTED", **attrs: object) -> dict[str, object]:
    return {"id": name, "want": want, "shard": shard_of(name), "epoch": None, "last_seq": None, "attrs": attrs}


def test_connection_is_started_read_and_stopped(server: AdminServer) -> None:
    for answer in (
        call(server, "PUT", "/connections/a", json={"attrs": {"n": 1}}),
        call(server, "PUT", "/connections/a"),
        call(server, "GET", "/connections/a"),
    ):
        assert (answer.status_code, answer.json()) == (200, row("a", n=1))
    for answer in (call(server, "DELETE", "/connections/a"), call(server, "GET", "/connections/a")):
        assert (answer.status_code, answer.json()) == (200, row("a", "STOPPED", n=1))
    assert call(server, "PUT", "/connections/a", json={"attrs": {}}).json() == row("a")


def test_several_are_read_at_once(server: AdminServer) -> None:
    for name in ("a", "b"):
        call(server, "PUT", f"/connections/{name}")
    answer = call(server, "GET", "/connections?ids=b,none,a,b")
    assert answer.json() == {"connections": [row("b"), row("a")], "missing": ["none"]}
    assert call(server, "GET", "/connections?ids=b&ids=a").json()["missing"] == []


@pytest.mark.parametrize("name", ["a/b", "a%2Fb", "?", "#", "a,b", "~!", "x" * 128])
def test_any_id_can_be_written_in_a_path(server: AdminServer, name: str) -> None:
    path = "/connections/" + "".join(f"%{ord(letter):02X}" for letter in name)
    assert call(server, "PUT", path).json() == row(name)
    assert call(server, "GET", path).json() == row(name)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_one_that_there_is_not_is_404(server: AdminServer, method: str) -> None:
    answer = call(server, method, "/connections/none")
    assert (answer.status_code, answer.text) == (404, "no connection none\n")


CALLS = [
    ("GET", "/connections?ids=a"),
    ("GET", "/connections/a"),
    ("PUT", "/connections/a"),
    ("DELETE", "/connections/a"),
]


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_access_stands_before_reading_too(tmp_path: Path, method: str, path: str) -> None:
    table = MemoryLeases()
    with admin(table, tmp_path / "control.sock") as server:
        assert ask(tmp_path / "control.sock", "/connections/a", "PUT").status_code == 200
        for headers in ({}, {"authorization": "Bearer wrong"}):
            answer = ask(server, path, method, headers=headers)
            assert answer.status_code == 401
            assert "STARTED" not in answer.text
        assert ask(server, path, method, headers=BEARER).status_code == 200
        assert ask(tmp_path / "control.sock", path, method).status_code == 200
    with admin(MemoryLeases(), token=None) as server:
        assert ask(server, path, method).status_code == 403


@pytest.mark.parametrize(("method", "path"), CALLS)
def test_gateway_without_a_table_says_what_to_set(method: str, path: str) -> None:
    with admin(None) as server:
        answer = call(server, method, path)
        assert answer.status_code == 404
        assert answer.text == "this gateway knows no lease table; set table in [leases] of its settings\n"
        assert ask(server, path, method).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "body", "told"),
    [
        ("GET", "/connections", b"", "ids: got nothing; send ids="),
        ("GET", "/connections?ids=", b"", "ids: got ids=; send ids="),
        ("GET", "/connections?ids=a&x=1", b"", "ids: got ids=a&x=1; send ids="),
        ("GET", "/connections?ids=a%20b", b"", "connection id: got a b; write 1 to 128"),
        ("GET", "/connections/a%20b", b"", "connection id: got a b; write 1 to 128"),
        ("GET", "/connections/", b"", "connection id: got ''; write 1 to 128"),
        ("PUT", "/connections/" + "x" * 129, b"", "connection id: got xxx"),
        ("DELETE", "/connections/%C3%A4", b"", "connection id: got ä; write 1 to 128"),
        ("PUT", "/connections/a", b"{", "body: got no JSON; send a JSON object"),
        ("PUT", "/connections/a", b"\xff", "body: got no JSON; send a JSON object"),
        ("PUT", "/connections/a", b"[" * 60_000, "body: got no JSON; send a JSON object"),
        ("PUT", "/connections/a", b"[]", "body: got []; send a JSON object"),
        ("PUT", "/connections/a", b'{"n": 1}', "body: got {'n': 1}; send a JSON object"),
        ("PUT", "/connections/a", b'{"attrs": {}, "want": 1}', "body: got {'attrs': {}, 'want': 1}; send"),
        ("PUT", "/connections/a", b'{"attrs": null}', "attrs: got None; write a JSON object"),
        ("PUT", "/connections/a", b'{"attrs": {"n": 1.5}}', "attrs: got 1.5, a fraction, at n; write it as a text\n"),
        ("PUT", "/connections/a", b'{"attrs": {"n": null}}', "attrs: got null at n; leave it out, or write it"),
        ("PUT", "/connections/a", b" " * (MOST_BODY + 1), f"body: got more than {MOST_BODY} bytes; send"),
    ],
    ids=lambda value: str(value[:30]),
)
def test_what_is_wrong_is_told_in_one_line(server: AdminServer, method: str, path: str, body: bytes, told: str) -> None:
    answer = call(server, method, path, content=body)
    assert answer.status_code == 400
    assert answer.text.startswith(told)
    assert answer.text.count("\n") == 1
    assert call(server, "GET", "/connections/a").status_code == 404


def test_other_methods_are_refused(server: AdminServer) -> None:
    assert call(server, "POST", "/connections/a").status_code == 405
    assert call(server, "DELETE", "/connections?ids=a").status_code == 405


class Silent(MemoryLeases):
    """Writes that nobody knows of, and reads that take for ever."""

    async def write(self, write: Write) -> Outcome:
        return Unknown("table f: no answer in time")

    async def read_many(self, keys: Collection[Key], *, strong: bool) -> Mapping[Key, Item]:
        await asyncio.sleep(3_600)
        return {}


def test_table_that_does_not_answer_is_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("herdgate_gateway.admin.connection_routes.ANSWER_S", 0.2)
    with admin(Silent()) as server:
        answer = call(server, "PUT", "/connections/a")
        assert (answer.status_code, answer.text) == (503, "table f: no answer in time\n")
        answer = call(server, "GET", "/connections/a")
        assert answer.status_code == 503
        assert answer.text.startswith("the lease table did not answer within")
        assert ask(server, "/healthz").status_code == 200


def test_a_real_table_is_used_in_the_thread_of_the_server(place: Place) -> None:
    with admin(DynamoLeases(place, call_s=20)) as server:
        assert call(server, "PUT", "/connections/a", json={"attrs": {"n": [True]}}).json() == row("a", n=[True])
        assert call(server, "GET", "/connections?ids=a,b").json() == {
            "connections": [row("a", n=[True])],
            "missing": ["b"],
        }
        assert call(server, "DELETE", "/connections/a").json()["want"] == "STOPPED"


def test_missing_table_is_told(place: Place) -> None:
    with admin(DynamoLeases(Place("none-such", place.region, place.endpoint_url))) as server:
        answer = call(server, "GET", "/connections/a")
        assert answer.status_code == 503
        assert "herdgate leases init --table none-such" in answer.text
