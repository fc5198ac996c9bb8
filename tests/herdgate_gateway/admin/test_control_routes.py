"""Changes: free on the control socket, with a token over HTTP, refused in one line otherwise."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from herdgate import FleetSnapshot
from herdgate_gateway.admin import AdminServer, ChildStatus, routes
from tests.herdgate_gateway.admin.running import Controlled, Still, admin, ask, main_loop
from tests.servers import poll

TOKEN = "correct-horse-battery"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def view() -> Iterator[Controlled]:
    with main_loop() as view:
        yield view


@pytest.fixture
def socket(tmp_path: Path) -> Path:
    return tmp_path / "control.sock"


@pytest.fixture
def server(view: Controlled, socket: Path) -> Iterator[AdminServer]:
    with admin(view, token=TOKEN, socket=socket) as server:
        yield server


def rate(view: Controlled) -> float | None:
    return view.gates["default"].snapshot().rate


def test_changes_reach_the_main_loop(server: AdminServer, view: Controlled, socket: Path) -> None:
    for address in (server, socket):
        for given, taken in (("7.5", 7.5), ("0", 0.0), ("none", None), ("None", None), ("250", 250.0)):
            answer = ask(address, "/rate", "POST", data={"rate": given}, headers=BEARER)
            assert (answer.status_code, answer.json()) == (200, {"rate": taken})
            assert rate(view) == taken
        answer = ask(address, "/fraction", "POST", data={"fraction": "0.25"}, headers=BEARER)
        assert (answer.status_code, answer.json()) == (200, {"fraction": 0.25})
        poll(lambda: ask(server, "/status.json").json()["gates"]["default"]["admit_fraction"] == 0.25, "in the status")


def test_query_does_as_well_as_a_form(server: AdminServer, view: Controlled) -> None:
    assert ask(server, "/rate?rate=9", "POST", headers=BEARER).status_code == 200
    assert rate(view) == 9


def test_control_socket_needs_no_token(server: AdminServer, view: Controlled, socket: Path) -> None:
    assert ask(socket, "/rate", "POST", data={"rate": "8"}).status_code == 200
    assert rate(view) == 8
    assert ask(socket, "/healthz").status_code == 200
    assert ask(socket, "/status.json").json()["version"] == "0.0.1"


def test_control_socket_is_for_its_owner_only(server: AdminServer, socket: Path) -> None:
    assert socket.stat().st_mode & 0o777 == 0o600


WRONG = [None, "", "Bearer", "Bearer wrong", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN]


@pytest.mark.parametrize("shown", [*WRONG, "Bearer \xff\xfe"])
def test_http_without_the_token_changes_nothing(server: AdminServer, view: Controlled, shown: str | None) -> None:
    headers = [] if shown is None else [(b"authorization", shown.encode("latin-1"))]
    for path in ("/rate", "/fraction"):
        answer = httpx.post(f"{server.url}{path}", data={path[1:]: "0.5"}, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.text.count("\n") == 1
        assert TOKEN not in answer.text
    assert rate(view) == 5


def test_token_outside_ascii_works(view: Controlled) -> None:
    with admin(view, token="pfäd-√") as server:
        shown = [(b"authorization", "bearer pfäd-√".encode())]
        assert httpx.post(f"{server.url}/rate", data={"rate": "6"}, headers=shown).status_code == 200


@pytest.mark.parametrize("headers", [{}, BEARER, {"authorization": "Bearer"}, {"authorization": "Bearer None"}])
def test_without_a_token_control_over_http_is_off(view: Controlled, headers: dict[str, str]) -> None:
    with admin(view) as server:
        answer = ask(server, "/rate", "POST", data={"rate": "1"}, headers=headers)
    assert answer.status_code == 403
    assert "admin.token" in answer.text
    assert "admin.socket" in answer.text
    assert rate(view) == 5


def test_http_is_read_only_by_other_methods(server: AdminServer) -> None:
    assert ask(server, "/rate", headers=BEARER).status_code == 405
    assert ask(server, "/healthz", "POST", headers=BEARER).status_code == 405
    assert ask(server, "/nowhere", headers=BEARER).status_code == 404


BAD_RATES = ["rate=abc", "rate=-1", "rate=nan", "rate=inf", "rate=-inf", "rate=1e300", "rate=", "rate", "", "Rate=1"]
BAD_RATES += ["fraction=1", "rate=1&rate=2", "rate=1&burst=2", '{"rate": 1}', "rate=5%00", "rate=\xff", "&" * 500]
BAD_RATES += ["rate=1" + "0" * 500, "rate=1" + "0" * 2_000]
BAD_FRACTIONS = ["fraction=1.1", "fraction=-0.1", "fraction=nan", "fraction=none", "fraction=50%25", "rate=1", ""]


@pytest.mark.parametrize("body", BAD_RATES)
def test_bad_rate_is_refused_in_one_line(server: AdminServer, view: Controlled, socket: Path, body: str) -> None:
    refused_in_one_line(socket, "rate", body)
    assert rate(view) == 5


@pytest.mark.parametrize("body", BAD_FRACTIONS)
def test_bad_fraction_is_refused_in_one_line(server: AdminServer, view: Controlled, socket: Path, body: str) -> None:
    refused_in_one_line(socket, "fraction", body)
    assert view.gates["default"].snapshot().admit_fraction == 1


def refused_in_one_line(socket: Path, name: str, body: str) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    answer = ask(socket, f"/{name}", "POST", content=body.encode("latin-1"), headers=form)
    assert answer.status_code == 400
    assert answer.text.startswith(f"{name}: got ")
    assert "; " in answer.text
    assert answer.text.count("\n") == 1
    assert len(answer.text) < 250


def test_change_that_the_main_loop_does_not_take_is_told_and_never_made(
    view: Controlled, socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "CONTROL_S", 0.2)
    with admin(view, socket=socket):
        done = threading.Event()
        view.block(lambda: time.sleep(1.0))
        view.block(done.set)
        answer = ask(socket, "/rate", "POST", data={"rate": "99"})
        assert not done.is_set()
        assert answer.status_code == 503
        assert "main loop" in answer.text
        assert done.wait(5)
        back_at = time.monotonic()
        poll(lambda: view.status().published_at > back_at, "the main loop has done what was handed over meanwhile")
        assert rate(view) == 5


def test_limits_of_the_gateway_itself_are_told(socket: Path) -> None:
    from herdgate import ConfigurationError

    class Choosy(Still):
        async def set_rate(self, rate: float | None) -> None:
            raise ConfigurationError("rate", rate, "ask the fleet")

    with main_loop() as running:
        view = Choosy(running.status())
    with admin(view, socket=socket):
        answer = ask(socket, "/rate", "POST", data={"rate": "3"})
    assert (answer.status_code, answer.text) == (400, "rate: got 3.0; ask the fleet\n")


@pytest.mark.parametrize("shared", ["fleet", "children"])
@pytest.mark.parametrize("given", ["none", "-1", "abc", ""])
def test_where_a_rate_is_shared_none_is_no_way_out(socket: Path, shared: str, given: str) -> None:
    with main_loop() as running:
        status = running.status()
    if shared == "fleet":
        fleet = FleetSnapshot(is_up=True, gateways=2, pending=0, open=0, calls=1)
        status = replace(status, gates={name: replace(gate, fleet=fleet) for name, gate in status.gates.items()})
    else:
        status = replace(status, children=[ChildStatus(1, 1, "ready", 0)])
    with admin(Still(status), socket=socket):
        answer = ask(socket, "/rate", "POST", data={"rate": given})
    assert answer.status_code == 400
    assert answer.text.startswith("rate: got ")
    assert "no limit" not in answer.text
    if given == "none":
        assert "a fleet, or several processes, share one, and need it" in answer.text


def test_alone_a_wrong_rate_is_told_of_none(server: AdminServer) -> None:
    answer = ask(server, "/rate", "POST", data={"rate": "abc"}, headers=BEARER)
    assert answer.text == "rate: got abc; send rate= and admissions per second, or rate=none for no limit\n"
