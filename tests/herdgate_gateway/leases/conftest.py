"""The tables that tests of leases run over."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
import pytest_asyncio

from herdgate_gateway.leases.dynamo import DynamoLeases, Place
from herdgate_gateway.leases.memory import MemoryLeases
from herdgate_gateway.leases.table import LeaseTable
from tests.dynamodb import DynamoServer, dynamodb, set_credentials
from tests.ministack import REGION

__all__ = ["dynamodb", "in_dynamodb", "place", "table"]

PATIENT_S = 20.0


@pytest.fixture
def place(dynamodb: DynamoServer, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A table in the emulator, of this test alone, with credentials for it in the environment."""
    set_credentials(monkeypatch)
    name = f"leases-{uuid4()}"
    dynamodb.make_table(name)
    return Place(name, REGION, dynamodb.url)


@asynccontextmanager
async def in_dynamodb(server: DynamoServer) -> AsyncIterator[DynamoLeases]:
    """A table of its own, that waits longer than half a second: cores are shared, and only its content is looked at."""
    with pytest.MonkeyPatch.context() as patch:
        set_credentials(patch)
        name = f"leases-{uuid4()}"
        server.make_table(name)
        leases = DynamoLeases(Place(name, REGION, server.url), call_s=PATIENT_S)
        try:
            yield leases
        finally:
            await leases.aclose()


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["memory", "dynamodb"])
async def table(request: pytest.FixtureRequest) -> AsyncIterator[LeaseTable]:
    """Both tables, one after the other. A module shares them, as a client takes a while: each test has its own keys.

    Tests that use it need `pytestmark = pytest.mark.asyncio(loop_scope="module")`.
    """
    if request.param == "memory":
        yield MemoryLeases()
    else:
        async with in_dynamodb(request.getfixturevalue("dynamodb")) as leases:
            yield leases
