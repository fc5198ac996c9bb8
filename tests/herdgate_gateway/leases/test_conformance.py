"""What every lease table does alike, in memory and in DynamoDB."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from herdgate_gateway.leases.acts import Write, register, take
from herdgate_gateway.leases.conditions import (
    ABSENT,
    PRESENT,
    All,
    AtLeast,
    AtMost,
    Below,
    Condition,
    Either,
    Is,
    IsNot,
    Missing,
)
from herdgate_gateway.leases.rows import Key, WorkerRow, shard_key
from herdgate_gateway.leases.table import Done, LeaseTable, Lost
from tests.herdgate_gateway.leases.act_cases import CASES, Case
from tests.herdgate_gateway.leases.puts import ANYHOW, put

pytestmark = pytest.mark.asyncio(loop_scope="module")

NUMBERS = [0, -1, 2**53 + 1, 1 << 60, 10**38 - 1, 1 - 10**38]
TEXTS = ["", " ", "ä\n\0𝄞", "x" * 5_000]
MAPS: list[dict[str, Any]] = [
    {},
    {"": "empty name"},
    {"a.b": 1, "deep": {"er": {"n": -(2**60), "t": ""}}},
    {"yes": True, "no": False, "list": ["", 1, [], {"in": [False]}]},
]
AWKWARD_NAMES = ["size", "name", "a.b", "#n", ":v", "with space", "ä", "0"]


def fresh() -> Key:
    """The key of a row that nobody else uses."""
    return Key(f"test#{uuid4()}", "@")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_act(table: LeaseTable, case: Case) -> None:
    fleet = str(uuid4())
    write = case.write(fleet)
    before = await put(table, write.key, case.before)
    outcome = await table.write(write)
    if case.after is None:
        assert outcome == Lost(before)
        assert await table.read(write.key, strong=True) == before
    else:
        assert outcome == Done({**write.key._asdict(), **case.after})
        assert await table.read(write.key, strong=True) == outcome.item


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_act_that_was_done_changes_nothing_when_it_comes_again_unless_it_says_the_same(
    table: LeaseTable, case: Case
) -> None:
    write = case.write(str(uuid4()))
    await put(table, write.key, case.before)
    await table.write(write)
    now = await table.read(write.key, strong=True)
    again = await table.write(write)
    if write.adds:  # beats count; nothing else does
        assert isinstance(again, Done) is (case.after is not None)
    elif case.again_is_done:
        assert isinstance(again, Done)
        assert again.item == now
    else:
        assert again == Lost(now)


@pytest.mark.parametrize(
    ("condition", "item", "holds"),
    [
        (ABSENT, None, True),
        (ABSENT, {}, False),
        (ABSENT, {"n": 1}, False),
        (PRESENT, None, False),
        (PRESENT, {}, True),
        (Missing("n"), None, True),
        (Missing("n"), {}, True),
        (Missing("n"), {"n": 0}, False),
        (Missing("t"), {"t": ""}, False),
        (Is("n", 1), None, False),
        (Is("n", 1), {}, False),
        (Is("n", 1), {"n": 1}, True),
        (Is("n", 1), {"n": 2}, False),
        (Is("n", 1), {"n": "1"}, False),
        (Is("n", 2**53), {"n": 2**53 + 1}, False),
        (Is("t", "a"), {"t": "A"}, False),
        (Is("t", ""), {"t": ""}, True),
        (Is("m", {"a": 1}), {"m": {"a": 1}}, True),
        (Is("m", {"a": 1}), {"m": {"a": 2}}, False),
        (Is("sk", "@"), {}, True),
        (IsNot("t", "DEAD"), None, False),
        (IsNot("t", "DEAD"), {}, False),
        (IsNot("t", "DEAD"), {"t": "UP"}, True),
        (IsNot("t", "DEAD"), {"t": "DEAD"}, False),
        (IsNot("n", 1), {"n": "1"}, True),
        (AtLeast("n", 1), None, False),
        (AtLeast("n", 1), {}, False),
        (AtLeast("n", 1), {"n": 1}, True),
        (AtLeast("n", 1), {"n": 0}, False),
        (AtLeast("n", 2**60), {"n": 2**60 - 1}, False),
        (AtMost("n", 1), None, False),
        (AtMost("n", 1), {}, False),
        (AtMost("n", 1), {"n": 1}, True),
        (AtMost("n", 1), {"n": 2}, False),
        (AtMost("n", -(2**60)), {"n": 1 - 2**60}, False),
        (Below("n", 10), None, False),
        (Below("n", 10), {}, False),
        (Below("n", 10), {"n": 9}, True),
        (Below("n", 10), {"n": 10}, False),
        (All((PRESENT, Is("n", 1))), {"n": 1}, True),
        (All((PRESENT, Is("n", 1))), {"n": 2}, False),
        (All((IsNot("t", "a"), IsNot("t", "b"))), {"t": "c"}, True),
        (All((IsNot("t", "a"), IsNot("t", "b"))), {"t": "b"}, False),
        (Either((Missing("n"), Below("n", 5))), {}, True),
        (Either((Missing("n"), Below("n", 5))), {"n": 5}, False),
        (Either((Missing("n"), Below("n", 5))), None, True),
        (All((PRESENT, Either((Missing("n"), Below("n", 5))))), None, False),
        (Either((All((Is("n", 1), Is("t", "a"))), All((Is("n", 2), Is("t", "b"))))), {"n": 2, "t": "a"}, False),
        (Either((All((Is("n", 1), Is("t", "a"))), All((Is("n", 2), Is("t", "b"))))), {"n": 2, "t": "b"}, True),
        (All((All((Either((Is("n", 1),)),)),)), {"n": 1}, True),
    ],
    ids=str,
)
async def test_condition(table: LeaseTable, condition: Condition, item: dict[str, Any] | None, holds: bool) -> None:
    key = fresh()
    before = await put(table, key, item)
    outcome = await table.write(Write(key, condition, {"written": 1}))
    if holds:
        assert outcome == Done({**key._asdict(), **(item or {}), "written": 1})
    else:
        assert outcome == Lost(before)


@pytest.mark.parametrize("value", [*NUMBERS, *TEXTS, *MAPS], ids=lambda value: repr(value)[:20])
async def test_value_comes_back_as_it_was_and_of_its_type(table: LeaseTable, value: Any) -> None:
    key = fresh()
    assert await table.write(Write(key, ABSENT, {"it": value})) == Done({**key._asdict(), "it": value})
    item = await table.read(key, strong=True)
    assert item is not None
    assert type(item["it"]) is type(value)
    assert item["it"] == value


@pytest.mark.parametrize("value", [1.5, b"x", (), [None], {"a": 0.1}, {"a": {"b": (1,)}}], ids=repr)
async def test_value_that_no_item_holds_is_a_type_error_before_anything_is_written(
    table: LeaseTable, value: Any
) -> None:
    key = fresh()
    with pytest.raises(TypeError, match="holds texts, whole numbers, truth values"):
        await table.write(Write(key, ABSENT, {"it": value}))
    assert await table.read(key, strong=True) is None


@pytest.mark.parametrize("value", [10**38, -(10**38), "\udc80", {"a": {"\udcff": 1}}], ids=ascii)
async def test_value_that_dynamodb_would_change_is_a_value_error(table: LeaseTable, value: Any) -> None:
    with pytest.raises(ValueError, match=r"38 digits|surrogates"):
        await table.write(Write(fresh(), ABSENT, {"it": value}))


@pytest.mark.parametrize("name", AWKWARD_NAMES)
async def test_attribute_may_have_any_name(table: LeaseTable, name: str) -> None:
    key = fresh()
    assert await table.write(Write(key, Missing(name), {name: "a"})) == Done({**key._asdict(), name: "a"})
    assert await table.write(Write(key, Is(name, "a"), {name: None})) == Done(key._asdict())


async def test_none_takes_an_attribute_out_whether_it_is_there_or_not(table: LeaseTable) -> None:
    key = fresh()
    await put(table, key, {"kept": 1, "gone": 2})
    outcome = await table.write(Write(key, PRESENT, {"gone": None, "never": None, "new": 3}))
    assert outcome == Done({**key._asdict(), "kept": 1, "new": 3})
    assert await table.write(Write(fresh(), PRESENT, {"gone": None})) == Lost(None)


async def test_numbers_grow_from_what_they_are_or_from_nothing(table: LeaseTable) -> None:
    key = fresh()
    await put(table, key, {"n": 2**60})
    assert await table.write(Write(key, PRESENT, {"t": "a"}, {"n": 1, "m": -2})) == Done(
        {**key._asdict(), "t": "a", "n": 2**60 + 1, "m": -2}
    )


async def test_write_without_changes_makes_a_row_of_its_key(table: LeaseTable) -> None:
    key = fresh()
    assert await table.write(Write(key, ABSENT)) == Done(key._asdict())
    assert await table.write(Write(key, ABSENT)) == Lost(key._asdict())


async def test_items_handed_out_and_taken_in_are_copies(table: LeaseTable) -> None:
    key, attrs = fresh(), {"inner": {"n": 1}}
    done = await table.write(Write(key, ABSENT, {"attrs": attrs}))
    attrs["inner"]["n"] = 2
    assert isinstance(done, Done)
    lost = await table.write(Write(key, ABSENT))
    assert isinstance(lost, Lost)
    for item in (done.item, lost.item, await table.read(key, strong=True), *await table.query(key.pk, strong=True)):
        assert item is not None
        assert item["attrs"] == {"inner": {"n": 1}}
        item["attrs"]["inner"]["n"] = 3
    assert (await table.read_many([key], strong=True))[key]["attrs"] == {"inner": {"n": 1}}


async def test_one_of_fifty_writes_at_once_wins_and_the_others_see_it(table: LeaseTable) -> None:
    fleet = str(uuid4())
    rows = [WorkerRow(f"w{number}", f"i{number}", None, "UP", 0, 3_000, "h:1", 1, 0) for number in range(50)]
    outcomes = await asyncio.gather(*(table.write(take(fleet, row, 7, None)) for row in rows))
    (won,) = [outcome for outcome in outcomes if isinstance(outcome, Done)]
    assert [outcome for outcome in outcomes if outcome is not won] == [Lost(won.item)] * 49
    assert await table.read(shard_key(fleet, 7), strong=True) == won.item


async def test_numbers_that_many_add_to_at_once_miss_none(table: LeaseTable) -> None:
    key = fresh()
    await asyncio.gather(*(table.write(Write(key, ANYHOW, adds={"n": 1})) for _ in range(50)))
    assert await table.read(key, strong=True) == {**key._asdict(), "n": 50}


@pytest.mark.parametrize("strong", [True, False])
async def test_row_that_is_not_there_is_none(table: LeaseTable, strong: bool) -> None:
    key = fresh()
    assert await table.read(key, strong=strong) is None
    assert await table.read_many([key], strong=strong) == {}
    assert await table.query(key.pk, strong=strong) == []


async def test_many_rows_are_read_at_once_those_that_there_are(table: LeaseTable) -> None:
    fleet = str(uuid4())
    keys = [Key(f"{fleet}#{number % 3}", f"C#{number:03d}") for number in range(250)]
    await asyncio.gather(*(put(table, key, {"n": number}) for number, key in enumerate(keys[:230])))
    found = await table.read_many([*keys, keys[0], keys[-1]], strong=True)
    assert found == {key: {**key._asdict(), "n": number} for number, key in enumerate(keys[:230])}
    assert await table.read_many([], strong=True) == {}


async def test_query_finds_rows_of_one_partition_in_the_order_of_their_sort_keys(table: LeaseTable) -> None:
    fleet = str(uuid4())
    names = ["C#b", "@", "C#a", "D#a", "C#ä", "C#\uffff", "C#𝄞", "C", "C#"]
    for name in names:
        await put(table, Key(f"{fleet}#S#0001", name), {})
    await put(table, Key(f"{fleet}#S#0002", "C#other"), {})
    found = await table.query(f"{fleet}#S#0001", strong=True)
    assert [item["sk"] for item in found] == ["@", "C", "C#", "C#a", "C#b", "C#ä", "C#\uffff", "C#𝄞", "D#a"]
    found = await table.query(f"{fleet}#S#0001", prefix="C#", strong=True)
    assert [item["sk"] for item in found] == ["C#", "C#a", "C#b", "C#ä", "C#\uffff", "C#𝄞"]


async def test_query_of_more_than_a_megabyte_is_whole(table: LeaseTable) -> None:
    pk = str(uuid4())
    for number in range(26):
        await put(table, Key(pk, f"C#{number:02d}"), {"attrs": {"text": f"{number:02d}" * 50_000}})
    found = await table.query(pk, prefix="C#", strong=False)
    assert [item["attrs"]["text"][:2] for item in found] == [f"{number:02d}" for number in range(26)]


async def test_life_after_life_of_one_name_is_told_by_its_row(table: LeaseTable) -> None:
    fleet = str(uuid4())
    rows = [WorkerRow("w", f"i{number}", None, "UP", 0, 3_000, "h:1", 1, 0) for number in range(2)]
    done = await table.write(register(fleet, rows[0], None))
    assert isinstance(done, Done)
    seen = WorkerRow.of(done.item)
    assert seen == rows[0]
    assert isinstance(await table.write(register(fleet, rows[1], seen)), Lost)
    await table.write(Write(register(fleet, rows[0], None).key, PRESENT, {"st": "DEAD"}))
    done = await table.write(register(fleet, rows[1], seen))
    assert isinstance(done, Done)
    assert WorkerRow.of(done.item).prev == "i0"


async def test_closing_twice_is_fine(table: LeaseTable) -> None:
    key = fresh()
    await put(table, key, {"n": 1})
    await table.aclose()
    await table.aclose()
    assert await table.read(key, strong=True) == {**key._asdict(), "n": 1}
