"""Workers and owners, for people."""

import pytest

from herdgate_gateway.leases.listing import owners_text, ownership, shown_shards, workers_text
from herdgate_gateway.leases.rows import ShardRow, WorkerRow, WorkerState


def worker(name: str, inc: str, st: WorkerState = "UP") -> WorkerRow:
    return WorkerRow(name, inc, None, st, 1_234, 3_000, "host:1", 4_000, 17)


def shard(number: int, inc: str, owner: str = "w1") -> ShardRow:
    return ShardRow(number, owner, inc, "host:1", 1)


def test_owner_is_the_life_and_not_the_name() -> None:
    rows = [shard(2, "i1"), shard(1, "i1"), shard(3, "i0"), shard(4, "i2", "w2"), shard(5, "i3", "w3")]
    found = ownership(rows, [worker("w1", "i1"), worker("w2", "i2", "DRAINING"), worker("w3", "i3", "DEAD")])
    assert found.owners == {"w1": [1, 2], "w2": [4]}
    assert found.orphans == [shard(3, "i0"), shard(5, "i3", "w3")]
    assert found.unowned == 1_019


def test_worker_that_owns_nothing_is_an_owner_of_nothing() -> None:
    found = ownership([], [worker("w1", "i1")])
    assert found.as_dict() == {"owners": {"w1": []}, "orphans": [], "unowned": 1_024}
    assert owners_text(found).splitlines() == [
        "worker         count  shards",
        "w1             0",
        "(never owned)  1024",
    ]


def test_owners_are_a_line_each_then_what_nobody_runs() -> None:
    rows = [shard(number, "i1") for number in range(1_022)] + [shard(1_022, "i0"), shard(1_023, "i0")]
    assert owners_text(ownership(rows, [worker("w1", "i1")])).splitlines() == [
        "worker  count  shards",
        "w1      1022   0-1021",
        "(dead)  2      1022-1023",
    ]


def test_owners_of_many_ranges_keep_to_a_line_as_text_and_are_whole_as_json() -> None:
    mine = list(range(0, 1_024, 2))
    found = ownership([shard(number, "i1") for number in mine], [worker("w1", "i1")])
    line = owners_text(found).splitlines()[1]
    assert line.startswith("w1             512    0, 2, ")
    assert line.endswith(", ...")
    assert len(line) < 120
    assert found.as_dict()["owners"] == {"w1": mine}


@pytest.mark.parametrize(
    ("shards", "shown"),
    [
        ([], ""),
        ([7], "7"),
        ([1, 2], "1-2"),
        ([1, 2, 3, 5, 7, 8], "1-3, 5, 7-8"),
        ([0, 2, 4], "0, 2, 4"),
        (list(range(0, 20, 2)), "0, 2, 4, 6, 8, 10, 12, 14, 16, 18"),
        (list(range(0, 22, 2)), "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, ..."),
    ],
)
def test_shards_are_shown_in_runs(shards: list[int], shown: str) -> None:
    assert shown_shards(shards) == shown


def test_workers_are_a_line_each() -> None:
    tombstone = WorkerRow.of({"pk": "p", "sk": "w10", "inc": "i2", "st": "DEAD"})
    assert workers_text([worker("w1", "i1"), tombstone]).splitlines() == [
        "worker  state  inc  beats  address  capacity  load",
        "w1      UP     i1   1,234  host:1   4,000     17",
        "w10     DEAD   i2   0      -        0         0",
    ]
    assert workers_text([]) == "no workers"
