"""`herdgate status`, `rate` and `fraction` against running gateways, as a person types them."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from herdgate import HerdgateError
from herdgate_gateway.admin import AdminServer
from herdgate_gateway.control import fraction, rate, status
from tests.herdgate_gateway.admin.running import Controlled, admin, main_loop
from tests.herdgate_gateway.serving import herdgate as whole_command
from tests.one_answer import answering_once

TOKEN = "correct-horse-battery"


@dataclass(frozen=True)
class Running:
    """A gateway under control."""

    view: Controlled
    server: AdminServer
    socket: Path

    @property
    def url(self) -> str:
        assert self.server.url is not None
        return self.server.url

    def rate(self) -> float | None:
        return self.view.gates["default"].snapshot().rate


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    path = tmp_path / "control.sock"
    with main_loop() as view, admin(view, token=TOKEN, socket=path) as server:
        yield Running(view, server, path)


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HERDGATE_")]:
        monkeypatch.delenv(name)


def herdgate(*arguments: object) -> str:
    """What the command prints.

    Raises:
        HerdgateError: as it does for `herdgate.cli`, which prints it as one line and exits with 2.
    """
    app = typer.Typer()
    for command in (status, rate, fraction):
        app.command(command.__name__)(command)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: object) -> str:
    """The error of the command: one line."""
    with pytest.raises(HerdgateError) as raised:
        herdgate(*arguments)
    text = str(raised.value)
    assert "\n" not in text
    return text


def test_status_is_for_people_unless_asked_for_json(running: Running) -> None:
    for where in (("--socket", running.socket), ("--url", running.url)):
        assert herdgate("status", *where).startswith("herdgate 0.0.1, up 0 s, ready\n")
        read = json.loads(herdgate("status", *where, "--json"))
        assert read["gates"]["default"]["rate"] == 5
        assert [worker["state"] for worker in read["workers"]] == ["up", "broken"]


def test_rate_and_fraction_are_changed_over_the_socket(running: Running) -> None:
    assert herdgate("rate", 1250, "--socket", running.socket) == "rate: 1,250/s\n"
    assert running.rate() == 1250
    assert herdgate("rate", "none", "--socket", running.socket) == "rate: no limit\n"
    assert running.rate() is None
    assert json.loads(herdgate("rate", "0", "--json", "--socket", running.socket)) == {"rate": 0.0}
    assert running.rate() == 0
    assert herdgate("fraction", 0.5, "--socket", running.socket) == "fraction: 0.5\n"
    assert json.loads(herdgate("fraction", "1", "--json", "--socket", running.socket)) == {"fraction": 1.0}


def test_rate_is_changed_over_http_with_the_token_only(running: Running) -> None:
    assert "401: missing or wrong token; send" in refused("rate", 7, "--url", running.url)
    assert "401: missing or wrong token; send" in refused("rate", 7, "--url", running.url, "--token", "wrong")
    assert running.rate() == 5
    assert herdgate("rate", 7, "--url", f"{running.url}/", "--token", TOKEN) == "rate: 7/s\n"
    assert running.rate() == 7


def test_control_over_http_that_is_off_names_the_way_out(running: Running) -> None:
    with admin(running.view) as server:
        told = refused("fraction", 0.5, "--url", server.url, "--token", TOKEN)
    assert "403: control over HTTP is off; set admin.token, or use the control socket" in told


@pytest.mark.parametrize(("command", "value"), [("rate", "abc"), ("rate", "nan"), ("rate", ""), ("fraction", "1.5")])
def test_bad_value_is_refused_by_the_gateway_in_its_words(running: Running, command: str, value: str) -> None:
    told = refused(command, value, "--socket", running.socket)
    assert f"400: {command}: got " in told
    assert running.rate() == 5


@pytest.mark.parametrize("value", ["-1", "-0.5", "-.5"])
def test_negative_number_is_a_value_and_no_option(running: Running, value: str) -> None:
    finished = whole_command("rate", value, "--socket", str(running.socket))
    assert finished.returncode == 2
    assert f"400: rate: got {float(value)}; write " in finished.stderr
    assert ", from 0 " in finished.stderr


def test_settings_say_where_the_gateway_is(running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERDGATE_ADMIN__LISTEN", running.url.removeprefix("http://"))
    assert herdgate("status").startswith("herdgate 0.0.1")
    assert "401" in refused("rate", 8)
    monkeypatch.setenv("HERDGATE_ADMIN__TOKEN", TOKEN)
    assert herdgate("rate", 8) == "rate: 8/s\n"
    monkeypatch.delenv("HERDGATE_ADMIN__TOKEN")
    settings = tmp_path / "herdgate.toml"
    settings.write_text(f'[admin]\nsocket = "{running.socket}"\n')
    assert herdgate("rate", 9, "--config", settings) == "rate: 9/s\n"
    monkeypatch.setenv("HERDGATE_CONFIG", str(settings))
    assert herdgate("rate", 10) == "rate: 10/s\n"


@pytest.mark.parametrize(
    ("bound", "listen"), [("127.0.0.1:0", "0.0.0.0:{}"), ("[::1]:0", "[::]:{}"), ("[::1]:0", "[::1]:{}")]
)
def test_address_to_listen_on_is_turned_into_one_to_connect_to(
    running: Running, monkeypatch: pytest.MonkeyPatch, bound: str, listen: str
) -> None:
    with admin(running.view, listen=bound) as server:
        assert server.url is not None
        monkeypatch.setenv("HERDGATE_ADMIN__LISTEN", listen.format(server.url.rpartition(":")[2]))
        assert herdgate("status").startswith("herdgate 0.0.1")


def test_listener_on_a_unix_socket_is_found(running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listen = f"unix:{tmp_path}/admin.sock"
    monkeypatch.setenv("HERDGATE_ADMIN__LISTEN", listen)
    with admin(running.view, listen=listen):
        assert herdgate("status").startswith("herdgate 0.0.1")
        assert "403" in refused("rate", 3)


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "fd:3", "off"])
def test_address_that_cannot_be_connected_to_is_told(monkeypatch: pytest.MonkeyPatch, listen: str) -> None:
    monkeypatch.setenv("HERDGATE_ADMIN__LISTEN", listen)
    told = refused("status")
    assert told.startswith("admin.listen: got ")
    assert told.endswith("nothing to connect to; write --socket or --url")


def test_no_gateway_is_one_line_with_the_way_out(tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        for where in (("--url", url), ("--socket", tmp_path / "none.sock")):
            told = refused("status", *where)
            assert told.startswith(f"no answer from {where[1]} (")
            assert "is the gateway running?" in told


BAD_URLS = ["127.0.0.1:9901", "ftp://host:1", "http://host:port", "http://host:99999", "http://[::1", "ws://h:1"]
BAD_URLS += ["http://", "http://host:1/metrics"]
SECRET_URLS = {"http://host:1/?secret": "http://host:1/?***", "http://me:secret@host:1": "http://***@host:1"}


@pytest.mark.parametrize(("url", "shown"), [*zip(BAD_URLS, BAD_URLS, strict=True), *SECRET_URLS.items()])
def test_bad_url_is_told(url: str, shown: str) -> None:
    assert refused("status", "--url", url).startswith(f"--url: got {shown}; write http://host:port")


def test_socket_and_url_exclude_each_other(running: Running) -> None:
    assert "write either" in refused("status", "--url", running.url, "--socket", running.socket)


@pytest.mark.parametrize("token", ["", "two\nlines", "hush-hush "])
def test_bad_token_is_told_and_not_shown(running: Running, token: str) -> None:
    told = refused("status", "--url", running.url, "--token", token)
    assert told.startswith("--token: ")
    assert "hush" not in told


def test_bad_settings_are_told(tmp_path: Path) -> None:
    settings = tmp_path / "herdgate.toml"
    settings.write_text("[admin]\nlisten = 5\n")
    assert "admin.listen" in refused("status", "--config", settings)


def test_name_that_no_dns_can_hold_is_told() -> None:
    assert "no answer from http://" in refused("status", "--url", f"http://{'a' * 70}.example:1")


def test_proxy_of_the_environment_is_not_asked(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert herdgate("status", "--url", running.url).startswith("herdgate 0.0.1")


@pytest.mark.parametrize("body", [b"<html>\x1b[2J</html>", b"[]", b"\xff", b""])
def test_server_that_is_no_admin_listener_is_told(body: bytes) -> None:
    with answering_once(body) as url:
        told = refused("status", "--url", url)
    assert "is no admin listener" in told
    assert told.isprintable()


def test_error_of_the_command_is_one_line_on_stderr(tmp_path: Path) -> None:
    code = (
        "import sys; from herdgate import HerdgateError; from herdgate_gateway.control import status\n"
        "try: status(socket=__import__('pathlib').Path(sys.argv[1]))\n"
        "except HerdgateError as error: sys.exit(f'herdgate: {error}')"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "none.sock")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
