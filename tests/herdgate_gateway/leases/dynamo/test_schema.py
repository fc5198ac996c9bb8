"""Making the table."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from herdgate_gateway.leases.acts import take
from herdgate_gateway.leases.dynamo import DynamoLeases, Place, SetupError
from herdgate_gateway.leases.dynamo.schema import create_table
from herdgate_gateway.leases.rows import WorkerRow
from herdgate_gateway.leases.table import Done, TableError
from tests.dynamodb import DynamoServer, set_credentials
from tests.herdgate_gateway.leases.dynamo.stand_in import Reply, refusal, stand_in
from tests.ministack import REGION

ACTIVE = {
    "TableStatus": "ACTIVE",
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
}


@pytest.fixture
def new(place: Place) -> Place:
    """A table that is not there yet."""
    return replace(place, table=f"new-{uuid4()}")


async def test_table_is_made_once_and_can_be_used(new: Place, dynamodb: DynamoServer) -> None:
    assert await create_table(new) is True
    leases = DynamoLeases(new)
    row = WorkerRow("w", "mine", None, "UP", 0, 3_000, "host:1", 1, 0)
    assert isinstance(await leases.write(take("fleet", row, 1, None)), Done)
    assert await create_table(new) is False
    assert len(await leases.query("fleet#S#0001", strong=True)) == 1
    await leases.aclose()
    _, told = dynamodb.ask("DescribeTable", TableName=new.table)
    assert told["Table"]["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert told["Table"].get("DeletionProtectionEnabled", False) is False
    assert "GlobalSecondaryIndexes" not in told["Table"]
    _, told = dynamodb.ask("DescribeTimeToLive", TableName=new.table)
    assert told["TimeToLiveDescription"] == {"TimeToLiveStatus": "ENABLED", "AttributeName": "ttl"}


async def test_expiry_that_is_missing_is_turned_on(place: Place, dynamodb: DynamoServer) -> None:
    assert await create_table(place) is False
    _, told = dynamodb.ask("DescribeTimeToLive", TableName=place.table)
    assert told["TimeToLiveDescription"]["AttributeName"] == "ttl"


@pytest.mark.parametrize("keys", [{"id": "S"}, {"pk": "S"}, {"pk": "S", "sk": "N"}, {"sk": "S", "pk": "S"}], ids=str)
async def test_other_table_of_that_name_is_told_and_left_alone(
    new: Place, dynamodb: DynamoServer, keys: dict[str, str]
) -> None:
    kinds = zip(keys, ("HASH", "RANGE"), strict=False)
    status, _ = dynamodb.ask(
        "CreateTable",
        TableName=new.table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in keys.items()],
        KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in kinds],
    )
    assert status == 200
    with pytest.raises(SetupError, match="another table of that name"):
        await create_table(new)
    _, told = dynamodb.ask("DescribeTimeToLive", TableName=new.table)
    assert told["TimeToLiveDescription"]["TimeToLiveStatus"] == "DISABLED"


async def test_table_in_the_making_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    states = iter(["CREATING", "CREATING", "ACTIVE"])

    def answer(operation: str, request: dict[str, Any]) -> Reply:
        if operation == "DescribeTable":
            return Reply(200, {"Table": {**ACTIVE, "TableStatus": next(states)}})
        if operation == "DescribeTimeToLive":
            return Reply(200, {"TimeToLiveDescription": {"TimeToLiveStatus": "ENABLING"}})
        return Reply(200, {})

    with stand_in(answer) as server:
        assert await create_table(Place("herd", REGION, server.url)) is True
    assert [operation for operation, _ in server.asked] == [
        "CreateTable",
        *["DescribeTable"] * 3,
        "DescribeTimeToLive",
    ]


@pytest.mark.parametrize(
    ("status", "told"), [("DELETING", "it is DELETING; wait, or choose another name"), ("ARCHIVED", "it is ARCHIVED")]
)
async def test_table_that_cannot_be_used_is_told(monkeypatch: pytest.MonkeyPatch, status: str, told: str) -> None:
    set_credentials(monkeypatch)

    def answer(operation: str, request: dict[str, Any]) -> Reply:
        if operation == "CreateTable":
            return refusal("ResourceInUseException")
        return Reply(200, {"Table": {**ACTIVE, "TableStatus": status}})

    with stand_in(answer) as server, pytest.raises(TableError, match=told):
        await create_table(Place("herd", REGION, server.url))


async def test_refused_permission_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    set_credentials(monkeypatch)
    denied = stand_in(lambda *_: refusal("AccessDeniedException"))
    with denied as server, pytest.raises(SetupError, match="access denied"):
        await create_table(Place("herd", REGION, server.url))
