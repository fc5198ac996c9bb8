"""Random writes on random rows come out the same in memory and in DynamoDB."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herdgate_gateway.leases.acts import Write
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
from herdgate_gateway.leases.dynamo import DynamoLeases
from herdgate_gateway.leases.memory import MemoryLeases
from herdgate_gateway.leases.rows import Key
from tests.dynamodb import DynamoServer
from tests.herdgate_gateway.leases.conftest import in_dynamodb

pytestmark = pytest.mark.asyncio(loop_scope="module")

NUMBER_NAMES, TEXT_NAMES, MAP_NAMES = ("epoch", "hb", "size"), ("inc", "st"), ("attrs",)
NUMBERS = st.one_of(st.integers(-3, 3), st.sampled_from([2**53, 2**53 + 1, -(2**70)]))
TEXTS = st.sampled_from(["", "a", "b", "1", "ä"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(NUMBERS, TEXTS), lambda inner: st.dictionaries(TEXTS, inner, max_size=2), max_leaves=3
)
MAPS = st.dictionaries(TEXTS, VALUES, max_size=2)
ANY_NAME = st.sampled_from([*NUMBER_NAMES, *TEXT_NAMES, *MAP_NAMES])

SIMPLE: st.SearchStrategy[Condition] = st.one_of(
    st.just(ABSENT),
    st.just(PRESENT),
    st.builds(Missing, ANY_NAME),
    st.builds(Is, ANY_NAME, VALUES),
    st.builds(IsNot, ANY_NAME, VALUES),
    st.builds(AtLeast, st.sampled_from(NUMBER_NAMES), NUMBERS),
    st.builds(AtMost, st.sampled_from(NUMBER_NAMES), NUMBERS),
    st.builds(Below, st.sampled_from(NUMBER_NAMES), NUMBERS),
)
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.builds(All, st.lists(inner, min_size=1, max_size=3)),
        st.builds(Either, st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=5,
)


@st.composite
def writes(draw: st.DrawFn) -> tuple[int, Condition, dict[str, Any], dict[str, int]]:
    """Row, condition, sets, adds; each attribute always of one type, as in the protocol."""
    sets = draw(
        st.fixed_dictionaries(
            {},
            optional={
                **dict.fromkeys(NUMBER_NAMES, st.none() | NUMBERS),
                **dict.fromkeys(TEXT_NAMES, st.none() | TEXTS),
                **dict.fromkeys(MAP_NAMES, st.none() | MAPS),
            },
        )
    )
    adds = draw(st.dictionaries(st.sampled_from(NUMBER_NAMES), NUMBERS))
    condition = draw(st.one_of(st.just(Either((ABSENT, PRESENT))), CONDITIONS))
    return draw(st.integers(0, 1)), condition, sets, {name: more for name, more in adds.items() if name not in sets}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def emulated(dynamodb: DynamoServer) -> AsyncIterator[DynamoLeases]:
    async with in_dynamodb(dynamodb) as leases:
        yield leases


@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(writes(), min_size=1, max_size=12))
async def test_random_writes_come_out_the_same(
    emulated: DynamoLeases, plan: list[tuple[int, Condition, dict[str, Any], dict[str, int]]]
) -> None:
    memory, run = MemoryLeases(), str(uuid4())
    for row, condition, sets, adds in plan:
        write = Write(Key(run, f"C#{row}"), condition, sets, adds)
        assert await emulated.write(write) == await memory.write(write)
    assert await emulated.query(run, strong=True) == await memory.query(run, strong=True)
    keys = [Key(run, f"C#{row}") for row in range(3)]
    assert await emulated.read_many(keys, strong=True) == await memory.read_many(keys, strong=True)
