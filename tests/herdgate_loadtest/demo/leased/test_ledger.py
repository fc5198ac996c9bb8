"""Who owns how many shards, by the news of the fleet."""

import json

import pytest

from herdgate_loadtest.demo.leased.ledger import Ledger
from herdgate_loadtest.servers.lease_table import SHARDS

HALF = SHARDS // 2


def gained(worker: str, *shards: int, epoch: int = 1) -> str:
    owner = {"worker": worker, "inc": f"inc-{worker}", "addr": "ws://127.0.0.1:1"}
    return json.dumps({"owner": owner, "epochs": {str(shard): epoch for shard in shards}})


def two_workers() -> Ledger:
    return Ledger({"one": range(HALF), "two": range(HALF, SHARDS)}, 0.5)


def test_it_begins_with_what_was_read() -> None:
    ledger = two_workers()
    assert (ledger.shards_of("one"), ledger.shards_of("two"), ledger.unowned) == (HALF, SHARDS - HALF, 0)
    assert (ledger.whole_at, ledger.moved_at) == (0.5, 0.5)


def test_shards_that_nobody_has_owned_yet_are_nobody_s() -> None:
    ledger = Ledger({"one": range(1, SHARDS)}, 0.5)
    assert (ledger.unowned, ledger.whole_at) == (1, None)
    ledger.hear(gained("two", 0), 7.0)
    assert (ledger.unowned, ledger.whole_at) == (0, 7.0)


def test_shards_of_who_was_killed_are_nobody_s_until_the_last_one_has_an_owner() -> None:
    ledger = two_workers()
    ledger.lose("two")
    assert (ledger.shards_of("two"), ledger.unowned, ledger.whole_at) == (0, SHARDS - HALF, None)
    ledger.hear(gained("one", *range(HALF, SHARDS - 1)), 3.0)
    assert (ledger.unowned, ledger.whole_at) == (1, None)
    ledger.hear(gained("one", SHARDS - 1), 4.0)
    ledger.hear(gained("one", SHARDS - 1, epoch=2), 5.0)
    assert (ledger.shards_of("one"), ledger.unowned, ledger.whole_at) == (SHARDS, 0, 4.0)


def test_who_was_killed_without_shards_leaves_all_as_it_is() -> None:
    ledger = Ledger({"one": range(SHARDS), "two": []}, 0.5)
    ledger.lose("two")
    assert ledger.whole_at is not None


def test_shard_moves_with_a_higher_epoch_only() -> None:
    ledger = two_workers()
    ledger.hear(gained("two", 0, epoch=5), 1.0)
    ledger.hear(gained("one", 0, epoch=4), 2.0)
    ledger.hear(gained("one", 0, epoch=5), 2.0)
    assert ledger.shards_of("two") == SHARDS - HALF + 1
    assert ledger.moved_at == 1.0


def test_shards_are_spread_once_nobody_has_far_more_than_others_and_all_have_an_owner() -> None:
    ledger = two_workers()
    assert ledger.is_spread(2)
    assert not ledger.is_spread(3)
    ledger.hear(gained("three", *range(HALF // 3), *range(SHARDS - HALF // 3, SHARDS)), 1.0)
    assert ledger.is_spread(3)
    ledger.lose("three")
    assert not ledger.is_spread(2)


def test_what_a_dead_worker_said_before_is_no_news_after() -> None:
    ledger = two_workers()
    ledger.hear(gained("two", *range(HALF, SHARDS), epoch=3), 1.0)
    ledger.lose("two")
    ledger.hear(gained("two", HALF, epoch=3), 2.0)
    assert ledger.unowned == SHARDS - HALF


@pytest.mark.parametrize(
    "news",
    ["", "[]", "7", "{}", '{"dead": "inc"}', '{"wants": [1]}', '{"owner": "one", "epochs": {}}', gained("one", SHARDS)],
)
def test_all_else_is_ignored(news: str) -> None:
    ledger = two_workers()
    ledger.hear(news, 1.0)
    assert (ledger.shards_of("one"), ledger.unowned) == (HALF, 0)
