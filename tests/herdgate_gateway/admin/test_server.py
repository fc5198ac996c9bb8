"""Starting and stopping: threads, ports and files, and what is said when an address cannot be had."""

import asyncio
import contextlib
import errno
import logging
import socket
import threading
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from herdgate import ConfigurationError
from herdgate_gateway.admin import AdminServer, AdminSettings, listener
from herdgate_gateway.admin import server as server_module
from tests.herdgate_gateway.admin.running import Controlled, admin, ask, main_loop
from tests.servers import poll


def admin_threads() -> int:
    return sum(thread.name == "herdgate-admin" for thread in threading.enumerate())


def port_of(server: AdminServer) -> int:
    return httpx.URL(server.url or "").port or 0


def connect(server: AdminServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port_of(server)), timeout=5)


def test_port_0_takes_a_free_one_and_tells_it() -> None:
    with main_loop() as view, admin(view) as one, admin(view) as two:
        assert port_of(one) != port_of(two)
        assert ask(one, "/healthz").status_code == ask(two, "/healthz").status_code == 200


def test_ipv6_is_served() -> None:
    with main_loop() as view, admin(view, listen="[::1]:0") as server:
        assert (server.url or "").startswith("http://[::1]:")
        assert ask(server, "/healthz").status_code == 200


def test_stop_frees_port_thread_and_file(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with main_loop() as view:
        before = admin_threads()
        with admin(view, socket=path) as server:
            port = port_of(server)
            assert admin_threads() == before + 1
            assert path.is_socket()
        assert admin_threads() == before
        assert server.url is None
        assert not path.exists()
        with admin(view, listen=f"127.0.0.1:{port}", socket=path) as again:
            assert ask(again, "/healthz").status_code == ask(path, "/healthz").status_code == 200


def test_stop_does_nothing_twice_or_without_a_start() -> None:
    with main_loop() as view:
        server = AdminServer(view, AdminSettings(listen="127.0.0.1:0"))
        server.stop()
        server.start()
        server.stop()
        server.stop()
        server.start()
        assert ask(server, "/healthz").status_code == 200
        server.stop()


def test_stop_waits_for_no_connection_that_is_kept_open() -> None:
    with main_loop() as view, admin(view) as server, httpx.Client(base_url=server.url or "") as kept:
        assert kept.get("/healthz").status_code == 200
        with closing(connect(server)) as halfway:
            halfway.sendall(b"GET /healthz HT")
            server.stop()
            with contextlib.suppress(ConnectionResetError):
                assert halfway.recv(100) == b""


def test_stop_closes_connections_that_come_at_that_moment() -> None:
    with main_loop() as view:
        for _ in range(20):
            with admin(view) as server, ExitStack() as clients:
                latest = [clients.enter_context(closing(connect(server))) for _ in range(5)]
                server.stop()
                for client in latest:
                    with contextlib.suppress(ConnectionResetError):
                        assert client.recv(100) == b""


def test_connection_without_a_request_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "IDLE_S", 0.1)
    with main_loop() as view, admin(view) as server, closing(connect(server)) as silent:
        assert silent.recv(100) == b""


def test_request_that_breaks_the_protocol_is_answered_and_harms_nobody() -> None:
    with main_loop() as view, admin(view) as server:
        with closing(connect(server)) as broken:
            broken.sendall(b"\x16\x03\x01 hello\r\n\r\n")
            assert broken.recv(100).startswith(b"HTTP/1.1 400")
        assert ask(server, "/healthz").status_code == 200


def test_port_in_use_is_one_line_and_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with main_loop() as view, admin(view) as first:
        taken = f"127.0.0.1:{port_of(first)}"
        before = admin_threads()
        with pytest.raises(ConfigurationError) as raised:
            AdminServer(view, AdminSettings(listen=taken, socket=path)).start()
        assert str(raised.value).startswith(f"admin.listen: got {taken}; the port is in use")
        assert "\n" not in str(raised.value)
        assert admin_threads() == before
        assert not path.exists()
        assert ask(first, "/healthz").status_code == 200


def test_control_socket_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with main_loop() as view, admin(view, socket=path):
        second = AdminServer(view, AdminSettings(listen="127.0.0.1:0", socket=path))
        with pytest.raises(ConfigurationError, match=r"^admin\.socket: got /.*; another process") as raised:
            second.start()
        assert "mode" not in str(raised.value)
        assert second.url is None
        assert ask(path, "/healthz").status_code == 200


def test_control_socket_of_a_dead_process_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with main_loop() as view, admin(view, listen=None, socket=path) as server:
        assert server.url is None
        assert ask(path, "/healthz").status_code == 200


def test_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes"
    path.write_text("mine")
    with main_loop() as view, pytest.raises(ConfigurationError, match=r"^admin\.socket: "):
        AdminServer(view, AdminSettings(listen=None, socket=path)).start()
    assert path.read_text() == "mine"


@pytest.mark.parametrize("token", ["", " ", "two\nlines", " padded "])
def test_token_that_cannot_be_one_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^admin\.token: ") as raised:
        AdminSettings(token=token)
    assert "padded" not in str(raised.value)


def test_token_is_not_in_the_repr() -> None:
    assert "hush-hush" not in repr(AdminSettings(token="hush-hush"))


def test_logging_of_the_data_port_is_left_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    loggers = [logging.getLogger(name) for name in ("uvicorn", "uvicorn.error", "uvicorn.access")]
    before = [(logger.level, logger.propagate, list(logger.handlers)) for logger in loggers]
    with caplog.at_level("INFO"), main_loop() as view, admin(view) as server:
        assert ask(server, "/healthz").status_code == 200
    assert [(logger.level, logger.propagate, list(logger.handlers)) for logger in loggers] == before
    assert not [record for record in caplog.records if record.name.startswith("uvicorn")]


def test_request_under_way_is_finished_when_the_server_stops(tmp_path: Path) -> None:
    path = tmp_path / "control.sock"

    class Slow(Controlled):
        asked = threading.Event()
        go_on = threading.Event()

        async def set_rate(self, rate: float | None) -> None:
            self.asked.set()
            while not self.go_on.is_set():
                await self.pause()

        async def pause(self) -> None:
            from asyncio import sleep

            await sleep(0.01)

    with main_loop() as running:
        view = Slow({})
        view.current = running.status()
    answers: list[int] = []
    server = AdminServer(view, AdminSettings(listen=None, socket=path))
    server.start()
    asking = threading.Thread(target=lambda: answers.append(ask(path, "/rate", "POST", data={"rate": "1"}).status_code))
    asking.start()
    assert view.asked.wait(5)
    stopping = threading.Thread(target=server.stop)
    stopping.start()
    poll(lambda: not path.exists(), "stopping")
    view.go_on.set()
    asking.join(5)
    stopping.join(5)
    view.loop.close()
    assert answers == [200]


async def test_without_descriptors_one_line_is_said_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    loop, failures = asyncio.get_running_loop(), server_module._Failures()
    for _ in range(1_000):
        failures(loop, {"message": "socket.accept() out of system resource", "exception": OSError(errno.EMFILE, "")})
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "ulimit" in caplog.text
    failures(loop, {"message": "something else", "exception": RuntimeError("of another kind")})
    assert "of another kind" in caplog.text
