"""Where `herdgate serve` listens, the whole process: TLS, IPv6, Unix sockets, and sockets it has inherited."""

import asyncio
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import trustme
from websockets.asyncio.client import ClientConnection, connect, unix_connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.herdgate_gateway.gateways import echo_worker, until
from tests.herdgate_gateway.serving import HERDGATE, Serving, herdgate
from tests.servers import END_S, ROOT, START_S
from tests.wire import WAIT_S, raw

TICKET_COOKIE = "herdgate_ticket_default="

_PASS = "import os, sys; os.dup2(int(sys.argv[1]), 3); os.environ.update(LISTEN_FDS='1', LISTEN_PID=str(os.getpid()))"
_RUN = "del sys.argv[1]; from herdgate.cli import main; main()"
AS_SYSTEMD = (sys.executable, "-c", f"{_PASS}; {_RUN}")
"""The command as systemd starts it: the descriptor named first becomes number 3."""


@asynccontextmanager
async def listening(
    listen: Sequence[str], worker: str, toml: str, *, fds: Sequence[int] = (), command: Sequence[str] = HERDGATE
) -> AsyncIterator[Serving]:
    """Serve on these addresses, whatever is spoken there, while the block runs; `port` is that of the first in TCP."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        top = f"listen = {list(listen)}\nworkers = ['{worker}']\n"
        admin = f"[admin]\nlisten = 'off'\nsocket = '{folder}/control'\n"
        (folder / "herdgate.toml").write_text(f"{top}{toml}\n{admin}".replace("FOLDER", name))
        whole = [*command, "serve", "--config", str(folder / "herdgate.toml")]
        with (
            (folder / "log").open("wb") as log,
            subprocess.Popen(whole, cwd=ROOT, stdout=log, stderr=log, pass_fds=fds) as process,  # noqa: ASYNC220
        ):
            try:
                await until(lambda: process.poll() is not None or is_ready(folder), "it serves", within_s=START_S)
                assert process.poll() is None, (folder / "log").read_text()
                yield Serving(next(iter(tcp_ports(process.pid)), 0), folder, process)
            finally:
                process.terminate()
                try:
                    await asyncio.to_thread(process.wait, END_S)  # the worker in this loop has to answer meanwhile
                except subprocess.TimeoutExpired:
                    process.kill()


def is_ready(folder: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as control, suppress(OSError):
        control.settimeout(1)
        control.connect(str(folder / "control"))
        control.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b" 200 " in control.recv(100)
    return False


def tcp_ports(pid: int) -> list[int]:
    listeners = [found for found in psutil.Process(pid).net_connections("tcp") if found.status == psutil.CONN_LISTEN]
    return [found.laddr.port for found in listeners]


def client(url: str, **options: Any) -> connect:
    return connect(url, proxy=None, compression=None, open_timeout=WAIT_S, close_timeout=WAIT_S, **options)


async def check_echo(connected: ClientConnection) -> None:
    """Fail unless a worker answers."""
    await connected.send("hello")
    assert await asyncio.wait_for(connected.recv(), WAIT_S) == "hello"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Who signs the certificates here."""
    return trustme.CA()


@asynccontextmanager
async def listening_with_tls(
    authority: trustme.CA,
    worker: str,
    toml: str,
    *,
    listen: str = "127.0.0.1:0",
    pace: str = "'auto'",
    command: Sequence[str] = HERDGATE,
) -> AsyncIterator[Serving]:
    with tempfile.TemporaryDirectory() as name:
        certificate = authority.issue_cert("localhost")
        certificate.cert_chain_pems[0].write_to_path(f"{name}/chain.pem")
        certificate.private_key_pem.write_to_path(f"{name}/key.pem")
        tls = f"[tls]\ncertificate = '{name}/chain.pem'\nkey = '{name}/key.pem'\nhandshakes_per_s = {pace}\n"
        async with listening([listen], worker, f"{toml}\n{tls}", command=command) as gateway:
            yield gateway


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_a_client_gets_in_over_tls_and_its_worker_is_told_so(authority: trustme.CA) -> None:
    async with echo_worker() as worker, listening_with_tls(authority, worker.url, "rate = 100") as gateway:
        async with client(f"wss://localhost:{gateway.port}/ws", ssl=trusting(authority)) as connected:
            await check_echo(connected)
        assert "Traceback" not in gateway.log()
    assert dict(worker.seen[0]["headers"])[b"x-forwarded-proto"] == b"https"


async def test_denials_of_both_kinds_work_over_tls_and_the_cookie_is_secure(authority: trustme.CA) -> None:
    async with echo_worker() as worker, listening_with_tls(authority, worker.url, "rate = 0") as gateway:
        url, trust = f"wss://localhost:{gateway.port}/ws", trusting(authority)
        with pytest.raises(InvalidStatus) as refused:
            await client(url, ssl=trust)
        assert refused.value.response.status_code == 429
        async with client(url, ssl=trust, origin=f"https://localhost:{gateway.port}") as page:
            assert page.response is not None
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(page.recv(), WAIT_S)
        assert page.close_code == 1013
        assert "Traceback" not in gateway.log()
    assert worker.seen == []


async def test_the_ticket_s_cookie_is_secure_over_tls(authority: trustme.CA) -> None:
    async with (
        echo_worker() as worker,
        listening_with_tls(authority, worker.url, "rate = 0.01\nburst = 1") as gateway,
    ):
        url, trust = f"wss://localhost:{gateway.port}/ws", trusting(authority)
        async with (
            client(url, ssl=trust),
            client(url, ssl=trust, origin=f"https://localhost:{gateway.port}") as page,
        ):
            assert page.response is not None
            (cookie,) = page.response.headers.get_all("set-cookie")
    assert cookie.startswith(TICKET_COOKIE)
    assert {"secure", "httponly"} <= {part.strip().lower() for part in cookie.split(";")}


