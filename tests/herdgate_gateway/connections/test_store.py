"""Connections as they shall be, on both tables."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pytest

from herdgate_gateway.connections.store import KEPT_S, Connections
from herdgate_gateway.errors import ConfigurationError
from herdgate_gateway.leases.acts import Write, checkpoint, claim
from herdgate_gateway.leases.memory import MemoryLeases
from herdgate_gateway.leases.rows import ConnectionRow, connection_key, shard_of
from herdgate_gateway.leases.table import Done, LeaseTable, Outcome, TableError, Unknown
from tests.herdgate_gateway.leases.conftest import dynamodb, table

__all__ = ["dynamodb", "table"]

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOW = 1_800_000_000.7


class Told:
    """News that are kept."""

    def __init__(self) -> None:
        self.shards: list[set[int]] = []
        self.is_up = True

    async def publish(self, news: Mapping[str, Any]) -> bool:
        self.shards.append(set(news["wants"]))
        return self.is_up

    async def aclose(self) -> None: ...


class Store:
    """A store of a fleet of its own."""

    def __init__(self, table: LeaseTable) -> None:
        self.table, self.fleet, self.told = table, str(uuid4()), Told()
        self.store = Connections(table, self.fleet, self.told, unix_time=lambda: NOW)

    async def ttl(self, name: str) -> object:
        item = await self.table.read(connection_key(self.fleet, name), strong=True)
        assert item is not None
        return item.get("ttl")


async def test_started_ones_are_there(table: LeaseTable) -> None:
    it = Store(table)
    rows = await it.store.start(["b", "a", "b"], {"n": [1, True]})
    assert rows == {name: ConnectionRow(name, "STARTED", None, None, {"n": [1, True]}) for name in ("b", "a")}
    assert list(rows) == ["b", "a"]
    assert await it.store.get_many(["a", "none", "b"]) == rows
    assert await it.store.get("a") == rows["a"]
    assert await it.store.get("none") is None
    assert it.told.shards == [{shard_of("a"), shard_of("b")}]


async def test_workers_that_could_not_be_told_are_known_of(table: LeaseTable) -> None:
    it = Store(table)
    await it.store.start(["a"])
    assert it.store.could_tell
    it.told.is_up = False
    await it.store.stop(["a"])
    assert not it.store.could_tell


async def test_start_again_keeps_attrs_and_progress(table: LeaseTable) -> None:
    it = Store(table)
    await it.store.start(["a"], {"n": 1})
    for write in (claim(it.fleet, "a", 4), checkpoint(it.fleet, "a", 4, 17)):
        assert isinstance(await table.write(write), Done)
    for _ in range(2):
        assert await it.store.start(["a"]) == {"a": ConnectionRow("a", "STARTED", 4, 17, {"n": 1})}
    assert await it.store.start(["a"], {}) == {"a": ConnectionRow("a", "STARTED", 4, 17, {})}


async def test_stopped_one_is_garbage_after_a_day_unless_it_is_started_again(table: LeaseTable) -> None:
    it = Store(table)
    await it.store.start(["a"], {"n": 1})
    assert await it.ttl("a") is None
    for _ in range(2):
        assert await it.store.stop(["a", "none"]) == {"a": ConnectionRow("a", "STOPPED", None, None, {"n": 1})}
    assert await it.ttl("a") == int(NOW) + KEPT_S
    assert await it.store.get("none") is None
    await it.store.start(["a"])
    assert await it.ttl("a") is None


async def test_all_are_listed_in_the_order_of_their_shards(table: LeaseTable) -> None:
    it = Store(table)
    names = [str(number) for number in range(70)]
    await it.store.start(names)
    await it.store.stop(names[:20])
    listed = [row.id async for row in it.store.list()]
    assert sorted(listed) == sorted(names)
    assert [shard_of(name) for name in listed] == sorted(map(shard_of, names))
    assert {row.id async for row in it.store.list("STOPPED")} == set(names[:20])
    assert [row.id async for row in it.store.list(limit=7)] == listed[:7]
    assert len([row async for row in it.store.list("STARTED", 60)]) == 50
    assert [row async for row in Store(table).store.list()] == []


@pytest.mark.parametrize("act", ["start", "stop", "get_many"])
async def test_one_id_that_is_none_and_nothing_is_done(act: str) -> None:
    it = Store(MemoryLeases())
    with pytest.raises(ConfigurationError, match="connection id: got a b"):
        await getattr(it.store, act)(["a", "a b"])
    assert await it.store.get("a") is None
    assert it.told.shards == []


async def test_attrs_that_cannot_be_and_nothing_is_done() -> None:
    it = Store(MemoryLeases())
    with pytest.raises(ConfigurationError, match="attrs: got"):
        await it.store.start(["a"], {"n": 1.5})
    assert await it.store.get("a") is None


class Flaky(MemoryLeases):
    """The first writes come out unknown."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.left = times

    async def write(self, write: Write) -> Outcome:
        outcome = await super().write(write)
        self.left -= 1
        return outcome if self.left < 0 else Unknown("no answer in time")


async def test_write_that_nobody_knows_of_is_made_again() -> None:
    it = Store(Flaky(2))
    assert set(await it.store.start(["a"])) == {"a"}


async def test_writes_that_nobody_ever_knows_of_are_told_and_so_are_the_workers() -> None:
    it = Store(Flaky(1_000_000))
    with pytest.raises(TableError, match="no answer in time"):
        await it.store.start(["a", "b"])
    assert it.told.shards == [{shard_of("a"), shard_of("b")}], "they may have been done"
