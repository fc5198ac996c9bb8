"""Handshakes as fast as they are refused, from processes of their own: raw sockets on the loopback address.

    with Flood() as flood:
        flood.start(port, 2.0)
        ... measure something meanwhile ...
        flood.finish()          -> answers by status

Rules: a generator has a fixed number of handshakes in flight, and stops after a time or a count, whichever comes first.
It reads every answer to its end, and then resets the connection, so that no port waits to be free again. Generators run
at a low priority: they stand for other machines, and must not take from the server or the probe what is theirs.
"""

import contextlib
import multiprocessing
import os
import select
import socket
import time
from collections import Counter
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

from benchmarks.contenders import handshake

__all__ = ["Flood"]

GENERATORS = 2
IN_FLIGHT = 64
"""Handshakes of one generator."""
MOST = 200_000
"""Handshakes of one generator in one slot."""
TIMEOUT_S = 5.0
RESET = b"\1\0\0\0\0\0\0\0"  # struct linger: on, 0 s

_REQUEST = handshake(b"/refused")


class Flood:
    """Generators that wait for work."""

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")
        pairs = [context.Pipe() for _ in range(GENERATORS)]
        self._pipes = [ours for ours, _ in pairs]
        self._processes = [context.Process(target=_generate, args=(theirs,), daemon=True) for _, theirs in pairs]
        for process in self._processes:
            process.start()
        for pipe in self._pipes:
            pipe.recv()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self._processes:
            process.terminate()
            process.join()

    def start(self, port: int, seconds: float) -> None:
        """Flood a port of 127.0.0.1."""
        for pipe in self._pipes:
            pipe.send((port, seconds))

    def finish(self) -> Counter[int]:
        """Wait until the time is up: the answers by status; 0: none, or a broken one."""
        answers: Counter[int] = Counter()
        for pipe in self._pipes:
            answers += pipe.recv()
        return answers


def _generate(pipe: "Connection[object, tuple[int, float]]") -> None:
    os.nice(10)
    pipe.send("ready")
    while True:
        pipe.send(_flood(*pipe.recv()))


def _flood(port: int, seconds: float) -> Counter[int]:
    answers: Counter[int] = Counter()
    clients: dict[int, socket.socket] = {}
    heads: dict[int, bytes] = {}
    waiting = select.epoll()
    end, begun = time.monotonic() + seconds, 0
    while clients or (time.monotonic() < end and begun < MOST):
        while len(clients) < IN_FLIGHT and begun < MOST and time.monotonic() < end:
            begun += 1
            client = _knock(port)
            if client is None:
                answers[0] += 1
                continue
            clients[client.fileno()], heads[client.fileno()] = client, b""
            waiting.register(client, select.EPOLLIN)
        ready = waiting.poll(TIMEOUT_S)
        if not ready:
            answers[0] += len(clients)
            break
        for fd, _ in ready:
            data = _read(clients[fd])
            heads[fd] += data
            if not data or heads[fd][9:12] == b"101":
                answers[_status(heads.pop(fd))] += 1
                waiting.unregister(fd)
                clients.pop(fd).close()
    waiting.close()
    return answers


def _knock(port: int) -> socket.socket | None:
    client = socket.socket()
    client.settimeout(TIMEOUT_S)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    try:
        client.connect(("127.0.0.1", port))
        client.sendall(_REQUEST)
    except OSError:
        client.close()
        return None
    return client


def _read(client: socket.socket) -> bytes:
    with contextlib.suppress(OSError):
        return client.recv(4_096)
    return b""


def _status(head: bytes) -> int:
    return int(head[9:12]) if head[9:12].isdigit() else 0
