"""How one leg's end becomes the other's: codes, deadlines, and nothing left behind."""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from herdgate import Refused
from herdgate.asgi import Message
from herdgate_gateway.relay import MessageRelay, RelaySettings
from herdgate_gateway.workers import WorkerPool
from tests.herdgate_gateway.gateways import (
    CALLED_BACK,
    CLIENT_LEGS,
    MESSAGE_LEGS,
    Front,
    Visitor,
    echo_worker,
    frame,
    gateway,
    open_files,
    scripted_worker,
    until,
)
from tests.wire import WAIT_S, Raw, handshake, open_socket, raw

pytestmark = pytest.mark.usefixtures("both_relays")

Script = Callable[[Visitor], Awaitable[None]]
QUICK = RelaySettings(close_s=0.3)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing at ERROR, whatever a client or a worker does."""
    yield
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


def closing(payload: bytes) -> Script:
    async def script(visit: Visitor) -> None:
        await visit.accept(then=frame(8, payload))
        await visit.reader.read()

    return script


def code(number: int, reason: str = "") -> bytes:
    return number.to_bytes(2, "big") + reason.encode()


async def close_seen(front: Front) -> tuple[int | None, str]:
    """The code and reason in the close frame that a client gets; None: it has none."""
    async with open_socket(front.port, "/ws") as client:
        with pytest.raises(ConnectionClosed) as closed:
            await asyncio.wait_for(client.recv(), WAIT_S)
    received = closed.value.rcvd
    assert received is not None, "no close frame"
    return (None if received.code == 1005 else received.code), received.reason


async def vanish(visit: Visitor) -> None:
    await visit.accept()


async def reset(visit: Visitor) -> None:
    await visit.accept()
    visit.reset()


async def break_the_rules(visit: Visitor) -> None:
    await visit.accept(then=b"\xff\xff\xff\xff")
    await visit.reader.read()


async def mask_a_frame(visit: Visitor) -> None:
    await visit.accept(then=frame(1, b"x", mask=True))
    await visit.reader.read()


async def send_no_utf_8(visit: Visitor) -> None:
    await visit.accept(then=frame(1, b"\xff") + frame(1, b"never seen"))
    await visit.reader.read()


@pytest.mark.parametrize("leg", CLIENT_LEGS)
@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (closing(b""), (None, "")),
        (closing(code(1000, "bye")), (1000, "bye")),
        (closing(code(1001)), (1001, "")),
        (closing(code(1012, "restart")), (1012, "restart")),
        (closing(code(1012)), (1012, CALLED_BACK)),
        (closing(code(1012, "shard moved")), (1012, CALLED_BACK)),
        (closing(code(1013, '{"retry_ms":5}')), (1013, '{"retry_ms":5}')),
        (closing(code(3000, "ours")), (3000, "ours")),
        (closing(code(4999, "é" * 61)), (4999, "é" * 61)),
        (closing(code(1005)), (1014, "")),
        (closing(code(1006)), (1014, "")),
        (closing(code(1015)), (1014, "")),
        (closing(code(1004)), (1014, "")),
        (closing(code(999)), (1014, "")),
        (closing(code(2999)), (1014, "")),
        (closing(code(5000)), (1014, "")),
        (closing(b"\x03"), (1014, "")),
        (vanish, (1012, CALLED_BACK)),
        (reset, (1012, CALLED_BACK)),
    ],
)
async def test_case_6_1_the_worker_s_end_is_told_to_the_client_in_codes_that_may_be_sent(
    leg: str, script: Script, expected: tuple[int | None, str]
) -> None:
    async with scripted_worker(script) as worker, gateway([worker.url], leg=leg, settings=QUICK) as front:
        assert await close_seen(front) == expected
        await front.is_idle()


@pytest.mark.parametrize("leg", MESSAGE_LEGS)
@pytest.mark.parametrize("script", [break_the_rules, mask_a_frame, send_no_utf_8])
async def test_case_6_1_a_worker_that_breaks_the_protocol_is_lost_to_the_client(leg: str, script: Script) -> None:
    """A splice lets it pass, for the client to judge."""
    async with scripted_worker(script) as worker, gateway([worker.url], leg=leg, settings=QUICK) as front:
        assert await close_seen(front) == (1014, "")
        await front.is_idle()


@pytest.mark.parametrize("leg", CLIENT_LEGS)
@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"", (1005, "")),
        (code(1000, "bye"), (1000, "bye")),
        (code(3000, "ours"), (3000, "ours")),
        (code(4999, "x" * 123), (4999, "x" * 123)),
    ],
)
async def test_the_client_s_end_is_told_to_the_worker(leg: str, sent: bytes, expected: tuple[int, str]) -> None:
    async with echo_worker() as worker, gateway([worker.url], leg=leg) as front:
        async with raw(front.port, handshake("/ws")) as client:
            assert (await client.head())[0] == 101
            await client.send(frame(8, sent, mask=True))
            assert (await client.frame()) == (8, sent)
        await until(lambda: worker.ended == [expected], f"{expected}, not {worker.ended}")
        await front.is_idle()


@pytest.mark.parametrize("leg", CLIENT_LEGS)
@pytest.mark.parametrize("how", ["reset", "hang up"])
async def test_a_client_that_is_gone_is_told_to_the_worker_at_once(leg: str, how: str) -> None:
    async with echo_worker() as worker, gateway([worker.url], leg=leg) as front:
        async with raw(front.port, handshake("/ws")) as client:
            assert (await client.head())[0] == 101
            if how == "reset":
                client.reset()
        await until(lambda: bool(worker.ended), "the worker is told")
        assert worker.ended[0][0] in (1005, 1001)
        await front.is_idle()


async def test_messages_before_the_end_are_all_delivered() -> None:
    async def talks_and_leaves(visit: Visitor) -> None:
        await visit.accept()
        await visit.send(b"".join(frame(2, b"%04d" % number) for number in range(1000)) + frame(8, code(4000)))
        await visit.reader.read()

    async with scripted_worker(talks_and_leaves) as worker, gateway([worker.url]) as front:
        async with open_socket(front.port, "/ws") as client:
            received = [await client.recv() for _ in range(1000)]
            with pytest.raises(ConnectionClosed):
                await client.recv()
        assert received == [b"%04d" % number for number in range(1000)]
        assert client.close_code == 4000


async def silent_client(client: Raw) -> None:
    """Never answers anything."""
    while await client.read():
        pass


async def test_case_6_4_a_client_that_never_answers_a_close_is_gone_within_close_s() -> None:
    async with scripted_worker(closing(code(1000))) as worker, gateway([worker.url], settings=QUICK) as front:
        before, tasks = open_files(), len(asyncio.all_tasks())
        async with raw(front.port, handshake("/ws")) as client:
            assert (await client.head())[0] == 101
            await asyncio.wait_for(silent_client(client), QUICK.close_s + 5)
            await front.is_idle()
        await until(lambda: open_files() <= before, "files")
        await until(lambda: len(asyncio.all_tasks()) <= tasks, "tasks")


async def test_case_6_4_a_worker_that_never_answers_a_close_is_gone_within_close_s() -> None:
    ended = asyncio.Event()

    async def silent(visit: Visitor) -> None:
        await visit.accept()
        await visit.reader.read()
        ended.set()
        await asyncio.sleep(WAIT_S)

    async with scripted_worker(silent) as worker, gateway([worker.url], settings=QUICK) as front:
        async with open_socket(front.port, "/ws"):
            pass
        await asyncio.wait_for(ended.wait(), QUICK.close_s + 5)
        await front.is_idle()


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_case_6_4_hundreds_of_ends_of_every_kind_leave_no_file_and_no_task(leg: str) -> None:
    ends = [closing(code(1000)), vanish, reset, closing(b""), *([break_the_rules] if leg in MESSAGE_LEGS else [])]
    turn = iter(range(1_000_000))

    async def any_way(visit: Visitor) -> None:
        await ends[next(turn) % len(ends)](visit)

    async def come_and_go(front: Front, number: int) -> None:
        async with raw(front.port, handshake("/ws")) as client:
            if number % 4:
                assert (await client.head())[0] == 101
            if number % 4 == 1:
                await client.send(frame(8, code(1000), mask=True))
            elif number % 4 == 2:
                client.reset()
            elif number % 4 == 3:
                await client.frame()

    async with (
        scripted_worker(any_way) as worker,
        gateway([worker.url], leg=leg, settings=QUICK) as front,
    ):
        await come_and_go(front, 1)
        await front.is_idle()
        before, tasks = open_files(), len(asyncio.all_tasks())
        for batch in range(30):
            await asyncio.gather(*(come_and_go(front, 10 * batch + number) for number in range(10)))
        await front.is_idle()
        await until(lambda: open_files() <= before, f"{before} files")
        await until(lambda: len(asyncio.all_tasks()) <= tasks, f"{tasks} tasks")
        snapshot = front.gate.snapshot()
        assert (snapshot.open, snapshot.pending) == (0, 0)


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_a_socket_without_a_message_is_closed_after_idle_s(leg: str) -> None:
    settings = RelaySettings(idle_s=0.3, close_s=0.3)
    async with echo_worker() as worker, gateway([worker.url], leg=leg, settings=settings) as front:
        assert await close_seen(front) == (1001, "idle")
        await until(lambda: worker.ended == [(1001, "idle")], "the worker is told too")


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_a_socket_that_has_lived_for_max_age_s_is_told_when_to_come_back(leg: str) -> None:
    settings = RelaySettings(max_age_s=0.5, close_s=0.3)
    async with echo_worker() as worker, gateway([worker.url], leg=leg, settings=settings) as front:
        began = time.monotonic()
        code, reason = await close_seen(front)
        assert 0.45 <= time.monotonic() - began < 8
        assert code == 1012
        assert 100 <= json.loads(reason)["retry_ms"] <= 1_000
        await until(lambda: [ended[0] for ended in worker.ended] == [1001], "the worker is told too")


async def test_a_socket_with_messages_either_way_is_not_idle() -> None:
    async def talks(visit: Visitor) -> None:
        await visit.accept()
        for _ in range(8):
            await asyncio.sleep(0.1)
            await visit.send(frame(1, b"tick"))
        await visit.send(frame(8, code(4000)))
        await visit.reader.read()

    settings = RelaySettings(idle_s=0.4, close_s=0.3)
    async with (
        scripted_worker(talks) as worker,
        gateway([worker.url], settings=settings) as front,
        open_socket(front.port, "/ws") as client,
    ):
        for _ in range(8):
            assert await client.recv() == "tick"
        await asyncio.wait_for(client.wait_closed(), WAIT_S)
        assert client.close_code == 4000


@pytest.mark.parametrize(
    "said", [frame(9, b"?", mask=True), frame(10, mask=True), frame(1, b"a", fin=False, mask=True)]
)
async def test_a_client_that_sends_anything_at_all_is_not_idle(said: bytes) -> None:
    settings = RelaySettings(idle_s=0.6, close_s=0.3)
    async with (
        echo_worker() as worker,
        gateway([worker.url], settings=settings) as front,
        raw(front.port, handshake("/ws")) as client,
    ):
        await client.head()
        for turn in range(15):
            await asyncio.sleep(0.1)
            is_whole = said[0] & 0x80
            await client.send(said if is_whole or turn == 0 else frame(0, b"a", fin=False, mask=True))
        assert front.gate.snapshot().open == 1
        await until(lambda: bool(worker.ended), "it is idle from then on")


@pytest.mark.parametrize(("leg", "code"), [("splice", 4000), ("ours", 1001)])
async def test_pings_of_a_worker_count_where_they_reach_the_client(leg: str, code: int) -> None:
    async def pings(visit: Visitor) -> None:
        await visit.accept()
        for _ in range(15):
            await asyncio.sleep(0.1)
            await visit.send(frame(9))
        await visit.send(frame(8, (4000).to_bytes(2, "big")))
        await visit.reader.read()

    settings = RelaySettings(idle_s=0.6, close_s=0.3)
    async with scripted_worker(pings) as worker, gateway([worker.url], leg=leg, settings=settings) as front:
        assert (await close_seen(front))[0] == code


@pytest.mark.parametrize("leg", CLIENT_LEGS)
async def test_both_ends_at_once_are_one_end(leg: str) -> None:
    async with echo_worker() as worker, gateway([worker.url], leg=leg) as front:
        for _ in range(30):
            async with raw(front.port, handshake("/ws")) as client:
                assert (await client.head())[0] == 101
                await client.send(frame(1, b"close 4001 now", mask=True) + frame(8, code(4002), mask=True))
                assert (await client.frame())[0] == 8
        await front.is_idle()


async def test_both_connections_are_kept_alive() -> None:
    async def kept(visit: Visitor) -> None:
        await visit.accept()
        await visit.reader.read()

    async with scripted_worker(kept) as worker, gateway([worker.url]) as front, open_socket(front.port, "/ws"):
        ports = {front.port, int(worker.url.rpartition(":")[2])}
        await until(lambda: len(_kept_alive(ports)) == 2, "one connection each way is kept alive")


def _kept_alive(ports: set[int]) -> list[str]:
    """Established connections of this network that have a keepalive timer and one of these ports (proc(5))."""
    with open("/proc/net/tcp", encoding="ascii") as table:  # noqa: PTH123
        rows = [line.split() for line in table.readlines()[1:]]
    ends = [(row, {int(row[1].rpartition(":")[2], 16), int(row[2].rpartition(":")[2], 16)}) for row in rows]
    return [row[1] for row, pair in ends if pair & ports and row[3] == "01" and row[5].startswith("02:")]


class Channel:
    """An ASGI channel without a server: says what it is told to, then nothing."""

    def __init__(self, *messages: Message) -> None:
        self._messages = list(messages)
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        if not self._messages:
            await asyncio.Event().wait()
        return self._messages.pop(0)

    async def send(self, message: Message) -> None:
        self.sent.append(message)


def scope() -> dict[str, Any]:
    lines = handshake("/ws").decode().split("\r\n")[1:-2]
    headers = [(name.lower().encode(), value.strip().encode()) for name, _, value in (x.partition(":") for x in lines)]
    return {"type": "websocket", "path": "/ws", "raw_path": b"/ws", "query_string": b"", "headers": headers}


async def mute(visit: Visitor) -> None:
    await visit.reader.read()


@pytest.mark.parametrize(
    ("script", "settings", "messages", "sent"),
    [
        pytest.param(closing(code(1000)), QUICK, [], ["accept", "close"], id="worker ends"),
        pytest.param(closing(code(1000)), QUICK, [{"type": "websocket.disconnect"}], [], id="client left"),
        pytest.param(mute, QUICK, [{"type": "websocket.disconnect", "code": 1006}], ["close"], id="left while dialled"),
        pytest.param(mute, RelaySettings(setup_s=0.1), [], [], id="never answers"),
    ],
)
async def test_when_the_call_is_over_nothing_of_it_runs(
    script: Script, settings: RelaySettings, messages: list[Message], sent: list[str]
) -> None:
    async with scripted_worker(script) as worker:
        relay = MessageRelay(WorkerPool([worker.url]), settings)
        channel = Channel({"type": "websocket.connect"}, *messages)
        before = asyncio.all_tasks()
        with suppress(Refused):
            await relay(scope(), channel.receive, channel.send)
        left = [task for task in asyncio.all_tasks() - before if "visit" not in str(task.get_coro())]
        assert not [task for task in left if not task.cancelling() and not task.done()]
        if sent:
            assert [message["type"].partition(".")[2] for message in channel.sent] == sent


@pytest.mark.parametrize("when_s", [0.0, 0.01, 0.05])
async def test_a_call_that_is_cancelled_leaves_nothing_running(when_s: float) -> None:
    async with scripted_worker(mute) as worker:
        pool = WorkerPool([worker.url])
        relay = MessageRelay(pool, QUICK)
        channel = Channel({"type": "websocket.connect"})
        before, files = asyncio.all_tasks(), open_files()
        call = asyncio.ensure_future(relay(scope(), channel.receive, channel.send))
        await asyncio.sleep(when_s)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: not asyncio.all_tasks() - before, "no task is left")
        await until(lambda: open_files() <= files, "no file is left")
        assert pool.snapshot()[0].pending == 0


async def test_a_client_that_leaves_between_the_worker_s_101_and_its_own_is_told_to_the_worker() -> None:
    class Gone(Channel):
        async def send(self, message: Message) -> None:
            raise OSError

    async with echo_worker() as worker:
        channel = Gone({"type": "websocket.connect"})
        await MessageRelay(WorkerPool([worker.url]), QUICK)(scope(), channel.receive, channel.send)
        await until(lambda: worker.ended == [(1001, "")], f"{worker.ended}")


@pytest.mark.parametrize("error", [OSError, RuntimeError])
async def test_a_server_that_has_just_ended_the_client_s_leg_may_say_so_in_either_way(error: type[Exception]) -> None:
    class Ended(Channel):
        async def send(self, message: Message) -> None:
            if message["type"] == "websocket.send":
                raise error

    async def talks(visit: Visitor) -> None:
        await visit.accept(then=frame(1, b"hello"))
        await visit.reader.read()

    async with scripted_worker(talks) as worker:
        channel = Ended({"type": "websocket.connect"})
        await asyncio.wait_for(MessageRelay(WorkerPool([worker.url]), QUICK)(scope(), channel.receive, channel.send), 2)
