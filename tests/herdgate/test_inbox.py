"""Reading ahead of the app: no message lost, none doubled, no loop kept busy."""

import asyncio
import gc
import time

import pytest

from herdgate.asgi import Message, Receive
from herdgate.inbox import Inbox
from tests.fake_server import turns

CONNECT: Message = {"type": "websocket.connect"}
LEFT: Message = {"type": "websocket.disconnect", "code": 1006}
SHORT_S = 0.02


def message(number: int) -> Message:
    return {"type": "websocket.receive", "text": str(number)}


class Channel:
    """A server's channel with a queue behind it."""

    def __init__(self, *messages: Message) -> None:
        self.queue: asyncio.Queue[Message] = asyncio.Queue()
        self.reads = 0
        for item in messages:
            self.queue.put_nowait(item)

    async def __call__(self) -> Message:
        self.reads += 1
        return await self.queue.get()


def endless(item: Message) -> tuple[Receive, list[Message]]:
    """A channel that answers at once, for ever, without ever giving the loop a turn; fails if it is drained."""
    answered: list[Message] = []

    async def receive() -> Message:
        answered.append(item)
        assert len(answered) < 1_000, "the loop is kept busy"
        return item

    return receive, answered


async def read(inbox: Inbox, count: int) -> list[Message]:
    return [await asyncio.wait_for(inbox.receive(), 1) for _ in range(count)]


async def test_what_was_read_ahead_is_replayed_in_order() -> None:
    channel = Channel(CONNECT, message(1), message(2), message(3))
    inbox = Inbox(channel)
    await inbox.read_connect()
    assert not await inbox.has_left()
    assert not await inbox.wait_left(SHORT_S)
    assert await read(inbox, 4) == [CONNECT, message(1), message(2), message(3)]


async def test_message_that_arrives_after_the_verdict_goes_to_the_app() -> None:
    channel = Channel(CONNECT)
    inbox = Inbox(channel)
    await inbox.read_connect()
    assert not await inbox.has_left()
    assert await read(inbox, 1) == [CONNECT]
    waiting = asyncio.ensure_future(inbox.receive())
    await turns(5)
    assert not waiting.done()
    channel.queue.put_nowait(message(1))
    assert await waiting == message(1)
    assert channel.reads == 2, "the read begun before the verdict was used"


async def test_client_that_is_already_gone_is_noticed_and_still_told_to_the_app() -> None:
    inbox = Inbox(Channel(CONNECT, LEFT))
    await inbox.read_connect()
    assert await inbox.has_left()
    assert await read(inbox, 2) == [CONNECT, LEFT]


@pytest.mark.parametrize("delay", [1, 2])
async def test_departure_that_takes_some_turns_of_the_loop_is_noticed(delay: int) -> None:
    channel = Channel(CONNECT)
    inbox = Inbox(channel)
    await inbox.read_connect()
    loop = asyncio.get_running_loop()

    def arrive(left: int) -> None:
        if left:
            loop.call_soon(arrive, left - 1)
        else:
            channel.queue.put_nowait(LEFT)

    arrive(delay)
    assert await inbox.has_left()


async def test_departure_in_place_of_the_connect_event_is_noticed() -> None:
    inbox = Inbox(Channel(LEFT))
    await inbox.read_connect()
    assert await inbox.has_left()


async def test_waiting_ends_at_once_when_the_client_leaves() -> None:
    channel = Channel({"type": "http.request", "body": b"all", "more_body": False})
    inbox = Inbox(channel)
    asyncio.get_running_loop().call_later(SHORT_S, channel.queue.put_nowait, {"type": "http.disconnect"})
    began = time.monotonic()
    assert await inbox.wait_left(30)
    assert time.monotonic() - began < 5


async def test_waiting_takes_its_time_whatever_arrives() -> None:
    channel = Channel(CONNECT, *(message(number) for number in range(10)))
    inbox = Inbox(channel)
    await inbox.read_connect()
    began = time.monotonic()
    assert not await inbox.wait_left(0.1)
    assert 0.09 < time.monotonic() - began < 5
    assert channel.reads <= 2, "a client may not fill our memory"
    assert await read(inbox, 11) == [CONNECT, *(message(number) for number in range(10))]


