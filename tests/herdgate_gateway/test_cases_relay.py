"""What went wrong for others between two legs, replayed on `herdgate serve`. The numbers are those of the cases."""

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from herdgate_gateway.client_line import ClientLine
from herdgate_gateway.worker_leg import HIGH_WATER, WorkerLeg
from tests.herdgate_gateway.gateways import Visitor, echo_worker, frame, gateway, scripted_worker, until
from tests.herdgate_gateway.outside import beside, files, has_files, is_idle, peak_bytes, reset_peak
from tests.herdgate_gateway.serving import Serving
from tests.wire import WAIT_S, handshake, open_socket, raw

MIB = 1 << 20
PIECE = 64 * 1024
CLOSE_S, STALL_S = 0.4, 2.0
TOML = f"rate = 100000\n[relay]\nclose_s = {CLOSE_S}\nstall_s = {STALL_S}"
PATIENT = "rate = 100000"
OK = b"\x03\xe8"
ENDINGS = {
    "none": (b"", 1005, ""),
    "1005": (b"\x03\xed", 1014, ""),
    "1006": (b"\x03\xee", 1014, ""),
    "1015": (b"\x03\xf7", 1014, ""),
    "1004": (b"\x03\xec", 1014, ""),
    "999": (b"\x03\xe7", 1014, ""),
    "2999": (b"\x0b\xb7", 1014, ""),
    "3000": (b"\x0b\xb8ours", 3000, "ours"),
    "4999": (b"\x13\x87ours", 4999, "ours"),
    "5000": (b"\x13\x88", 1014, ""),
}


def path_of(visit: Visitor) -> str:
    """The path of its request, without the slash."""
    return visit.head.split()[1].decode().strip("/")


async def test_case_6_1_every_ending_of_a_worker_is_a_valid_frame_for_the_client() -> None:
    async def ends(visit: Visitor) -> None:
        await visit.read_head()
        await visit.accept(then=frame(8, ENDINGS[path_of(visit)][0]))
        await visit.reader.read()

    async with scripted_worker(ends) as worker, beside(TOML, worker.url) as front:
        for name, (_, code, reason) in ENDINGS.items():
            async with open_socket(front.port, f"/{name}") as client:
                with pytest.raises(ConnectionClosed) as closed:
                    await asyncio.wait_for(client.recv(), WAIT_S)
            received = closed.value.rcvd
            assert received is not None, name
            assert (received.code, received.reason) == (code, reason), name


async def silent_client(front: Serving) -> None:
    """Its worker closes, and it never answers."""
    async with raw(front.port, handshake("/ws")) as client:
        assert (await client.head())[0] == 101
        assert (await client.frame())[0] == 8
        told = time.monotonic()
        assert await client.read() == b""
        assert time.monotonic() - told < CLOSE_S + 5


async def closes_and_listens(visit: Visitor) -> None:
    await visit.accept(then=frame(8, OK))
    await visit.reader.read()


async def leaving_client(front: Serving) -> None:
    """It closes, and its worker never answers."""
    async with raw(front.port, handshake("/ws")) as client:
        assert (await client.head())[0] == 101
        await client.send(frame(8, OK, mask=True))
        assert (await client.frame())[0] == 8


async def never_answers_a_close(visit: Visitor) -> None:
    await visit.accept()
    while await visit.reader.read(100):
        pass


@pytest.mark.parametrize(
    ("visit", "script"),
    [
        pytest.param(silent_client, closes_and_listens, id="the client never answers"),
        pytest.param(leaving_client, never_answers_a_close, id="the worker never answers"),
    ],
)
async def test_case_6_4_a_thousand_that_linger_leave_nothing_open(
    visit: Callable[[Serving], Awaitable[None]], script: Callable[[Visitor], Awaitable[None]]
) -> None:
    async with scripted_worker(script) as worker, beside(TOML, worker.url) as front:
        await visit(front)
        await is_idle(front)
        before = files(front)
        for _ in range(10):
            await asyncio.gather(*(visit(front) for _ in range(100)))
        await has_files(front, before, within_s=CLOSE_S + 1)
        await is_idle(front)
        assert len(worker.visits) == 1_001
        assert "Traceback" not in front.log()


