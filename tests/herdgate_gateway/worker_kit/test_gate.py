"""Who comes in to a worker: a test plays the gateway, on a real socket."""

import asyncio
import json

import pytest

from tests.herdgate_gateway.worker_kit.serving_worker import OTHER, Board, Table, Working, id_in, serving, stamp, until
from tests.wire import Answer, ask, eventually, knock


def told(answer: Answer) -> tuple[int, str | None, str | None, str | None]:
    """Status, shard, epoch, owner; what stands in headers and body is the same."""
    body, headers = answer.json(), answer.headers
    assert body["reason"] == "not_owner"
    assert (str(body["shard"]), str(body["epoch"])) == (headers["herdgate-shard"], headers["herdgate-epoch"])
    assert body["owner"] == headers.get("herdgate-owner")
    assert headers["retry-after"] == "1"
    assert headers["cache-control"] == "no-store"
    assert headers["content-type"] == "application/json"
    return answer.status, headers["herdgate-shard"], headers["herdgate-epoch"], headers.get("herdgate-owner")


async def test_socket_with_my_epoch_is_served_and_finds_what_it_is() -> None:
    board = Board()
    async with serving(board) as worker, worker.open(3) as client:
        await client.send("hello")
        assert await client.recv() == "hello"
        state = board.states[id_in(3)]
        assert (state["shard"], state["epoch"]) == (3, worker.epoch(3))
        assert (state["connection"].id, state["connection"].shard) == (id_in(3), 3)
        assert state["checkpoint"] == state["connection"].checkpoint


async def test_nothing_is_written_or_read_for_a_socket_whose_app_asks_for_nothing() -> None:
    async with serving(Board()) as worker:
        async with worker.open(3) as client:
            await client.send("hello")
            await client.recv()
        assert not [write for write in worker.table.written if write.key.sk.startswith("C#")]
        assert worker.table.strong_reads == 0


async def test_plain_requests_pass_without_a_stamp_and_without_a_state() -> None:
    async with serving(Board()) as worker:
        answer = await ask(worker.port, "/health")
        assert (answer.status, answer.body) == (200, b"[]")


@pytest.mark.parametrize("missing", ["Herdgate-Connection-Id", "Herdgate-Shard", "Herdgate-Epoch"])
async def test_handshake_without_a_stamp_has_no_gateway_in_front(missing: str) -> None:
    async with serving(Board()) as worker:
        pairs = [pair for pair in stamp(3, worker.epoch(3)) if pair[0] != missing]
        answer = await knock(worker.port, "/", headers=pairs)
        assert answer.status == 400
        assert answer.json()["error"].startswith("this worker serves gateways of its fleet only: ")


async def test_lower_epoch_is_refused_with_mine_and_without_a_read() -> None:
    async with serving(Board()) as worker:
        await worker.table.own(3, worker.row, 9)
        async with worker.open(3, 9):
            pass
        reads = worker.table.strong_reads
        assert told(await worker.knock(3, 8)) == (421, "3", "9", "w")
        assert worker.table.strong_reads == reads


async def test_higher_epoch_that_is_mine_is_adopted_and_served() -> None:
    async with serving(Board()) as worker:
        await worker.table.own(3, worker.row, 9)
        async with worker.open(3, 9) as client:
            await client.send("hello")
            assert await client.recv() == "hello"
        assert worker.epoch(3) == 9


async def test_higher_epoch_of_somebody_else_is_refused_with_its_owner() -> None:
    async with serving(Board()) as worker:
        await worker.table.own(3, OTHER, 9)
        assert told(await worker.knock(3, 9)) == (421, "3", "9", "other")
        assert worker.owner.epoch(3) is None, "what the table gives to somebody else is dropped"


async def test_shard_that_was_found_to_be_mine_with_a_lower_epoch_is_refused_with_that() -> None:
    async with serving(Board()) as worker:
        assert told(await worker.knock(3, 9)) == (421, "3", str(worker.epoch(3)), "w")


async def test_shard_that_is_frozen_is_refused_with_its_epoch_and_no_owner() -> None:
    table = Table()
    async with serving(Board(), table=table) as worker, serving(Board(), table=table, name="v", waits=False) as other:
        await until(lambda: other.owner.life is not None and other.owner.life.may_act(), "the other one is up")
        shard, epoch = worker.owner.held[0], worker.epoch(worker.owner.held[0])
        await asyncio.sleep(0.3)  # both have seen each other
        table.holds = lambda write: write.key.sk == "@"
        giving = asyncio.ensure_future(worker.owner.give([shard]))
        await until(lambda: worker.owner.epoch(shard) is None, "it is frozen")
        assert told(await worker.knock(shard, epoch)) == (421, str(shard), str(epoch), None)
        table.holds = lambda write: False
        await giving
        assert told(await worker.knock(shard, epoch)) == (421, str(shard), str(epoch), None)
        assert told(await worker.knock(shard, epoch + 1)) == (421, str(shard), str(epoch + 1), "v")


async def test_reads_for_one_shard_are_shared() -> None:
    async with serving(Board()) as worker:
        before, epoch = worker.table.strong_reads, worker.epoch(3) + 1
        worker.table.reads_hang = True
        answers = await asyncio.gather(*(worker.knock(3, epoch) for _ in range(20)))
        assert {answer.status for answer in answers} == {421}
        assert worker.table.strong_reads - before == 1


async def test_table_that_does_not_answer_costs_half_a_second_and_tells_what_is_known() -> None:
    async with serving(Board()) as worker:
        loop = asyncio.get_running_loop()
        worker.table.reads_hang = True
        began, epoch = loop.time(), worker.epoch(3)
        assert told(await worker.knock(3, epoch + 1)) == (421, "3", str(epoch), "w")
        assert 0.4 < loop.time() - began < 8


async def test_table_that_is_away_stops_nobody_with_an_epoch_that_is_known() -> None:
    async with serving(Board(), lease_s=5.0) as worker:
        worker.table.is_away = True
        async with worker.open(3) as client:
            await client.send("hello")
            assert await client.recv() == "hello"
        assert told(await worker.knock(3, worker.epoch(3) + 1))[0] == 421


async def test_beyond_its_capacity_a_worker_refuses_and_counts_nobody_it_refuses() -> None:
    async with serving(Board(), capacity=2) as worker:
        for _ in range(3):
            assert (await worker.knock(3, 99)).status == 421
        async with worker.open(3), worker.open(4):
            answer = await worker.knock(5, worker.epoch(5))
            assert answer.status == 503
            assert answer.json() == {"error": "this worker takes 2 sockets, and has them", "reason": "full"}
            assert 1_000 <= int(answer.headers["herdgate-retry-ms"]) <= 2_000
            assert answer.headers["retry-after"] == "2"
        await until(lambda: worker.duty.load() == 0, "both have left")
        assert (await worker.knock(5, worker.epoch(5))).status == 101


async def test_load_of_the_beats_is_its_sockets() -> None:
    async def is_told(worker: Working) -> bool:
        row = await worker.table.worker("w")
        return row is not None and row.load == 2

    async with serving(Board()) as worker, worker.open(3), worker.open(4):
        await eventually(lambda: is_told(worker), "a beat tells of two")


async def test_answers_are_one_json_object_whatever_is_refused() -> None:
    async with serving(Board(), capacity=0) as worker:
        for headers in (stamp(3, worker.epoch(3)), stamp(3, 99), []):
            answer = await knock(worker.port, "/", headers=headers)
            assert set(json.loads(answer.body)) >= {"error", "reason"}
