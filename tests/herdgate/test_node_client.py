"""What Node clients make of a denial: `ws`, the most used one, and that of Centrifugo, which reads JSON as advice."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from herdgate.core.answers import Denied, GateReason
from herdgate.denial import close_reason
from tests.board import Board, RemoteSite
from tests.needs import node
from tests.refusals import REASONS, check_denial, refusing_site
from tests.wire import Answer, knock

pytestmark = pytest.mark.node

SCRIPT = Path(__file__).parent.parent / "node" / "knock.mjs"
TICKET = "1." + "a" * 34


def job(site: RemoteSite, headers: list[tuple[str, str]] | None = None, protocols: list[str] | None = None) -> Any:
    url = f"ws://127.0.0.1:{site.port}{site.path}/ws"
    return {"url": url, "headers": dict(headers or []), "protocols": protocols or []}


async def ws(*jobs: Any) -> list[dict[str, Any]]:
    """The results of `tests/node/knock.mjs`."""
    program = node()
    assert program is not None
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(program, str(SCRIPT), stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        said, complaint = await asyncio.wait_for(process.communicate(json.dumps(jobs).encode()), 60)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, complaint.decode()
    results: list[dict[str, Any]] = json.loads(said)
    return results


def answer_of(result: dict[str, Any]) -> Answer:
    return Answer(result["status"], result["headers"], result["body"].encode())


@pytest.mark.parametrize("reason", REASONS)
async def test_every_refusal_is_an_unexpected_response_read_whole(board: Board, reason: GateReason) -> None:
    site, headers = await refusing_site(board, reason)
    (result,) = await ws(job(site, headers))
    check_denial(answer_of(result), reason)


@pytest.mark.parametrize(("protocols", "echoed"), [([], ""), (["b", "a"], "b")])
async def test_close_denial_is_a_close_with_code_and_reason(board: Board, protocols: list[str], echoed: str) -> None:
    site, _ = await refusing_site(board, "rate")
    (result,) = await ws(job(site, [("Origin", "https://app.example")], protocols))
    assert (result["code"], result["protocol"], result["echoed"]) == (1013, echoed, None)
    assert json.loads(result["reason"]).keys() == {"retry_ms", "ticket", "reconnect"}


async def test_ticket_of_a_denial_admits_at_its_time(board: Board) -> None:
    site = await board.site(limits={"rate": 2, "burst": 1}, max_wait_s=2)
    (refused,) = [result for result in await ws(job(site), job(site)) if "status" in result]
    told = answer_of(refused)
    await asyncio.sleep(told.json()["retry_ms"] / 1000)
    await knock(site.port, site.path + "/ws")  # takes the token, so that only the ticket helps
    (result,) = await ws(job(site, [("Herdgate-Ticket", told.headers["herdgate-ticket"])]))
    assert (result["code"], result["echoed"]) == (1000, "hello")


@pytest.mark.parametrize("ticket", [None, TICKET])
async def test_client_of_centrifugo_comes_back_after_a_close_denial(ticket: str | None) -> None:
    tries = asyncio.Semaphore(0)

    async def deny(socket: ServerConnection) -> None:
        tries.release()
        await socket.close(1013, close_reason(Denied("rate", 0.05, ticket)))

    async with serve(deny, "127.0.0.1", 0) as server, centrifuge(server.sockets[0].getsockname()[1]) as gives_up:
        comes_back = asyncio.create_task(acquire(tries, 3))
        await asyncio.wait({comes_back, gives_up}, timeout=30, return_when=asyncio.FIRST_COMPLETED)
        assert comes_back.done(), gives_up


async def acquire(semaphore: asyncio.Semaphore, times: int) -> None:
    for _ in range(times):
        await semaphore.acquire()


@asynccontextmanager
async def centrifuge(port: int) -> AsyncIterator["asyncio.Task[tuple[bytes, bytes]]"]:
    """Runs `tests/node/centrifuge.mjs`; what it says once it gives up."""
    program = node()
    assert program is not None
    pipe, script = asyncio.subprocess.PIPE, SCRIPT.with_name("centrifuge.mjs")
    url = f"ws://127.0.0.1:{port}"
    process = await asyncio.create_subprocess_exec(program, str(script), url, stdout=pipe, stderr=pipe)
    said = asyncio.create_task(process.communicate())
    try:
        yield said
    finally:
        if process.returncode is None:
            process.kill()
        await said
