"""What is measured: `herdgate serve` with every permit taken, and stock uvicorn that refuses as well; a process each.

The stock app refuses every handshake by the denial extension, but for `/held`, which it accepts and leaves alone: so it
is the worker behind the gateway too, in another process.

    python -m benchmarks.contenders 3        serves the stock app on an inherited listener
"""

import contextlib
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import uvicorn

__all__ = ["HELD", "Contender", "gateway", "stock"]

HELD = 200
"""Sockets that are open at the gateway: all it may have."""
BACKLOG = 4_096
START_S = END_S = 20.0

_HERDGATE = (sys.executable, "-c", "from herdgate.cli import main; main()")
_BODY = b'{"error": "full"}'
_HEADERS = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_BODY)), (b"retry-after", b"5")]


class Contender(NamedTuple):
    """A server, and where its health is.

    Attributes:
        process: its only one.
        port: where handshakes are refused.
        health: port of `GET /healthz`, by what the table calls it.
    """

    process: psutil.Process
    port: int
    health: dict[str, int]

    def cpu_s(self) -> float:
        """CPU seconds it has taken so far."""
        taken = self.process.cpu_times()
        return float(taken.user + taken.system)


@contextmanager
def stock() -> Iterator[Contender]:
    """Stock uvicorn."""
    with _listener() as listener:
        command = (sys.executable, "-m", "benchmarks.contenders", str(listener.fileno()))
        port: int = listener.getsockname()[1]
        with _serving(command, [listener], [port]) as process:
            yield Contender(process, port, {"stock uvicorn": port})


@contextmanager
def gateway() -> Iterator[Contender]:
    """The gateway, with as many sockets open as it may have."""
    with stock() as worker, _listener() as data, _listener() as admin, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "herdgate.toml"
        file.write_text(_settings(data, admin, worker.port))
        ports = {"admin listener": admin.getsockname()[1], "health_path": data.getsockname()[1]}
        command = (*_HERDGATE, "serve", "--config", str(file))
        with _serving(command, [data, admin], ports.values()) as process, _held(ports["health_path"]):
            yield Contender(process, ports["health_path"], ports)


def _settings(data: socket.socket, admin: socket.socket, worker: int) -> str:
    own = {"listen": [f"fd:{data.fileno()}"], "workers": [f"ws://127.0.0.1:{worker}"]}
    limits = {"rate": 100_000, "max_open": HELD}
    top = "".join(f"{name} = {json.dumps(value)}\n" for name, value in {**own, **limits}.items())
    return f'{top}[admin]\nlisten = "fd:{admin.fileno()}"\n'


@contextmanager
def _listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as listener:
        yield listener


@contextmanager
def _serving(
    command: Sequence[str], passing: Sequence[socket.socket], ports: Iterable[int]
) -> Iterator[psutil.Process]:
    """Run a server that inherits these sockets, once it is healthy on these ports; it is ended by its id."""
    fds = [listener.fileno() for listener in passing]
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(command, pass_fds=fds, stdout=log, stderr=log) as process,  # noqa: S603 - our own
    ):
        try:
            end = time.monotonic() + START_S
            while not all(_is_healthy(port) for port in ports):
                if process.poll() is not None or time.monotonic() > end:
                    log.seek(0)
                    raise SystemExit(f"a server does not start:\n{log.read().decode()}")
                time.sleep(0.02)
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _is_healthy(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b" 200 " in client.recv(100)
    return False


@contextmanager
def _held(port: int) -> Iterator[None]:
    """Take every permit while the block runs."""
    with contextlib.ExitStack() as stack:
        for _ in range(HELD):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=START_S))
            client.sendall(handshake(b"/held"))
            if b" 101 " not in client.recv(4_096):
                raise SystemExit("a permit could not be taken")
        yield


def handshake(path: bytes) -> bytes:
    """An opening handshake (RFC 6455 section 4.1)."""
    head = b"GET %b HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" % path
    return head + b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    """The stock app."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
        await send({"type": "http.response.body", "body": b"ok\n"})
        return
    await receive()
    if scope["path"] == "/held":
        await send({"type": "websocket.accept"})
        await receive()
        return
    await send({"type": "websocket.http.response.start", "status": 503, "headers": _HEADERS})
    await send({"type": "websocket.http.response.body", "body": _BODY})


def _serve(fd: int) -> None:
    config = uvicorn.Config(app, lifespan="off", access_log=False, ws_ping_interval=None, log_level="warning")
    uvicorn.Server(config).run([socket.socket(fileno=fd)])


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