async def test_case_6_6_a_strict_worker_sees_no_subprotocol_header_when_none_was_offered() -> None:
    async def strict(visit: Visitor) -> None:
        await visit.read_head()
        if not visit.header("sec-websocket-protocol"):
            await visit.accept()
            await visit.reader.read()

    async with scripted_worker(strict) as worker, beside(TOML, worker.url) as front:
        async with raw(front.port, handshake("/ws")) as plain:
            assert (await plain.head())[0] == 101
        async with raw(front.port, handshake("/ws", headers=[("Sec-WebSocket-Protocol", "chat")])) as offering:
            assert (await offering.head())[0] == 502, "the worker is strict"


def fragments(count: int, *, mask: bool) -> list[bytes]:
    """A message of pieces that does not end."""
    first, more = (frame(code, b"x" * PIECE, fin=False, mask=mask) for code in (2, 0))
    return [first, *[more] * (count - 1)]


async def test_case_6_15_a_client_s_message_without_an_end_costs_no_more_than_twice_the_cap() -> None:
    async def client(front: Serving, pieces: int) -> tuple[int, bytes]:
        async with raw(front.port, handshake("/ws")) as sending:
            assert (await sending.head())[0] == 101
            for piece in fragments(pieces, mask=True):
                await sending.send(piece)
            if pieces <= 16:
                await sending.send(frame(0, mask=True))
            kind, length = await sending._reader.readexactly(2)
            return kind & 0x0F, await sending._reader.readexactly(min(length, 2))

    async with echo_worker() as worker, beside(PATIENT, worker.url) as front:
        assert (await client(front, 16))[0] == 2, "a message of the cap comes back"
        before, clients = reset_peak(front), 4
        answers = await asyncio.gather(*(client(front, 1_024) for _ in range(clients)))
        assert answers == [(8, b"\x03\xf1")] * clients, "1009"
        assert (peak_bytes(front) - before) / clients < 2 * MIB
        await is_idle(front)


async def test_case_6_15_a_worker_s_message_without_an_end_costs_no_more_than_twice_the_cap() -> None:
    told: list[bytes] = []

    async def endless(visit: Visitor) -> None:
        await visit.accept()
        for piece in fragments(1_024, mask=False):
            await visit.send(piece)
        told.append(await visit.reader.readexactly(8))
        visit.writer.transport.abort()

    async def client(front: Serving) -> int | None:
        async with open_socket(front.port, "/ws", max_size=4 * MIB) as waiting:
            with pytest.raises(ConnectionClosed):
                await asyncio.wait_for(waiting.recv(), WAIT_S)
        return waiting.close_code

    async with scripted_worker(endless) as worker, beside(PATIENT, worker.url) as front:
        await client(front)
        before, clients = reset_peak(front), 4
        assert await asyncio.gather(*(client(front) for _ in range(clients))) == [1014] * clients
        assert (peak_bytes(front) - before) / clients < 2 * MIB
        await is_idle(front)
        await until(lambda: len(told) == clients + 1, "every worker is told")
    assert {unmasked_code(data) for data in told} == {1009}


def unmasked_code(close: bytes) -> int:
    """The code in the first bytes of a masked close frame."""
    assert close[0] == 0x88
    return int.from_bytes(bytes((close[6] ^ close[2], close[7] ^ close[3])), "big")


class Pourer:
    """A worker that sends 10 MB/s to who asks for `/pour`, and echoes to others."""

    def __init__(self) -> None:
        self.sent = 0

    async def __call__(self, visit: Visitor) -> None:
        await visit.read_head()
        await visit.accept()
        if path_of(visit) == "pour":
            while True:
                await visit.send(frame(2, b"x" * PIECE))
                self.sent += 1
                await asyncio.sleep(PIECE / 10_000_000)
        while data := await visit.reader.readexactly(7):
            await visit.send(frame(1, bytes((data[6] ^ data[2],))))


async def round_trips(client: ClientConnection, seconds: float) -> list[float]:
    """Seconds of one message after the other, there and back."""
    times: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        began = time.monotonic()
        await client.send("x")
        assert await asyncio.wait_for(client.recv(), WAIT_S) == "x"
        times.append(time.monotonic() - began)
        await asyncio.sleep(0.01)
    return times


