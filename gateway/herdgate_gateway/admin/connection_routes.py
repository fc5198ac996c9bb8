"""The admin listener's paths about connections, where the gateway knows a lease table.

    GET    /connections?ids=a,b   those of these that there are, and which there are not
    GET    /connections/{id}      one, or 404
    PUT    /connections/{id}      have it run; the body is {"attrs": {...}}, or nothing: those it has stay
    DELETE /connections/{id}      have it not run any more, or 404

`Access` stands before reading too, as attrs may be anybody's secrets. A table that does not answer is 503: try again.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from herdgate import ConfigurationError
from herdgate_gateway.admin.access import Access
from herdgate_gateway.connections.limits import check_attrs
from herdgate_gateway.connections.listing import as_json, told
from herdgate_gateway.connections.store import Connections
from herdgate_gateway.leases.rows import ConnectionRow
from herdgate_gateway.leases.table import TableError

__all__ = ["connection_routes"]

MOST_BODY = 64 * 1024
"""Longest body of a PUT, bytes."""

ANSWER_S = 5.0
"""Seconds that the table has, over all tries."""

SEND_ATTRS = 'send a JSON object, {"attrs": {...}}, or nothing'
NO_TABLE = "this gateway knows no lease table; set table in [leases] of its settings"


def connection_routes(connections: Connections | None, access: Access) -> list[Route]:
    """The routes.

    Args:
        connections: None: each of them says that there is no table.
        access: who may read and change.
    """
    endpoints = _Endpoints(connections, access)
    one = "/connections/{id:path}"
    return [
        Route("/connections", endpoints.some, methods=["GET"]),
        Route(one, endpoints.one, methods=["GET"]),
        Route(one, endpoints.start, methods=["PUT"]),
        Route(one, endpoints.stop, methods=["DELETE"]),
    ]


class _Endpoints:
    def __init__(self, connections: Connections | None, access: Access) -> None:
        self._connections, self._access = connections, access

    async def some(self, request: Request) -> Response:
        async def read(store: Connections) -> Response:
            ids = _ids(request)
            found = await store.get_many(ids)
            rows = [told(row) for row in found.values()]
            return _json({"connections": rows, "missing": [name for name in ids if name not in found]})

        return await self._answer(request, read)

    async def one(self, request: Request) -> Response:
        name = request.path_params["id"]
        return await self._answer(request, lambda store: _one(name, store.get(name)))

    async def start(self, request: Request) -> Response:
        name = request.path_params["id"]

        async def write(store: Connections) -> Response:
            attrs = await _attrs(request)
            return await _one(name, _only(store.start([name], attrs)))

        return await self._answer(request, write)

    async def stop(self, request: Request) -> Response:
        name = request.path_params["id"]
        return await self._answer(request, lambda store: _one(name, _only(store.stop([name]))))

    async def _answer(self, request: Request, work: Callable[[Connections], Awaitable[Response]]) -> Response:
        if refusal := self._access(request):
            return refusal
        if self._connections is None:
            return PlainTextResponse(f"{NO_TABLE}\n", 404)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await work(self._connections)
        except TimeoutError:
            return PlainTextResponse(f"the lease table did not answer within {ANSWER_S:.0f} s; try again\n", 503)
        except TableError as error:
            return PlainTextResponse(f"{error}\n", 503)


async def _one(name: str, asked: Awaitable[ConnectionRow | None]) -> Response:
    row = await asked
    return PlainTextResponse(f"no connection {name}\n", 404) if row is None else _json(told(row))


async def _only(asked: Awaitable[Mapping[str, ConnectionRow]]) -> ConnectionRow | None:
    return next(iter((await asked).values()), None)


def _ids(request: Request) -> list[str]:
    """Each once, in their order. An id with a comma in it is asked for by its path."""
    given = [name for text in request.query_params.getlist("ids") for name in text.split(",") if name]
    if not given or set(request.query_params) != {"ids"}:
        raise ConfigurationError("ids", request.url.query or "nothing", "send ids=, and ids with commas between them")
    return list(dict.fromkeys(given))


async def _attrs(request: Request) -> Mapping[str, Any] | None:
    """What a PUT says; None: nothing of attrs."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY:
            raise ConfigurationError("body", f"more than {MOST_BODY} bytes", SEND_ATTRS)
    if not body.strip():
        return None
    try:
        read = json.loads(body.decode())
    except (ValueError, RecursionError):
        raise ConfigurationError("body", "no JSON", SEND_ATTRS) from None
    if not isinstance(read, dict) or set(read) != {"attrs"}:
        raise ConfigurationError("body", read, SEND_ATTRS)
    return check_attrs(read["attrs"])


def _json(answer: Mapping[str, Any]) -> Response:
    return Response(as_json(answer), media_type="application/json")
