"""What an app may do with the lease table for its socket."""

import asyncio
from typing import Any

import pytest

from herdgate_gateway.leases.acts import claim
from herdgate_gateway.leases.effects import NotOwnerError, UnknownOutcomeError
from herdgate_gateway.leases.table import Done
from herdgate_gateway.worker_kit.errors import NoSuchConnectionError
from tests.herdgate_gateway.worker_kit.serving_worker import FLEET, Board, Table, Working, id_in, serving

NAME = id_in(3)


async def state_of(worker: Working, board: Board, client: Any) -> Any:
    await client.send("hello")
    await client.recv()
    return board.states[NAME]


def claims(table: Table) -> int:
    return sum(write.key.sk == f"C#{NAME}" and "epoch" in write.sets for write in table.written)


async def test_record_claims_once_and_tells_how_far_it_has_come() -> None:
    board = Board()
    async with serving(board) as worker, worker.open(3) as client:
        await worker.table.make_connection(NAME, last_seq=41)
        state = await state_of(worker, board, client)
        rows = await asyncio.gather(*(state["connection"].record() for _ in range(5)))
        assert {(row.last_seq, row.epoch, row.want) for row in rows} == {(41, worker.epoch(3), "STARTED")}
        assert claims(worker.table) == 1


async def test_connection_without_a_row_has_no_record_and_no_checkpoint() -> None:
    board = Board()
    async with serving(board) as worker, worker.open(3) as client:
        state = await state_of(worker, board, client)
        assert await state["connection"].record() is None
        with pytest.raises(NoSuchConnectionError, match=NAME):
            await state["checkpoint"](1)
        assert await worker.table.connection(NAME) is None
        await worker.table.make_connection(NAME)
        assert await state["connection"].record() is not None


async def test_checkpoint_claims_first_and_never_goes_back() -> None:
    board = Board()
    async with serving(board) as worker, worker.open(3) as client:
        await worker.table.make_connection(NAME)
        state = await state_of(worker, board, client)
        for seq in (5, 7, 6):
            await state["checkpoint"](seq)
        row = await worker.table.connection(NAME)
        assert row is not None
        assert (row.last_seq, row.epoch) == (7, worker.epoch(3))
        assert claims(worker.table) == 1


async def test_owner_of_before_changes_nothing_any_more() -> None:
    board = Board()
    async with serving(board) as worker, worker.open(3) as client:
        await worker.table.make_connection(NAME)
        state = await state_of(worker, board, client)
        await state["checkpoint"](5)
        async with worker.open(3) as second:
            has_not_claimed = await state_of(worker, board, second)
        assert isinstance(await worker.table.write(claim(FLEET, NAME, 50)), Done)  # as a later owner does
        with pytest.raises(NotOwnerError):
            await has_not_claimed["checkpoint"](6)
        with pytest.raises(NotOwnerError):
            await state["checkpoint"](6)
        row = await worker.table.connection(NAME)
        assert row is not None
        assert row.last_seq == 5


async def test_socket_of_an_older_epoch_does_not_act_with_the_newer_one() -> None:
    board = Board()
    async with serving(board) as worker, worker.open(3) as client:
        await worker.table.make_connection(NAME)
        state = await state_of(worker, board, client)
        await worker.table.own(3, worker.row, 9)
        await worker.owner.adopt(3)
        assert worker.epoch(3) == 9
        for act in (state["connection"].record(), state["checkpoint"](6)):
            with pytest.raises(NotOwnerError, match="changed hands"):
                await act
        assert claims(worker.table) == 0


async def test_table_that_does_not_answer_is_told_as_unknown() -> None:
    board = Board()
    async with serving(board) as worker, worker.open(3) as client:
        await worker.table.make_connection(NAME)
        state = await state_of(worker, board, client)
        worker.table.holds = lambda write: write.key.sk.startswith("C#")
        with pytest.raises(UnknownOutcomeError):
            await state["checkpoint"](1)
        with pytest.raises(UnknownOutcomeError):
            await state["connection"].record()
        worker.table.holds = lambda write: False
        await state["checkpoint"](1)
        row = await worker.table.connection(NAME)
        assert row is not None
        assert row.last_seq == 1
