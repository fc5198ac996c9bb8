"""The admin listener's paths.

    GET  /healthz       200 while the process lives
    GET  /readyz        200, or 503 with the reason
    GET  /metrics       Prometheus text, or OpenMetrics where asked for
    GET  /status.json   every count
    POST /rate          rate=<admissions per second>, or rate=none, for one process without a fleet
    POST /fraction      fraction=<0 to 1>
    POST /drain         begin a drain; deadline=<seconds> for another one than the settings have
    /connections        see `connection_routes`

Only `Access` stands between a POST and the gateway. What is wrong with a request is said in one line.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qsl

from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from herdgate import ConfigurationError, GateSnapshot
from herdgate.core.numbers import MOST_RATE, check_number, check_rate
from herdgate_gateway.admin.access import Access
from herdgate_gateway.admin.connection_routes import connection_routes
from herdgate_gateway.admin.metrics import registry
from herdgate_gateway.admin.view import Status, View, WorkerStatus, children_not_ready, reason_not_ready
from herdgate_gateway.connections.store import Connections
from herdgate_gateway.drain.options import check_deadline

__all__ = ["routes"]

MOST_BODY = 1_024
"""Longest body of a POST, bytes."""

CONTROL_S = 5.0
"""Seconds the main loop has to take a change."""

SEND_RATE = "send rate= and admissions per second"
OR_NONE = ", or rate=none for no limit"
SEND_FRACTION = "send fraction= and a share from 0 to 1"
SEND_DEADLINE = "send nothing, or deadline= and seconds"


def routes(view: View, access: Access, stale_after_s: float, connections: Connections | None = None) -> Starlette:
    """The app of one listener.

    Args:
        view: the gateway.
        access: who may change something.
        stale_after_s: age of the status from which the main loop counts as blocked, seconds.
        connections: what may be read and changed of them; None: there are none.
    """
    endpoints = _Endpoints(view, access, stale_after_s)
    return Starlette(
        routes=[
            Route("/healthz", endpoints.health, methods=["GET"]),
            Route("/readyz", endpoints.readiness, methods=["GET"]),
            Route("/metrics", endpoints.metrics, methods=["GET"]),
            Route("/status.json", endpoints.status, methods=["GET"]),
            Route("/rate", endpoints.rate, methods=["POST"]),
            Route("/fraction", endpoints.fraction, methods=["POST"]),
            Route("/drain", endpoints.drain, methods=["POST"]),
            *connection_routes(connections, access),
        ],
        exception_handlers={ConfigurationError: _bad_request},
    )


class _Endpoints:
    def __init__(self, view: View, access: Access, stale_after_s: float) -> None:
        self._view = view
        self._access = access
        self._stale_after_s = stale_after_s
        self._registry = registry(view)

    async def health(self, _request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readiness(self, _request: Request) -> Response:
        reason = reason_not_ready(self._view, self._stale_after_s)
        if reason is None and (missing := children_not_ready(self._view.status())):
            return PlainTextResponse(f"ready, but {missing}\n")
        return PlainTextResponse(f"{reason or 'ready'}\n", 503 if reason else 200)

    async def metrics(self, request: Request) -> Response:
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(self._registry), headers={"content-type": media_type})

    async def status(self, _request: Request) -> Response:
        status = self._view.status()
        reason = reason_not_ready(self._view, self._stale_after_s)
        return JSONResponse(
            {
                "version": status.version,
                "ready": reason is None,
                "reason": reason,
                "started_at": status.started_at,
                "uptime_s": max(0.0, time.time() - status.started_at),
                "age_s": status.age_s,
                "drain": None if status.drain is None else asdict(status.drain),
                "children": [asdict(child) for child in status.children],
                "gates": {route: _gate(gate) for route, gate in status.gates.items()},
                "workers": [_worker(worker) | {"room": _room(status, worker)} for worker in status.workers],
            }
        )

    async def rate(self, request: Request) -> Response:
        if refusal := self._access(request):
            return refusal
        is_shared = _shares_its_rate(self._view.status())
        way_out = SEND_RATE if is_shared else SEND_RATE + OR_NONE
        rate = _rate(await _given(request, "rate", way_out), way_out, is_shared=is_shared)
        return await _take(self._view.set_rate(rate), {"rate": rate})

    async def fraction(self, request: Request) -> Response:
        if refusal := self._access(request):
            return refusal
        fraction = _number("fraction", await _given(request, "fraction", SEND_FRACTION), SEND_FRACTION)
        check_number("fraction", fraction, least=0, most=1, unit="a share")
        return await _take(self._view.set_fraction(fraction), {"fraction": fraction})

    async def drain(self, request: Request) -> Response:
        if refusal := self._access(request):
            return refusal
        within_s: float | None = None
        if given := await _fields(request, "deadline", SEND_DEADLINE):
            within_s = _number("deadline", _only(given, "deadline", SEND_DEADLINE), SEND_DEADLINE)
            check_deadline("deadline", within_s)
        return await _take(self._view.drain(within_s), {"deadline_s": within_s})


def _shares_its_rate(status: Status) -> bool:
    """True for a gateway of a fleet, or of several processes."""
    return bool(status.children) or any(gate.fleet for gate in status.gates.values())


def _rate(text: str, way_out: str, *, is_shared: bool) -> float | None:
    unit = "a number of admissions per second"
    if text.lower() != "none":
        rate = _number("rate", text, way_out)
        check_number("rate", rate, least=0, most=MOST_RATE, unit=unit)
        check_rate("rate", rate, unit=unit)
        return rate
    if is_shared:
        raise ConfigurationError("rate", text, f"write {unit}: a fleet, or several processes, share one, and need it")
    return None


async def _given(request: Request, name: str, way_out: str) -> str:
    """The one field of a request, from its query or its form body."""
    return _only(await _fields(request, name, way_out), name, way_out)


def _only(given: Sequence[tuple[str, str]], name: str, way_out: str) -> str:
    if len(given) != 1 or given[0][0] != name:
        raise ConfigurationError(name, "&".join(key for key, _ in given) or "nothing", way_out)
    return given[0][1].strip()


async def _fields(request: Request, name: str, way_out: str) -> list[tuple[str, str]]:
    """All fields of a request."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY:
            raise ConfigurationError(name, f"more than {MOST_BODY} bytes", way_out)
    given = parse_qsl(request.url.query, keep_blank_values=True)
    return given + parse_qsl(body.decode(errors="replace"), keep_blank_values=True)


def _number(name: str, text: str, way_out: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigurationError(name, text, way_out) from None


async def _take(change: Awaitable[None], changed: dict[str, float | None]) -> Response:
    try:
        async with asyncio.timeout(CONTROL_S):
            await change
    except TimeoutError:
        told = f"the main loop did not take the change within {CONTROL_S:.0f} s; look at /status.json and try again"
        return PlainTextResponse(f"{told}\n", 503)
    return JSONResponse(changed)


async def _bad_request(_request: Request, error: Exception) -> Response:
    return PlainTextResponse(f"{error}\n", 400)


def _gate(gate: GateSnapshot) -> dict[str, Any]:
    """What is told of workers stands with these."""
    told = asdict(gate)
    if told["fleet"]:
        del told["fleet"]["rooms"]
    return told


def _room(status: Status, worker: WorkerStatus) -> int | str | None:
    """Sockets it may still get, or that it drains; None: no limit, or not known."""
    room = status.rooms.get(worker.url, math.inf)
    return None if room == math.inf else "draining" if room < 0 else int(room)


def _worker(worker: WorkerStatus) -> dict[str, Any]:
    return {name: getattr(worker, name) for name in ("url", "state", "open", "pending", "failures")}
