"""`DynamoLeases` where DynamoDB is slow, silent, busy or refuses."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from herdgate_gateway.leases.acts import Write, beat, register
from herdgate_gateway.leases.conditions import ABSENT
from herdgate_gateway.leases.dynamo import DynamoLeases, Place, SetupError
from herdgate_gateway.leases.rows import Key, WorkerRow
from herdgate_gateway.leases.table import Done, TableError, Unknown
from tests.dynamodb import DynamoServer, dynamodb_server, set_credentials
from tests.herdgate_gateway.leases.dynamo.stand_in import Reply, StandIn, refusal, stand_in
from tests.herdgate_gateway.leases.dynamo.swallowing import swallowing_proxy
from tests.ministack import REGION

MINE = WorkerRow("w", "mine", None, "UP", 0, 3_000, "host:1", 100, 7)
WRITE = beat("fleet", "w", "mine", 7)
KEY = WRITE.key
LATE_S = 4.0  # a call has half a second; a busy machine may add to it

Answer = Callable[[str, dict[str, Any]], Reply]


@asynccontextmanager
async def leases(place: Place) -> AsyncIterator[DynamoLeases]:
    table = DynamoLeases(place)
    try:
        yield table
    finally:
        await table.aclose()


@asynccontextmanager
async def in_front_of(answer: Answer) -> AsyncIterator[tuple[DynamoLeases, StandIn]]:
    with pytest.MonkeyPatch.context() as patch:
        set_credentials(patch)
        with stand_in(answer) as server:
            async with leases(Place("herd", REGION, server.url)) as table:
                yield table, server


async def test_write_whose_reply_is_swallowed_is_unknown_and_was_done(place: Place, dynamodb: DynamoServer) -> None:
    async with swallowing_proxy(dynamodb.port) as proxy, leases(replace(place, endpoint_url=proxy.url)) as table:
        assert isinstance(await table.write(register("fleet", MINE, None)), Done)
        proxy.swallows = True
        began = time.monotonic()
        outcome = await table.write(WRITE)
        assert 0.45 < time.monotonic() - began < LATE_S
        assert isinstance(outcome, Unknown)
        assert outcome.why.endswith("no answer in time")
        assert proxy.swallowed > 0
        with pytest.raises(TableError, match="no answer in time"):
            await table.read(KEY, strong=True)
        proxy.swallows = False
        item = await table.read(KEY, strong=True)
        assert item is not None
        assert item["hb"] == 1  # done, once: the SDK did not try again


async def test_silent_server_ends_each_call_after_half_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    with dynamodb_server() as server:
        server.make_table("herd")
        async with leases(Place("herd", REGION, server.url)) as table:
            assert isinstance(await table.write(register("fleet", MINE, None)), Done)
            server.pause()
            began = time.monotonic()
            outcomes = await asyncio.gather(*(table.write(WRITE) for _ in range(70)))
            assert time.monotonic() - began < LATE_S
            assert all(isinstance(outcome, Unknown) for outcome in outcomes)
            for read in (table.read_many([KEY], strong=True), table.query(KEY.pk, strong=False)):
                with pytest.raises(TableError):
                    await read
            server.kill()
            outcome = await table.write(WRITE)
            assert isinstance(outcome, Unknown)
            assert "Could not connect" in outcome.why


async def test_reply_that_trickles_in_is_unknown_after_half_a_second_in_all(place: Place) -> None:
    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(b"HTTP/1.1 200 OK\r\nTrickling: ")
            while not writer.is_closing():
                writer.write(b".")
                await asyncio.sleep(0.1)
        finally:
            writer.close()

    async with await asyncio.start_server(trickle, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with leases(replace(place, endpoint_url=f"http://127.0.0.1:{port}")) as table:
            began = time.monotonic()
            assert isinstance(await table.write(WRITE), Unknown)
            assert 0.45 < time.monotonic() - began < LATE_S


async def test_making_the_client_is_not_part_of_the_half_second(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from herdgate_gateway.leases.dynamo import client

    load = client._session

    def slow(region: str | None) -> Any:
        time.sleep(0.6)
        return load(region)

    monkeypatch.setattr(client, "_session", slow)
    async with leases(place) as table:
        assert await asyncio.gather(*(table.read(KEY, strong=True) for _ in range(3))) == [None] * 3


@pytest.mark.parametrize(
    "reply",
    [
        refusal("ThrottlingException"),
        refusal("ProvisionedThroughputExceededException"),
        refusal("InternalServerError", status=500),
        refusal("TransactionConflictException"),
        Reply(503, "<html>busy</html>"),
        Reply(200, "no json"),
        Reply(200, {}),
        Reply(200, "[]"),
    ],
    ids=lambda reply: str(reply.body)[:60],
)
async def test_reply_that_says_nothing_is_unknown_and_asked_for_once(reply: Reply) -> None:
    async with in_front_of(lambda *_: reply) as (table, server):
        outcome = await table.write(WRITE)
        assert isinstance(outcome, Unknown)
        assert outcome.why.startswith(f"table herd at {server.url}: ")
        assert outcome.why.isprintable()
        assert len(server.asked) == 1


async def test_sixty_four_calls_are_under_way_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    all_there = threading.Barrier(64)

    def answer(operation: str, request: dict[str, Any]) -> Reply:
        all_there.wait(10)
        return Reply(200, {"Item": row(KEY)})

    with stand_in(answer) as server:
        table = DynamoLeases(Place("herd", REGION, server.url), call_s=10)
        found = await asyncio.gather(*(table.read(KEY, strong=True) for _ in range(64)))
        await table.aclose()
    assert found == [KEY._asdict()] * 64


async def test_what_has_to_be_mended_is_told_by_reads_and_writes_alike() -> None:
    async with in_front_of(lambda *_: refusal("AccessDeniedException", "User: x is not authorized")) as (table, _):
        outcome = await table.write(WRITE)
        assert isinstance(outcome, Unknown)
        for read in (
            table.read(KEY, strong=True),
            table.read_many([KEY], strong=True),
            table.query(KEY.pk, strong=True),
        ):
            with pytest.raises(SetupError) as raised:
                await read
            assert str(raised.value) == outcome.why
        assert "access denied (AccessDeniedException: User: x is not authorized); docs/leases.md" in outcome.why


async def test_missing_table_names_the_command_that_makes_it(place: Place) -> None:
    async with leases(replace(place, table="none-such")) as table:
        with pytest.raises(SetupError, match="create it: herdgate leases init --table none-such --region us-east-1"):
            await table.read(KEY, strong=True)
        assert "herdgate leases init" in str(await table.write(WRITE))


async def test_no_credentials_are_told_each_time_and_found_once_they_are_there(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    async with leases(place) as table:
        for _ in range(2):
            with pytest.raises(SetupError, match="no AWS credentials"):
                await table.read(KEY, strong=True)
        assert "no AWS credentials" in str(await table.write(WRITE))
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
        assert await table.read(KEY, strong=True) is None


async def test_no_region_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    async with leases(Place(place.table)) as table:
        with pytest.raises(SetupError, match=r"no usable region .* set AWS_DEFAULT_REGION"):
            await table.read(KEY, strong=True)


async def test_bad_value_of_a_write_is_raised_and_nothing_is_sent() -> None:
    async with in_front_of(lambda *_: Reply(200, {})) as (table, server):
        with pytest.raises(TypeError):
            await table.write(Write(KEY, ABSENT, {"n": 0.5}))
        assert server.asked == []


def row(key: Key) -> dict[str, Any]:
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


async def test_keys_left_out_are_asked_for_again_until_all_are_there() -> None:
    keys = [Key("p", str(number)) for number in range(250)]

    def answer(operation: str, request: dict[str, Any]) -> Reply:
        asked = request["RequestItems"]["herd"]
        assert asked["ConsistentRead"] is True
        now, later = asked["Keys"][:40], asked["Keys"][40:]
        left = {"herd": {**asked, "Keys": later}} if later else {}
        return Reply(200, {"Responses": {"herd": now}, "UnprocessedKeys": left})

    async with in_front_of(answer) as (table, server):
        assert list(await table.read_many(keys, strong=True)) == keys
    assert [len(request["RequestItems"]["herd"]["Keys"]) for _, request in server.asked] == [
        *(100, 60, 20),
        *(100, 60, 20),
        *(50, 10),
    ]


async def test_keys_left_out_again_and_again_are_an_error_in_the_end() -> None:
    def answer(operation: str, request: dict[str, Any]) -> Reply:
        return Reply(200, {"Responses": {}, "UnprocessedKeys": request["RequestItems"]})

    async with in_front_of(answer) as (table, server):
        with pytest.raises(TableError, match="too busy to read 2 rows"):
            await table.read_many([KEY, Key("p", "q")], strong=False)
    assert len(server.asked) == 10


async def test_query_goes_on_where_the_last_page_ended_even_an_empty_one() -> None:
    pages = {None: ([0, 1], 1), 1: ([], 2), 2: ([3], None)}

    def answer(operation: str, request: dict[str, Any]) -> Reply:
        start = request.get("ExclusiveStartKey")
        numbers, last = pages[int(start["sk"]["S"]) if start else None]
        body: dict[str, Any] = {"Items": [row(Key("p", str(number))) for number in numbers]}
        return Reply(200, body if last is None else {**body, "LastEvaluatedKey": row(Key("p", str(last)))})

    async with in_front_of(answer) as (table, server):
        assert [item["sk"] for item in await table.query("p", prefix="C#", strong=True)] == ["0", "1", "3"]
    assert [request["ConsistentRead"] for _, request in server.asked] == [True] * 3


async def test_client_that_was_warmed_up_is_the_one_that_is_used(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with leases(place) as table:
        await table.warm_up()
        monkeypatch.delenv("AWS_ACCESS_KEY_ID")
        await table.warm_up()
        assert await table.read(KEY, strong=True) is None
    async with leases(place) as table:
        with pytest.raises(SetupError, match="no AWS credentials"):
            await table.warm_up()


async def test_call_that_is_cancelled_leaves_the_table_usable(place: Place) -> None:
    async with leases(place) as table:
        opening = asyncio.create_task(table.read(KEY, strong=True))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert await table.read(KEY, strong=True) is None
