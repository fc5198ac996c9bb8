"""How the lease table is made: a partition and a sort key, paid by request, no index, old connections removed by `ttl`.

Making it again changes nothing but what is missing. It is not protected from deletion: that is for who runs it to set.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from herdgate_gateway.leases.dynamo.client import DynamoClient, Place, opened
from herdgate_gateway.leases.dynamo.errors import SetupError, named, table_error
from herdgate_gateway.leases.table import TableError

__all__ = ["create_table"]

_CALL_S = 10.0
_READY_S = 120.0
_LOOK_S = 0.25
_KEYS = {"pk": "HASH", "sk": "RANGE"}


async def create_table(place: Place) -> bool:
    """Make the table if there is none, and wait until it can be used. True if it was made.

    Raises:
        SetupError: it cannot be made, or there is another table of that name.
        TableError: no answer, or it is not ready after two minutes.
    """
    try:
        async with asyncio.timeout(_READY_S), opened(place, timeout_s=_CALL_S) as client:
            made = await _create(client, place.table)
            _check(await _active(client, place.table), place)
            await _expire(client, place.table)
            return made
    except Exception as error:
        raise table_error(error, place) from error


async def _create(client: DynamoClient, table: str) -> bool:
    from botocore.exceptions import ClientError

    try:
        await client.create_table(
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in _KEYS],
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in _KEYS.items()],
            DeletionProtectionEnabled=False,
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceInUseException":
            raise
        return False
    return True


async def _active(client: DynamoClient, table: str) -> Mapping[str, Any]:
    """What the table is, once it can be used."""
    while True:
        description: Mapping[str, Any] = (await client.describe_table(TableName=table))["Table"]
        if description["TableStatus"] not in {"CREATING", "UPDATING"}:
            return description
        await asyncio.sleep(_LOOK_S)


def _check(description: Mapping[str, Any], place: Place) -> None:
    """Fail for a table that only has the same name."""
    if description["TableStatus"] != "ACTIVE":
        raise TableError(f"{named(place)}: it is {description['TableStatus']}; wait, or choose another name")
    types = {part["AttributeName"]: part["AttributeType"] for part in description["AttributeDefinitions"]}
    keys = {part["AttributeName"]: part["KeyType"] for part in description["KeySchema"]}
    if keys != _KEYS or types["pk"] != "S" or types["sk"] != "S":
        raise SetupError(f"{named(place)}: there is another table of that name, with other keys; choose another name")


async def _expire(client: DynamoClient, table: str) -> None:
    """Have rows removed when their `ttl` (Unix time, s) has passed; DynamoDB takes up to two days for it."""
    reply = await client.describe_time_to_live(TableName=table)
    if reply["TimeToLiveDescription"]["TimeToLiveStatus"] not in {"ENABLED", "ENABLING"}:
        settings = {"Enabled": True, "AttributeName": "ttl"}
        await client.update_time_to_live(TableName=table, TimeToLiveSpecification=settings)
