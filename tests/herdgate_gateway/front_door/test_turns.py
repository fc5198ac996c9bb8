"""The pace of TLS handshakes, on a real process: who says nothing, or has left, takes nothing of it."""

import asyncio
import socket
import sys
import time
from contextlib import ExitStack
from functools import partial

import pytest
import trustme

from tests.herdgate_gateway.gateways import echo_worker, until
from tests.herdgate_gateway.outside import files
from tests.herdgate_gateway.serving import HERDGATE, Serving
from tests.herdgate_gateway.test_serve_listeners import client, listening_with_tls, trusting
from tests.wire import WAIT_S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the system's own listener is the default on Linux")

SLOW = "rate = 1000\nlistener = 'own'"
UNIX = "unix:FOLDER/clients"
CROWD = 200  # would take 10 s at that pace
FEW_FILES = ("sh", "-c", 'ulimit -n 256 && exec "$0" "$@"', *HERDGATE)
MOST_SILENT = 16

paced = partial(listening_with_tls, pace="20")
serving = partial(paced, listen=UNIX)
"""On a Unix socket, where no system waits for the first bytes."""


def dial(gateway: Serving, stack: ExitStack) -> socket.socket:
    """A connection that says nothing."""
    if gateway.port:
        return stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port), WAIT_S))
    silent = stack.enter_context(socket.socket(socket.AF_UNIX))
    silent.settimeout(WAIT_S)
    silent.connect(str(gateway.folder / "clients"))
    return silent


async def enter(gateway: Serving, authority: trustme.CA, sock: socket.socket | None = None) -> float:
    """Come in and leave: the seconds until it was in."""
    began = time.monotonic()
    with ExitStack() as stack:
        sock = sock or dial(gateway, stack)
        sock.setblocking(False)
        async with client("wss://localhost/ws", sock=sock, ssl=trusting(authority), server_hostname="localhost"):
            return time.monotonic() - began


@pytest.mark.parametrize("listen", ["127.0.0.1:0", UNIX])
async def test_silent_connections_take_nothing_of_the_pace(listen: str) -> None:
    authority = trustme.CA()
    async with echo_worker() as worker, paced(authority, worker.url, SLOW, listen=listen) as gateway:
        with ExitStack() as stack:
            for _ in range(CROWD):
                dial(gateway, stack)
            assert await enter(gateway, authority) < 3


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01"])
@pytest.mark.parametrize("listen", ["127.0.0.1:0", UNIX])
async def test_connections_that_have_left_take_nothing_of_the_pace(listen: str, said: bytes) -> None:
    authority = trustme.CA()
    async with echo_worker() as worker, paced(authority, worker.url, SLOW, listen=listen) as gateway:
        for _ in range(CROWD):
            with ExitStack() as stack:
                dial(gateway, stack).sendall(said)
        assert await enter(gateway, authority) < 3


async def test_connections_that_speak_late_come_in_at_the_pace() -> None:
    authority = trustme.CA()
    async with echo_worker() as worker, serving(authority, worker.url, SLOW) as gateway:
        before = files(gateway)
        with ExitStack() as stack:
            late = [dial(gateway, stack) for _ in range(30)]
            await until(lambda: files(gateway) == before + len(late), "all are accepted")
            took = max(await asyncio.gather(*(enter(gateway, authority, each) for each in late)))
        assert 1.3 < took < WAIT_S / 2  # 2 at once, the others at 20 a second


async def test_processes_have_one_pace_together() -> None:
    authority = trustme.CA()
    async with echo_worker() as worker, paced(authority, worker.url, f"{SLOW}\nprocesses = 2") as gateway:
        began = time.monotonic()
        await asyncio.gather(*(enter(gateway, authority) for _ in range(40)))
        assert time.monotonic() - began > 1.5  # 1 at once in each, the others at 20 a second


async def test_a_connection_that_says_nothing_for_five_seconds_is_closed() -> None:
    authority = trustme.CA()
    async with echo_worker() as worker, serving(authority, worker.url, SLOW) as gateway:
        with ExitStack() as stack:
            silent, began = dial(gateway, stack), time.monotonic()
            await asyncio.sleep(0.5)
            later = dial(gateway, stack)
            assert await asyncio.to_thread(silent.recv, 1) == b""
            assert 4.5 < time.monotonic() - began < 9
            assert await asyncio.to_thread(later.recv, 1) == b""


async def test_beyond_so_many_the_longest_silent_one_goes() -> None:
    authority = trustme.CA()
    async with (
        echo_worker() as worker,
        serving(authority, worker.url, SLOW, command=FEW_FILES) as gateway,
    ):
        with ExitStack() as stack:
            crowd = [dial(gateway, stack) for _ in range(MOST_SILENT + 5)]
            for gone in crowd[:5]:
                gone.settimeout(2)
                assert await asyncio.to_thread(gone.recv, 1) == b""
            assert await enter(gateway, authority, crowd[-1]) < 2