@pytest.mark.parametrize("item", [CONNECT, message(1), {"type": "http.request", "body": b"x", "more_body": True}])
async def test_channel_that_answers_at_once_for_ever_does_not_keep_the_loop_busy(item: Message) -> None:
    receive, answered = endless(item)
    inbox = Inbox(receive)
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.001)
            beats += 1

    beating = asyncio.ensure_future(beat())
    assert not await inbox.has_left()
    assert not await inbox.wait_left(0.1)
    beating.cancel()
    assert len(answered) <= 3
    assert beats > 10


async def test_channel_that_says_left_for_ever_is_read_once() -> None:
    receive, answered = endless(LEFT)
    inbox = Inbox(receive)
    assert await inbox.has_left()
    assert await inbox.wait_left(1)
    assert len(answered) == 1


async def test_receive_that_is_cancelled_loses_no_message() -> None:
    channel = Channel(CONNECT)
    inbox = Inbox(channel)
    await inbox.read_connect()
    await inbox.has_left()
    assert await read(inbox, 1) == [CONNECT]
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(inbox.receive(), SHORT_S)
    channel.queue.put_nowait(message(1))
    channel.queue.put_nowait(message(2))
    assert await read(inbox, 2) == [message(1), message(2)]


async def test_receive_that_is_cancelled_as_its_message_arrives_loses_no_message() -> None:
    channel = Channel(CONNECT)
    inbox = Inbox(channel)
    await inbox.read_connect()
    await inbox.has_left()
    await read(inbox, 1)
    waiting = asyncio.ensure_future(inbox.receive())
    await turns(3)
    channel.queue.put_nowait(message(1))
    await turns(1)
    waiting.cancel()
    await asyncio.wait((waiting,))
    assert await read(inbox, 1) == [message(1)] or waiting.result() == message(1)


async def test_two_that_wait_get_one_message_each() -> None:
    channel = Channel(CONNECT)
    inbox = Inbox(channel)
    await inbox.read_connect()
    await inbox.has_left()
    await read(inbox, 1)
    waiting = [asyncio.ensure_future(inbox.receive()) for _ in range(2)]
    await turns(3)
    channel.queue.put_nowait(message(1))
    channel.queue.put_nowait(message(2))
    got = await asyncio.wait_for(asyncio.gather(*waiting), 1)
    assert sorted(item["text"] for item in got) == ["1", "2"]


@pytest.mark.parametrize("late", [False, True])
async def test_channel_that_fails_raises_in_whoever_reads(late: bool) -> None:
    async def receive() -> Message:
        if late:
            await asyncio.sleep(SHORT_S)
        raise ConnectionError("the channel broke")

    inbox = Inbox(receive)
    with pytest.raises(ConnectionError, match="the channel broke"):
        await inbox.wait_left(1)
    with pytest.raises(ConnectionError, match="the channel broke"):
        await inbox.receive()


async def test_channel_that_fails_unseen_is_not_complained_of() -> None:
    said: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    broken = asyncio.Event()

    async def receive() -> Message:
        await broken.wait()
        raise ConnectionError("the channel broke")

    inbox = Inbox(receive)
    assert not await inbox.has_left()
    broken.set()
    await turns(3)
    inbox.close()
    del inbox
    gc.collect()
    await turns(3)
    assert said == []


async def test_close_ends_a_read_nobody_waits_for() -> None:
    ended = asyncio.Event()

    async def receive() -> Message:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        return LEFT

    inbox = Inbox(receive)
    assert not await inbox.has_left()
    inbox.close()
    inbox.close()
    await asyncio.wait_for(ended.wait(), 1)


async def test_without_reading_ahead_the_channel_is_the_server_s_own() -> None:
    channel = Channel(CONNECT, message(1))
    inbox = Inbox(channel)
    assert await read(inbox, 2) == [CONNECT, message(1)]
    inbox.close()
    assert channel.reads == 2
