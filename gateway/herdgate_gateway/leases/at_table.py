"""What commands do with a lease table: open it, work, close it; what is wrong with it is one line."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from herdgate_gateway.errors import HerdgateError
from herdgate_gateway.leases.dynamo import DynamoLeases, Place
from herdgate_gateway.leases.table import LeaseTable, TableError

__all__ = ["run", "with_table"]

_CALL_S = 10.0  # whoever types may be far away
_T = TypeVar("_T")


def with_table(place: Place, work: Callable[[LeaseTable], Awaitable[_T]]) -> _T:
    """Work with the table that is there.

    Raises:
        HerdgateError: it does not answer.
    """

    async def working() -> _T:
        table = DynamoLeases(place, call_s=_CALL_S)
        try:
            return await work(table)
        finally:
            await table.aclose()

    return run(working())


def run(work: Coroutine[Any, Any, _T]) -> _T:
    """Work to the end.

    Raises:
        HerdgateError: the table does not answer.
    """
    try:
        return asyncio.run(work)
    except TableError as error:
        raise HerdgateError(str(error)) from error