async def test_case_6_17_clients_that_stop_reading_are_closed_in_time_and_cost_others_nothing() -> None:
    """The stall deadline is 2 s; what is poured meanwhile fills the sockets' own buffers, and then the worker waits."""
    stalled, pourer = 4, Pourer()
    async with (
        scripted_worker(pourer) as worker,
        beside(TOML, worker.url) as front,
        open_socket(front.port, "/echo") as other,
    ):
        alone = await round_trips(other, 0.5)
        before, quiet = reset_peak(front), files(front)
        began = time.monotonic()
        clients = [await open_socket(front.port, "/pour") for _ in range(stalled)]
        for client in clients:
            client.transport.pause_reading()
        beside_them = await round_trips(other, 1.5)
        assert statistics.median(beside_them) < max(5 * statistics.median(alone), 0.05)
        await has_files(front, quiet, within_s=STALL_S + CLOSE_S + WAIT_S)
        assert time.monotonic() - began > STALL_S
        assert (peak_bytes(front) - before) / stalled < MIB
        await other.send("x")
        assert await asyncio.wait_for(other.recv(), WAIT_S) == "x"
        for client in clients:
            client.transport.abort()


async def test_case_6_17_a_leg_that_is_not_read_holds_its_high_water_and_one_message() -> None:
    pourer = Pourer()
    async with scripted_worker(pourer) as worker, gateway([worker.url]) as front:
        async with open_socket(front.port, "/pour") as client:
            client.transport.pause_reading()
            await has_settled(pourer)
            (leg,) = (thing for thing in gc.get_objects() if type(thing) is WorkerLeg)
            (line,) = (thing for thing in gc.get_objects() if type(thing) is ClientLine)
            assert leg._reading_paused
            assert 0 < leg._held <= HIGH_WATER + PIECE
            assert 0 < line._transport.get_write_buffer_size() <= HIGH_WATER + 2 * PIECE
            client.transport.abort()
        await front.is_idle()


async def has_settled(pourer: Pourer) -> None:
    """Wait until it sends no more."""
    seen, since = -1, time.monotonic()
    while time.monotonic() - since < 0.5:
        if pourer.sent != seen:
            seen, since = pourer.sent, time.monotonic()
        await asyncio.sleep(0.02)


async def test_case_6_19_quiet_legs_are_kept_alive_by_tcp_and_only_the_application_s_pings_pass() -> None:
    """Read so: no pings of the gateway's own; keepalive on both legs; what an application calls a ping is a message."""
    heard: list[bytes] = []

    async def pinging(visit: Visitor) -> None:
        await visit.accept()
        await visit.reader.readexactly(1)
        await visit.send(frame(1, b'{"type":"ping"}'))
        while data := await visit.reader.read(100):
            heard.append(data)

    async with (
        scripted_worker(pinging) as worker,
        beside(TOML, worker.url) as front,
        raw(front.port, handshake("/ws")) as client,
    ):
        assert (await client.head())[0] == 101
        await until(lambda: kept_alive(front.port, worker.url) == {"client", "worker"}, "both are kept alive")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client._reader.read(1), 1.5)
        await client.send(frame(1, b'{"type":"ping"}', mask=True))
        assert await client.frame() == (1, b'{"type":"ping"}')
        await until(lambda: bool(heard), "the client's ping reaches the worker")
        await client.send(frame(1, b'{"type":"pong"}', mask=True))
        await until(lambda: len(b"".join(heard)) > 21 + 15, "and its pong")


def kept_alive(port: int, worker: str) -> set[str]:
    """Which legs of the gateway have a keepalive timer (proc(5), net/tcp)."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    kept = [row for row in rows if row[3] == "01" and row[5].startswith("02:")]
    here = {int(row[1].rpartition(":")[2], 16) for row in kept}
    there = {int(row[2].rpartition(":")[2], 16) for row in kept}
    return ({"client"} if port in here else set()) | ({"worker"} if int(worker.rpartition(":")[2]) in there else set())
