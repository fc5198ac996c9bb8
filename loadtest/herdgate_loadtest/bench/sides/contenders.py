"""What is measured side by side: herdgate and its peers, each a tree of processes on a loopback port of its own.

| name | is |
|---|---|
| `herdgate` | `herdgate serve` |
| `uvicorn` | stock uvicorn with the smallest ASGI app that does the same |
| `naive` | Starlette and a `websockets` client, on stock uvicorn |
| `nginx`, `haproxy` | with one worker process or thread each, where installed |

Rules: all of them stand in front of the same worker, decide by a limiter of their own where they have one, and are
healthy before anything is measured. Refusing, nginx and haproxy admit 1/s, beside a bucket for each client's address;
herdgate is full, as one socket is all that it may have, and this one is held: at so low a rate a calendar would have no
more tickets to give after ten minutes' worth of arrivals, and a refusal without one is less work.
"""

import json
import shutil
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from string import Template
from typing import Literal

from herdgate_loadtest.demo.process import HOST, Process, listening
from herdgate_loadtest.engine.wire import Handshake
from herdgate_loadtest.errors import CrowdError

__all__ = ["PEERS", "Contender", "Duty", "EchoWorker", "echo_worker", "installed", "run_contenders", "wait_for"]

Duty = Literal["refuse", "close", "relay"]
"""What a contender does with a handshake: refuse it over HTTP, accept and close it with 1013, pass it to the worker."""

PEERS = ("nginx", "haproxy")

_TEMPLATES = Path(__file__).parent / "templates"
_BENCH = "herdgate_loadtest.bench.sides"
_READY_S = 30.0
_ANSWER_S = 5.0
_LOOK_S = 0.02
_KEY = b"dGhlIHNhbXBsZSBub25jZQ=="
_COMMANDS = {"nginx": ["-e", "{folder}/error.log", "-p", "{folder}", "-c", "{file}"], "haproxy": ["-f", "{file}"]}


@dataclass(frozen=True, slots=True)
class Contender:
    """A running server.

    Attributes:
        name: as in the report.
        port: where clients connect, on 127.0.0.1.
        pid: root of its tree of processes.
        admin: port of the admin listener, where it has one.
    """

    name: str
    port: int
    pid: int
    admin: int | None = None


@dataclass(frozen=True, slots=True)
class EchoWorker:
    """The worker behind all of them; see `herdgate_loadtest.bench.sides.echo_worker`."""

    port: int

    def open(self) -> int:
        """Sockets that are open there.

        Raises:
            CrowdError: it does not answer.
        """
        answer = _get(self.port, "/stats")
        if answer is None:
            raise CrowdError("the echo worker does not answer: run it again")
        held: int = json.loads(answer)["open"]
        return held


class _Template(Template):
    delimiter = "%"  # nginx has $ for itself


@contextmanager
def echo_worker() -> Iterator[EchoWorker]:
    """Start the worker; it ends with the block."""
    with listening() as listener:
        process = Process("the echo worker", [f"{_BENCH}.echo_worker", str(listener.fileno())], [listener])
    with process:
        _wait_until_healthy(process, process.port)
        yield EchoWorker(process.port)


def installed(name: str) -> str | None:
    """Path of a peer's program; None: it is not installed."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")


@contextmanager
def run_contenders(names: list[str], duty: Duty, worker: EchoWorker) -> Iterator[list[Contender]]:
    """Start servers in front of `worker`; they end with the block.

    Args:
        names: who, see above; a peer has to be installed.

    Raises:
        CrowdError: one does not start.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="herdgate-")))
        yield [_start(stack, name, duty, worker, folder) for name in names]


def _start(stack: ExitStack, name: str, duty: Duty, worker: EchoWorker, folder: Path) -> Contender:
    with listening() as listener:
        port: int = listener.getsockname()[1]
        if name == "herdgate":
            return _herdgate(stack, listener, duty, worker, folder)
        if name in PEERS:
            arguments = _peer(name, listener, duty, worker, folder / name)
        else:
            app = duty if name == "uvicorn" else f"naive-{duty}"
            arguments = [f"{_BENCH}.apps", app, str(listener.fileno()), f"ws://{HOST}:{worker.port}"]
        process = stack.enter_context(Process(name, arguments, [listener]))
    _wait_until_healthy(process, port)
    return Contender(name, port, process.pid)


def _herdgate(stack: ExitStack, listener: socket.socket, duty: Duty, worker: EchoWorker, folder: Path) -> Contender:
    with listening() as admin:
        file = folder / "herdgate.toml"
        file.write_text(_settings(duty, listener.fileno(), admin.fileno(), worker))
        arguments = ["herdgate", "serve", "--config", str(file)]
        process = stack.enter_context(Process("herdgate", arguments, [listener, admin]))
        ports = listener.getsockname()[1], admin.getsockname()[1]
    for port in ports:
        _wait_until_healthy(process, port)
    if duty != "relay":
        stack.enter_context(_held(ports[0]))
    return Contender("herdgate", ports[0], process.pid, ports[1])


@contextmanager
def _held(port: int) -> Iterator[None]:
    """Take the only permit while the block runs."""
    with socket.create_connection((HOST, port), timeout=_ANSWER_S) as client:
        client.sendall(Handshake(f"{HOST}:{port}", "/held").build(0, _KEY))
        if not client.recv(4_096).startswith(b"HTTP/1.1 101 "):
            raise CrowdError("herdgate let nobody in before it was measured: run it again")
        yield


def _settings(duty: Duty, clients: int, admin: int, worker: EchoWorker) -> str:
    most = "" if duty == "relay" else "max_open = 1\n"
    return f"""\
listen = ["fd:{clients}"]
workers = ["ws://{HOST}:{worker.port}"]
rate = 100_000
burst = 100_000
{most}
[admin]
listen = "fd:{admin}"

[[routes]]
name = "default"
client = {{ rate = 100_000, burst = 100_000 }}
address = {{ rate = 100_000, burst = 100_000 }}
"""


def _peer(name: str, listener: socket.socket, duty: Duty, worker: EchoWorker, folder: Path) -> list[str]:
    program = installed(name)
    if program is None:
        raise CrowdError(f"{name} is not installed: run scripts/bench, or leave it out")
    folder.mkdir()
    (template,) = _TEMPLATES.glob(f"{name}_{duty}.*")
    file = folder / template.name
    values = {"folder": folder, "worker": f"{HOST}:{worker.port}", "fd": listener.fileno()}
    file.write_text(_Template(template.read_text()).substitute(values, port=listener.getsockname()[1]))
    command = [part.format(folder=folder, file=file) for part in _COMMANDS[name]]
    return [f"{_BENCH}.peer", str(listener.fileno()), program, *command]


def _wait_until_healthy(process: Process, port: int) -> None:
    def is_healthy() -> bool:
        process.check()
        return _get(port, "/healthz") is not None

    wait_for(is_healthy, f"{process.name} is healthy")


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Wait until `condition` holds.

    Raises:
        CrowdError: it does not within half a minute.
    """
    end = time.monotonic() + _READY_S
    while not condition():
        if time.monotonic() > end:
            raise CrowdError(f"after {_READY_S:g} s it is still not so that {what}: run it again")
        time.sleep(_LOOK_S)


def _get(port: int, path: str) -> bytes | None:
    """The body of a 200; None: it was none."""
    connection = HTTPConnection(HOST, port, timeout=_ANSWER_S)
    with suppress(OSError, HTTPException):
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return body if response.status == 200 else None
    connection.close()
    return None
