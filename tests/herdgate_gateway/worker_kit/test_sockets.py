"""A shard that is lost takes its sockets along, and no others."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from websockets.exceptions import InvalidStatus

from herdgate.asgi import Receive, Scope, Send
from herdgate_gateway.quiet import QUIET
from herdgate_gateway.worker_kit import sockets
from tests.herdgate_gateway.worker_kit.serving_worker import Board, Working, closed, id_in, lose, serving, until


class Errors(logging.Handler):
    """What the server logs of its sockets."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record)


async def test_sockets_of_a_lost_shard_are_closed_and_no_others() -> None:
    board = Board()
    async with serving(board) as worker, worker.open(3) as gone, worker.open(4) as there:
        await lose(worker, 3)
        assert await closed(gone) == (1012, "shard moved")
        await until(lambda: id_in(3) in board.raised, "the app has tried to send")
        assert board.ends[id_in(3)] == {"type": "websocket.disconnect", "code": 1012, "reason": "shard moved"}
        assert isinstance(board.raised[id_in(3)], OSError)
        await there.send("still here")
        assert await there.recv() == "still here"
        assert (worker.duty.load(), dict(worker.duty.weights())) == (1, {4: 1})


async def test_socket_does_not_outlive_its_epoch_even_if_the_shard_stays_here() -> None:
    async with serving(Board()) as worker, worker.open(3) as client:
        await worker.table.own(3, worker.row, 9)
        async with worker.open(3, 9) as next_one:
            assert await closed(client) == (1012, "shard moved")
            await next_one.send("hello")
            assert await next_one.recv() == "hello"


async def test_messages_that_wait_when_a_shard_is_lost_are_not_heard() -> None:
    heard: list[str] = []
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            heard.append(message["text"])
            asked.set()
            await go_on.wait()

    async with serving(app) as worker, worker.open(3) as client:
        for text in ("one", "two", "three"):
            await client.send(text)
        await asked.wait()
        await lose(worker, 3)
        go_on.set()
        assert await closed(client) == (1012, "shard moved")
        assert heard == ["one"]


async def test_messages_that_wait_are_not_heard_either_when_the_shard_is_found_again() -> None:
    heard: list[str] = []
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            heard.append(message["text"])
            asked.set()
            await go_on.wait()

    async with serving(app, lease_s=1.5) as worker, worker.open(3) as client:
        await client.send("one")
        await asked.wait()
        await client.send("two")
        epoch = worker.epoch(3)
        worker.table.is_away = True
        await until(lambda: worker.owner.epoch(3) is None, "the right has run out")
        worker.table.is_away = False
        await until(lambda: worker.owner.epoch(3) == epoch, "the shard is found again")
        go_on.set()
        assert await closed(client) == (1012, "shard moved")
        await until(lambda: worker.duty.load() == 0, "it has left")
        assert heard == ["one"]


async def test_app_that_ignores_the_end_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sockets, "APP_S", 0.3)
    cancelled, errors = asyncio.Event(), Errors()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return
        await send({"type": "websocket.accept"})
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    async with serving(app) as worker, worker.open(3) as client:
        QUIET.addHandler(errors)
        await lose(worker, 3)
        assert await closed(client) == (1012, "shard moved")
        assert not cancelled.is_set()
        await asyncio.wait_for(cancelled.wait(), 5)
    QUIET.removeHandler(errors)
    assert errors.seen == [], "it is no error of the app's"


async def test_handshake_that_is_not_answered_when_its_shard_is_lost_is_misdirected() -> None:
    here, errors = asyncio.Event(), list[Exception]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return
        await receive()
        here.set()
        assert (await receive())["type"] == "websocket.disconnect"
        try:
            await send({"type": "websocket.accept"})
        except OSError as error:
            errors.append(error)

    async with serving(app) as worker:
        opening = asyncio.ensure_future(worker.open(3).__aenter__())
        await asyncio.wait_for(here.wait(), 5)
        await lose(worker, 3)
        with pytest.raises(InvalidStatus) as refused:
            await opening
        response = refused.value.response
        assert response.status_code == 421
        assert response.headers["Herdgate-Shard"] == "3"
        await until(lambda: len(errors) == 1, "the app has heard of it")