async def test_plain_bytes_on_a_tls_port_end_that_connection_and_nothing_else(authority: trustme.CA) -> None:
    async with echo_worker() as worker, listening_with_tls(authority, worker.url, "rate = 100") as gateway:
        async with raw(gateway.port, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") as plain:
            assert b"HTTP/1.1 200" not in await plain.read()
        async with client(f"wss://localhost:{gateway.port}/ws", ssl=trusting(authority)) as connected:
            await check_echo(connected)
        assert "Traceback" not in gateway.log()


async def test_a_client_comes_in_over_ipv6_and_its_worker_is_told_its_address() -> None:
    async with echo_worker() as worker, listening(["[::1]:0"], worker.url, "rate = 100") as gateway:
        async with client(f"ws://[::1]:{gateway.port}/ws") as connected:
            await check_echo(connected)
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", gateway.port), timeout=WAIT_S)
    assert dict(worker.seen[0]["headers"])[b"x-forwarded-for"] == b"::1"


async def test_a_client_comes_in_over_a_unix_socket_with_the_mode_asked_for() -> None:
    async with (
        echo_worker() as worker,
        listening(["unix:FOLDER/clients?mode=600"], worker.url, "rate = 100") as gateway,
    ):
        path = gateway.folder / "clients"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        async with unix_connect(str(path), "ws://localhost/ws", open_timeout=WAIT_S) as connected:
            await check_echo(connected)
        assert "Traceback" not in gateway.log()
    assert len(worker.seen) == 1


async def test_nobody_is_believed_about_addresses_over_a_unix_socket() -> None:
    toml = "rate = 100\ntrusted_proxies = ['127.0.0.1']\n[[routes]]\nname = 'a'\nclient = { open = 1 }"
    claims = [{"X-Forwarded-For": f"192.0.2.{number}"} for number in (1, 2)]
    async with echo_worker() as worker, listening(["unix:FOLDER/clients"], worker.url, toml) as gateway:
        path = str(gateway.folder / "clients")
        async with unix_connect(path, "ws://localhost/ws", additional_headers=claims[0]):
            with pytest.raises(InvalidStatus) as refused:
                await unix_connect(path, "ws://localhost/ws", additional_headers=claims[1])
    assert (refused.value.response.status_code, b"client_open" in (refused.value.response.body or b"")) == (429, True)
    assert b"x-forwarded-for" not in dict(worker.seen[0]["headers"])


@pytest.mark.parametrize("how", ["listener = 'own'", "listener = 'asyncio'", "processes = 2"])
async def test_the_file_of_a_unix_socket_goes_with_the_gateway(how: str) -> None:
    toml = f"rate = 100\n{how}"
    async with echo_worker() as worker, listening(["unix:FOLDER/clients"], worker.url, toml) as gateway:
        assert (gateway.folder / "clients").is_socket()
        gateway.process.terminate()
        await asyncio.to_thread(gateway.process.wait, END_S)
        assert not (gateway.folder / "clients").exists()


async def test_the_file_of_a_unix_socket_goes_when_the_gateway_cannot_start() -> None:
    async with echo_worker() as worker, listening(["127.0.0.1:0"], worker.url, "rate = 100") as other:
        path = other.folder / "clients"
        options = ("--listen", f"unix:{path}", "--admin", f"127.0.0.1:{other.port}")
        failed = await asyncio.to_thread(herdgate, "serve", "--worker", worker.url, "--rate", "1", *options)
        assert (failed.returncode, "admin.listen: got" in failed.stderr) == (2, True)
        assert not path.exists()


async def test_the_port_that_was_bound_is_said() -> None:
    async with echo_worker() as worker, listening(["127.0.0.1:0"], worker.url, "rate = 100") as gateway:
        assert f"serving on 127.0.0.1:{gateway.port};" in gateway.log()


async def test_one_gateway_listens_everywhere_with_one_rate() -> None:
    listen = ["127.0.0.1:0", "unix:FOLDER/clients"]
    async with echo_worker() as worker, listening(listen, worker.url, "rate = 0.01\nburst = 1") as gateway:
        async with client(f"ws://127.0.0.1:{gateway.port}/ws") as connected:
            await check_echo(connected)
        with pytest.raises(InvalidStatus) as refused:
            await unix_connect(str(gateway.folder / "clients"), "ws://localhost/ws", open_timeout=WAIT_S)
        assert refused.value.response.status_code == 429


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, socket.AF_UNIX])
async def test_a_socket_of_any_family_is_inherited(family: socket.AddressFamily, tmp_path: Path) -> None:
    addresses: dict[int, Any] = {socket.AF_INET: ("127.0.0.1", 0), socket.AF_INET6: ("::1", 0)}
    with socket.socket(family) as inherited:
        inherited.bind(addresses.get(family, str(tmp_path / "clients")))
        inherited.listen()
        fd, address = inherited.fileno(), inherited.getsockname()
        async with echo_worker() as worker, listening([f"fd:{fd}"], worker.url, "rate = 100", fds=[fd]):
            calling = socket.socket(family)
            calling.connect(address)
            async with client("ws://localhost/ws", sock=calling) as connected:
                await check_echo(connected)


async def test_sockets_of_systemd_are_served() -> None:
    with socket.create_server(("127.0.0.1", 0)) as inherited:
        fd = inherited.fileno()
        async with (
            echo_worker() as worker,
            listening(["systemd"], worker.url, "rate = 100", fds=[fd], command=[*AS_SYSTEMD, str(fd)]),
            client(f"ws://127.0.0.1:{inherited.getsockname()[1]}/ws") as connected,
        ):
            await check_echo(connected)
