"""Gateways that a herd asks, over real admin listeners and control sockets."""

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from herdgate import Limits
from herdgate_gateway.drain.status import DrainState, DrainStatus
from herdgate_loadtest.errors import LoadtestError
from herdgate_loadtest.herd.gateways import Gateways
from tests.herdgate_gateway.admin.running import Controlled, Still, admin, main_loop
from tests.one_answer import answering_once
from tests.servers import poll

TOKEN = "correct-horse-battery"


@pytest.fixture
def view() -> Iterator[Controlled]:
    with main_loop({"chat": Limits(rate=5), "feed": Limits(rate=5)}) as running:
        yield running


def taken(gateways: Gateways, since: float) -> int:
    """What they have as of then."""
    told: list[int] = []

    def ask() -> bool:
        permits = gateways.permits(since)
        told.extend([] if permits is None else [permits])
        return bool(told)

    poll(ask, "counts that are new enough")
    return told[0]


def test_permits_are_those_of_all_routes_of_all_gateways(view: Controlled, tmp_path: Path) -> None:
    with admin(view, socket=tmp_path / "control") as server:
        both = Gateways([str(server.url), str(tmp_path / "control")])
        assert taken(both, time.monotonic()) == 0
        assert both.permits(time.monotonic() + 60) is None, "not known yet"
    assert Gateways([]).permits(0.0) == 0


@pytest.mark.parametrize(("state", "is_drained"), [("waiting", False), ("draining", False), ("drained", True)])
def test_a_gateway_is_drained_when_it_says_so(view: Controlled, state: DrainState, is_drained: bool) -> None:
    drain = DrainStatus(state, "call", since_s=1, left_s=1, open=0)
    with admin(view) as undrained, admin(Still(replace(view.status(), drain=drain))) as server:
        assert not Gateways([str(undrained.url)]).is_drained()
        assert Gateways([str(server.url)]).is_drained() is is_drained


@pytest.mark.parametrize("token", ["", "wrong"])
def test_over_http_a_drain_needs_the_token(view: Controlled, token: str) -> None:
    with admin(view, token=TOKEN) as server, pytest.raises(LoadtestError, match=r"answered 40[13]: ") as raised:
        Gateways([str(server.url)], token).drain()
    assert "\n" not in str(raised.value)


def test_nobody_there_is_one_line() -> None:
    with pytest.raises(LoadtestError, match=r"no answer from /nowhere \(.*No such file.*\); is it running\?"):
        Gateways(["/nowhere"]).is_drained()


@pytest.mark.parametrize(
    "body", [b"<html>\x1b[2J</html>", b"[]", b"\xff", b"", b'{"drain": 1}', b"[" * 200_000, b" " * (1 << 21)]
)
def test_server_that_is_no_admin_listener_is_told(body: bytes) -> None:
    with answering_once(body) as url, pytest.raises(LoadtestError, match="is no admin listener"):
        Gateways([url]).is_drained()


def test_answer_that_is_no_http_cannot_write_to_the_terminal() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_answer, args=(server, b"\x1b[2J\r\n\r\n"))
        thread.start()
        with pytest.raises(LoadtestError, match="no answer from") as raised:
            Gateways([f"http://127.0.0.1:{server.getsockname()[1]}"]).is_drained()
        thread.join(5)
    assert str(raised.value).isprintable()


def _answer(server: socket.socket, answer: bytes) -> None:
    client, _ = server.accept()
    with client:
        client.recv(4096)
        client.sendall(answer)