async def test_peer_that_does_not_read_keeps_nobody_from_being_closed() -> None:
    stuck: list[BaseException] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return
        await receive()
        await send({"type": "websocket.accept"})
        try:
            while True:
                await send({"type": "websocket.send", "bytes": bytes(65_536)})
        except OSError as error:
            stuck.append(error)

    async with serving(app) as worker, worker.open(3) as client:
        transport: Any = client.transport
        transport.pause_reading()
        await asyncio.sleep(0.3)
        await lose(worker, 3)
        await until(lambda: len(stuck) == 1, "whoever waits to send gets to know")
        assert worker.duty.load() == 0


async def test_without_a_right_nothing_is_heard_even_before_anybody_says_so() -> None:
    board = Board()
    async with serving(board) as worker, worker.open(3) as client:
        assert worker.owner.life is not None
        worker.owner.life.right.ends_at = 0.0  # as after a long pause of the process
        await client.send("hello")
        assert await closed(client) == (1012, "shard moved")
        await until(lambda: id_in(3) in board.ends, "the app has ended")


async def test_case_4_10_table_that_is_away_closes_sockets_when_the_right_ends_and_not_before() -> None:
    async with serving(Board(), lease_s=1.5) as worker, worker.open(3) as client:
        life = worker.owner.life
        assert life is not None
        worker.table.is_away = True
        await client.send("hello")
        assert await client.recv() == "hello"
        assert await closed(client) == (1012, "shard moved")
        assert life.clock.now() >= life.right.ends_at - 0.5
        worker.table.is_away = False
        await until(lambda: worker.owner.epoch(3) is not None, "it is found again")
        async with worker.open(3) as again:
            await again.send("hello")
            assert await again.recv() == "hello"


async def test_loss_of_all_shards_closes_many_sockets_at_once() -> None:
    board = Board()
    async with serving(board, capacity=500) as worker:
        names = [id_in(number % 8) for number in range(200)]
        clients = [await worker.open(number % 8) for number in range(len(names))]
        for shard in range(8):
            await lose(worker, shard)
        assert {await closed(client) for client in clients} == {(1012, "shard moved")}
        await until(lambda: worker.duty.load() == 0, "none is left")


def deaf(cancelled: list[str], *, accepts: bool) -> Callable[[Scope, Receive, Send], object]:
    """An app that does not notice that its client has left."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return
        if accepts:
            await send({"type": "websocket.accept"})
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(scope["state"]["connection"].id)
            raise

    return app


async def leave(worker: Working, *, accepts: bool, says: int = 0) -> None:
    """Come in, say so much, and leave without a word."""
    if accepts:
        client = await worker.open(3)
        for _ in range(says):
            await client.send("nobody reads this")
        client.transport.abort()
        return
    opening = asyncio.ensure_future(worker.open(3).__aenter__())
    await until(lambda: worker.duty.load() == 1, "it is in")
    opening.cancel()
    await asyncio.wait([opening])


@pytest.mark.parametrize(
    ("accepts", "says"), [(True, 0), (True, 3), (False, 0)], ids=["silent", "unread", "unanswered"]
)
async def test_room_of_a_client_that_has_left_is_free_whatever_its_app_does(accepts: bool, says: int) -> None:
    cancelled: list[str] = []
    async with serving(deaf(cancelled, accepts=accepts), capacity=1, redis="redis://127.0.0.1:1") as worker:
        report = worker.duty._report
        assert report is not None
        for _ in range(2):
            await leave(worker, accepts=accepts, says=says)
            await until(lambda: worker.duty.load() == 0, "its room is free")
            assert report.state == "UP"
            assert dict(worker.duty.weights()) == {}
        assert cancelled == [], "its app has a while to notice"


async def test_app_that_outlasts_its_client_is_cancelled_and_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sockets, "APP_S", 0.3)
    sockets._say_cancelled.cache_clear()
    cancelled: list[str] = []
    told, logger = Errors(), logging.getLogger("herdgate.worker")
    async with serving(deaf(cancelled, accepts=True)) as worker:
        logger.addHandler(told)
        for number in (1, 2):
            await leave(worker, accepts=True)
            await until(lambda number=number: len(cancelled) == number, "its app is cancelled")  # type: ignore[misc]
        assert worker.duty.load() == 0
    logger.removeHandler(told)
    assert ["has not ended" in record.getMessage() for record in told.seen] == [True]


async def test_who_leaves_and_then_loses_its_shard_is_counted_once() -> None:
    cancelled: list[str] = []
    async with serving(deaf(cancelled, accepts=True)) as worker:
        await leave(worker, accepts=True)
        await until(lambda: worker.duty.load() == 0, "its room is free")
        async with worker.open(3) as client:
            await lose(worker, 3)
            assert await closed(client) == (1012, "shard moved")
        assert worker.duty.load() == 0
