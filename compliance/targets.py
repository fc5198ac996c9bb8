"""What is judged: an echo worker, and `herdgate serve` in front of it in either mode. Each a process, on 127.0.0.1.

    with targets(folder) as urls:
        ... urls["direct"], urls["splice"], urls["messages"]

Rules: a listener is bound here and handed on; logs and settings stay in the folder; each process is ended by its id.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from compliance.echo_worker import MAX_MESSAGE_BYTES

__all__ = ["MODES", "TargetError", "targets"]

ROOT = Path(__file__).parent.parent
MODES = ("splice", "messages")
START_S, END_S = 30.0, 20.0

_HERDGATE = (sys.executable, "-c", "from herdgate.cli import main; main()")
_SETTINGS = """\
listen = ["fd:{fd}"]
workers = ["{worker}"]
rate = 10000
admin = {{ listen = "off" }}
relay = {{ mode = "{mode}", max_message_bytes = {most} }}
"""


class TargetError(Exception):
    """One of the processes has not come up."""


@contextmanager
def targets(folder: Path) -> Iterator[dict[str, str]]:
    """Serve the worker and a gateway of each mode; gives the URL of each.

    Raises:
        TargetError: see its log in the folder.
    """
    with ExitStack() as stack:
        worker = stack.enter_context(_worker(folder))
        urls = {"direct": worker}
        for mode in MODES:
            urls[mode] = stack.enter_context(_gateway(folder, mode, worker))
        yield urls


@contextmanager
def _worker(folder: Path) -> Iterator[str]:
    with _listener() as listener:
        command = (sys.executable, "-m", "compliance.echo_worker", str(listener.fileno()))
        with _running(command, listener, folder / "worker.log") as url:
            yield url


@contextmanager
def _gateway(folder: Path, mode: str, worker: str) -> Iterator[str]:
    settings = folder / f"{mode}.toml"
    with _listener() as listener:
        text = _SETTINGS.format(fd=listener.fileno(), worker=worker, mode=mode, most=MAX_MESSAGE_BYTES)
        settings.write_text(text)
        with _running((*_HERDGATE, "serve", "--config", str(settings)), listener, folder / f"{mode}.log") as url:
            yield url


@contextmanager
def _running(command: Sequence[str], listener: socket.socket, log: Path) -> Iterator[str]:
    port: int = listener.getsockname()[1]
    with (
        log.open("wb") as output,
        subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, pass_fds=[listener.fileno()]) as process,  # noqa: S603
    ):
        try:
            _wait(process, port, log)
            yield f"ws://127.0.0.1:{port}"
        finally:
            _end(process)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + START_S
    while not _answers(port):
        if process.poll() is not None or time.monotonic() > end:
            raise TargetError(f"it has not come up; {log} says why")
        time.sleep(0.05)


def _answers(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status in (200, 204)
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))
