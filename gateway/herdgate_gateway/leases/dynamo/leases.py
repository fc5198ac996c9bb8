"""`DynamoLeases`: the table in DynamoDB.

Rules: a write is sent once, and a call has half a second; what is not answered by then is unknown. The client is made
with the first call, and the time that takes does not count. One object belongs to one event loop.
"""

import asyncio
from collections.abc import Awaitable, Collection, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import Any

from herdgate_gateway.leases.acts import Write
from herdgate_gateway.leases.dynamo.client import DynamoClient, Place, Reply, opened
from herdgate_gateway.leases.dynamo.errors import outcome_of, table_error
from herdgate_gateway.leases.dynamo.expressions import update_request
from herdgate_gateway.leases.dynamo.items import attribute_of, item_of, key_attributes
from herdgate_gateway.leases.rows import Item, Key
from herdgate_gateway.leases.table import Done, Outcome, TableError

__all__ = ["CALL_S", "DynamoLeases"]

CALL_S = 0.5
_MOST_KEYS = 100  # of one BatchGetItem
_MOST_STALLS = 10
_STALL_S = 0.05


class DynamoLeases:
    """A `LeaseTable` in DynamoDB.

    Args:
        place: where the table is.
        call_s: seconds that a call has, at most.

    Where something has to be mended first, reads raise `SetupError`, a `TableError`; a write says it in `Unknown.why`.
    """

    def __init__(self, place: Place, *, call_s: float = CALL_S) -> None:
        self._place, self._call_s = place, call_s
        self._client: DynamoClient | None = None
        self._opening = asyncio.Lock()
        self._held = AsyncExitStack()

    async def warm_up(self) -> None:
        """Make the client now, so that the first call is as quick as any.

        Raises:
            TableError: it cannot be made: no credentials, no region, no SDK.
        """
        with self._reading():
            await self._opened()

    async def write(self, write: Write) -> Outcome:
        """Carry out one write, tried once.

        Raises:
            TypeError, ValueError: a value that no item can hold.
        """
        request = {
            "TableName": self._place.table,
            "ReturnValues": "ALL_NEW",
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
            **update_request(write),
        }
        try:
            client = await self._opened()
            reply = await self._in_time(client.update_item(**request))
            return Done(item_of(reply["Attributes"]))
        except Exception as error:  # noqa: BLE001 - whatever it is, the write may have been done
            return outcome_of(error, self._place)

    async def read(self, key: Key, *, strong: bool) -> Item | None:
        """One row; None: there is none.

        Raises:
            TableError: no answer.
        """
        with self._reading():
            client = await self._opened()
            reply = await self._in_time(
                client.get_item(TableName=self._place.table, Key=key_attributes(key), ConsistentRead=strong)
            )
            return item_of(reply["Item"]) if reply.get("Item") else None

    async def read_many(self, keys: Collection[Key], *, strong: bool) -> Mapping[Key, Item]:
        """Those of these rows that there are; as `read`."""
        wanted = list(dict.fromkeys(keys))  # a key that comes twice is refused
        found: dict[Key, Item] = {}
        with self._reading():
            for start in range(0, len(wanted), _MOST_KEYS):
                for item in await self._batch(wanted[start : start + _MOST_KEYS], strong):
                    found[Key(item["pk"], item["sk"])] = item
        return found

    async def query(self, pk: str, *, prefix: str = "", strong: bool) -> list[Item]:
        """All rows of a partition whose sort keys begin with `prefix`, in their order; as `read`."""
        request = {"TableName": self._place.table, "ConsistentRead": strong, **_of_partition(pk, prefix)}
        items: list[Item] = []
        with self._reading():
            client = await self._opened()
            while True:
                page = await self._in_time(client.query(**request))
                items += map(item_of, page["Items"])
                if not page.get("LastEvaluatedKey"):
                    return items
                request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    async def aclose(self) -> None:
        """Close the client. The next call would open another one."""
        self._client = None
        await self._held.aclose()

    async def _batch(self, keys: list[Key], strong: bool) -> list[Item]:
        """Rows of at most 100 keys. What DynamoDB leaves out, being busy or at 16 MB, is asked for again."""
        client, table = await self._opened(), self._place.table
        items: list[Item] = []
        left: Mapping[str, Any] = {table: {"Keys": [key_attributes(key) for key in keys], "ConsistentRead": strong}}
        stalls = 0
        while left:
            asked = len(left[table]["Keys"])
            reply = await self._in_time(client.batch_get_item(RequestItems=left))
            items += map(item_of, reply["Responses"].get(table, ()))
            left = reply.get("UnprocessedKeys", {})
            if left and len(left[table]["Keys"]) == asked:
                stalls += 1
                if stalls == _MOST_STALLS:
                    raise TableError(f"{self._place}: too busy to read {asked} rows")
                await asyncio.sleep(_STALL_S)
        return items

    async def _opened(self) -> DynamoClient:
        async with self._opening:
            if self._client is None:
                self._client = await self._held.enter_async_context(opened(self._place, timeout_s=self._call_s))
            return self._client

    async def _in_time(self, call: Awaitable[Reply]) -> Reply:
        """A reply. The SDK's own limits are of each step, not of the whole."""
        async with asyncio.timeout(self._call_s):
            return await call

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            raise table_error(error, self._place) from error


def _of_partition(pk: str, prefix: str) -> dict[str, Any]:
    condition, values = "pk = :pk", {":pk": attribute_of(pk)}
    if prefix:  # an empty one is refused
        condition, values = f"{condition} AND begins_with(sk, :sk)", {**values, ":sk": attribute_of(prefix)}
    return {"KeyConditionExpression": condition, "ExpressionAttributeValues": values}
