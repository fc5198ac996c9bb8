"""What a second socket of one connection does at its worker, by the word of the route."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.exceptions import InvalidHandshake, InvalidStatus

from herdgate.asgi import Receive, Scope, Send
from herdgate_gateway.leases.rows import shard_of
from herdgate_gateway.worker_kit import line
from tests.herdgate_gateway.worker_kit.serving_worker import Board, Working, closed, id_in, lose, serving, until
from tests.wire import Answer

REPLACED = (1008, '{"reason":"replaced","reconnect":false}')


class Choosy(Board):
    """Accepts a socket once it may; refuses those that are not to come in.

    Attributes:
        may: set while it accepts.
        refuses: it does not accept any more.
    """

    def __init__(self) -> None:
        super().__init__()
        self.may = asyncio.Event()
        self.may.set()
        self.refuses = False
        self.waiting = 0

    async def _talk(self, state: Any, receive: Receive, send: Send) -> None:
        self.waiting += 1
        await self.may.wait()
        if self.refuses:
            await receive()
            await send({"type": "websocket.close"})
        else:
            await super()._talk(state, receive, send)


async def echoes(client: Any) -> bool:
    await client.send("hello")
    return bool(await asyncio.wait_for(client.recv(), 10) == "hello")


async def held_at_the_app(worker: Working, board: Choosy) -> asyncio.Task[Answer]:
    """A second socket, which its app has not accepted yet."""
    board.may.clear()
    arriving = asyncio.ensure_future(worker.knock(3, worker.epoch(3), duplicates="replace"))
    await until(lambda: board.waiting == 2, "the second one waits for the app")
    return arriving


def faltering(*answer: Any) -> Any:
    """An app that accepts the first socket, echoes, and gives each later one this answer."""
    first = Board()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket" or not first.states:
            await first(scope, receive, send)
            return
        await receive()
        for message in answer:
            await send(message)

    return app


class Pouring(Board):
    """Sends to its first socket until it is told that it is over."""

    async def _talk(self, state: Any, receive: Receive, send: Send) -> None:
        if self.states:
            await super()._talk(state, receive, send)
            return
        self.states[state["connection"].id] = state
        await receive()
        await send({"type": "websocket.accept"})
        while True:
            await send({"type": "websocket.send", "bytes": bytes(65_536)})


@asynccontextmanager
async def replaced_without_reading(worker: Working) -> AsyncIterator[Any]:
    """A socket that did not read what its app sends, and is replaced."""
    async with worker.open(3, duplicates="replace", max_size=None) as first:
        transport: Any = first.transport
        transport.pause_reading()
        server = next(each for each in worker.duty._server.server_state.connections if isinstance(each, line.Line))
        await until(lambda: not server.writable.is_set(), "its app waits to send")
        async with worker.open(3, duplicates="replace") as second:
            assert await echoes(second)
            assert worker.duty.load() == 1
            yield first


@pytest.mark.parametrize("duplicates", [None, "allow"])
async def test_second_socket_comes_in_too_where_nobody_objects(duplicates: str | None) -> None:
    async with (
        serving(Board()) as worker,
        worker.open(3, duplicates=duplicates) as first,
        worker.open(3, duplicates=duplicates) as second,
    ):
        assert await echoes(first)
        assert await echoes(second)
        assert worker.duty.load() == 2


async def test_second_socket_replaces_the_first_whose_app_is_told() -> None:
    board = Board()
    async with (
        serving(board) as worker,
        worker.open(3, duplicates="replace") as first,
        worker.open(3, duplicates="replace") as second,
    ):
        assert await closed(first) == REPLACED
        await until(lambda: id_in(3) in board.raised, "the first one's app has tried to send")
        code, reason = REPLACED
        assert board.ends[id_in(3)] == {"type": "websocket.disconnect", "code": code, "reason": reason}
        assert isinstance(board.raised[id_in(3)], OSError)
        assert await echoes(second)
        assert worker.duty.load() == 1


async def test_second_socket_is_refused_with_a_time_until_the_first_has_ended() -> None:
    async with serving(Board()) as worker:
        async with worker.open(3, duplicates="refuse") as first:
            answer = await worker.knock(3, worker.epoch(3), duplicates="refuse")
            assert answer.status == 409
            assert answer.json() == {"error": f"connection {id_in(3)} has a socket already", "reason": "duplicate"}
            assert 5_000 <= int(answer.headers["herdgate-retry-ms"]) <= 10_000
            assert 5 <= int(answer.headers["retry-after"]) <= 10
            assert await echoes(first)
            assert worker.duty.load() == 1
        await until(lambda: worker.duty.load() == 0, "the first one has left")
        async with worker.open(3, duplicates="refuse") as next_one:
            assert await echoes(next_one)


@pytest.mark.parametrize("duplicates", ["refuse", "replace"])
async def test_other_connections_of_the_shard_are_left_alone(duplicates: str) -> None:
    async with serving(Board()) as worker:
        other = next(name for name in map(str, range(100_000)) if name != id_in(3) and shard_of(name) == 3)
        async with worker.open(3, duplicates=duplicates) as one, worker.open(3, None, other, duplicates) as two:
            assert await echoes(one)
            assert await echoes(two)


async def test_who_the_app_refuses_replaces_nobody() -> None:
    board = Choosy()
    async with serving(board) as worker, worker.open(3, duplicates="replace") as first:
        board.refuses = True
        answer = await worker.knock(3, worker.epoch(3), duplicates="replace")
        assert answer.status == 403
        assert await echoes(first)


async def test_of_two_that_wait_for_the_app_one_comes_in() -> None:
    board = Choosy()
    board.may.clear()
    async with serving(board) as worker:
        both = [asyncio.ensure_future(worker.knock(3, worker.epoch(3), duplicates="refuse")) for _ in range(2)]
        await until(lambda: board.waiting == 2, "both wait for the app")
        board.may.set()
        assert sorted([(await each).status for each in both]) == [101, 409]


async def test_nobody_is_replaced_for_a_client_that_has_left_meanwhile() -> None:
    board = Choosy()
    async with serving(board) as worker, worker.open(3, duplicates="replace") as first:
        arriving = await held_at_the_app(worker, board)
        arriving.cancel()
        await until(lambda: worker.duty.load() == 1, "the second one has left")
        board.may.set()
        assert await echoes(first)


async def test_nobody_is_replaced_by_a_worker_that_has_lost_the_shard() -> None:
    board = Choosy()
    async with serving(board) as worker, worker.open(3, duplicates="replace") as first:
        arriving = await held_at_the_app(worker, board)
        await lose(worker, 3)
        board.may.set()
        assert (await arriving).status == 421
        assert await closed(first) == (1012, "shard moved")


async def test_an_app_that_has_said_goodbye_has_made_room() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            await receive()
            await send({"type": "websocket.close", "code": 4000})

    async with serving(app) as worker, worker.open(3, duplicates="refuse") as first:
        await first.send("bye")
        assert (await closed(first))[0] == 4000
        async with worker.open(3, duplicates="refuse"):
            pass


async def test_framework_that_is_refused_at_its_accept_sees_a_client_that_is_gone() -> None:
    from starlette.applications import Starlette
    from starlette.routing import WebSocketRoute
    from starlette.websockets import WebSocket

    seen: list[BaseException] = []

    async def talk(socket: WebSocket) -> None:
        try:
            await socket.accept()
        except Exception as error:
            seen.append(error)
            raise
        async for text in socket.iter_text():
            await socket.send_text(text)

    async with (
        serving(Starlette(routes=[WebSocketRoute("/", talk)])) as worker,
        worker.open(3, duplicates="refuse") as first,
    ):
        with pytest.raises(InvalidStatus) as refused:
            async with worker.open(3, duplicates="refuse"):
                pass
        assert json.loads(refused.value.response.body)["reason"] == "duplicate"
        assert [isinstance(error, OSError) for error in seen] == [True]
        assert await echoes(first)


BROKEN_ACCEPT = {"type": "websocket.accept", "headers": [(b"x", b"\n")]}
DENIAL = {"type": "websocket.http.response.start", "status": 418, "headers": []}
ACCEPT = {"type": "websocket.accept"}


@pytest.mark.parametrize("duplicates", ["replace", "refuse"])
@pytest.mark.parametrize(
    "answer", [(BROKEN_ACCEPT,), (DENIAL, ACCEPT), (DENIAL, {"type": "websocket.http.response.body", "body": b"no"})]
)
async def test_who_does_not_get_in_after_all_pushes_nobody_out(answer: Any, duplicates: str) -> None:
    async with serving(faltering(*answer)) as worker, worker.open(3, duplicates=duplicates) as first:
        with contextlib.suppress(InvalidHandshake):
            await worker.knock(3, worker.epoch(3), duplicates=duplicates)
        await until(lambda: worker.duty.load() == 1, "the second one has left")
        assert await echoes(first)


async def test_second_accept_of_one_socket_replaces_nobody() -> None:
    raised: list[Exception] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            return
        await receive()
        await send(ACCEPT)
        while (message := await receive())["type"] == "websocket.receive":
            if message["text"] == "again":
                try:
                    await send(ACCEPT)
                except RuntimeError as error:
                    raised.append(error)
            await send({"type": "websocket.send", "text": "hello"})

    async with serving(app) as worker:
        for duplicates in ("replace", "refuse"):  # as after a reload: the second one may be beside it
            async with worker.open(3, duplicates=duplicates) as first, worker.open(3) as second:
                await first.send("again")
                assert await first.recv() == "hello"
                assert await echoes(second)
    assert len(raised) == 2


async def test_slow_reader_hears_that_it_was_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "CLOSE_S", 0.1)
    async with serving(Pouring()) as worker, replaced_without_reading(worker) as first:
        await asyncio.sleep(0.5)  # it is the time that is tested
        first.transport.resume_reading()
        assert await closed(first) == REPLACED


async def test_replaced_peer_that_never_reads_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "CLOSE_S", 0.1)
    monkeypatch.setattr(line, "TAKE_S", 0.3)
    async with serving(Pouring()) as worker, replaced_without_reading(worker):
        connections = worker.duty._server.server_state.connections
        await until(lambda: len(connections) == 1, "only the second one is there")


@pytest.mark.parametrize("duplicates", ["replace", "refuse"])
async def test_of_a_crowd_of_one_connection_one_stays(duplicates: str) -> None:
    async with serving(Board()) as worker:
        opening = [worker.open(3, duplicates=duplicates) for _ in range(60)]
        came = await asyncio.gather(*opening, return_exceptions=True)
        clients = [each for each in came if not isinstance(each, BaseException)]
        refused = [each for each in came if isinstance(each, InvalidStatus)]
        assert len(clients) + len(refused) == 60
        assert {each.response.status_code for each in refused} <= {409}
        assert (len(clients) == 1) == (duplicates == "refuse")
        await until(lambda: worker.duty.load() == 1, "one is left")
        await until(lambda: sum(each.close_code is None for each in clients) == 1, "the others were closed")
        await asyncio.gather(*(each.close() for each in clients))
        await until(lambda: worker.duty.load() == 0, "all have left")
