"""What fails between a worker's 101 and the client's, its leaving above all: nothing stays open."""

import asyncio
import ssl

import pytest
import trustme

from tests.herdgate_gateway.gateways import echo_worker, gateway, until
from tests.herdgate_gateway.outside import is_idle
from tests.herdgate_gateway.processes.children import status
from tests.herdgate_gateway.test_serve_listeners import listening_with_tls, trusting
from tests.wire import handshake, knock

CLIENTS = 300


async def leave(port: int, context: ssl.SSLContext) -> None:
    """Shake hands, ask to come in, and be gone."""
    _, writer = await asyncio.open_connection("localhost", port, ssl=context)
    writer.write(handshake("/ws"))
    writer.close()
    await writer.wait_closed()


async def test_a_client_that_leaves_while_it_is_joined_leaves_no_connection_to_its_worker() -> None:
    authority = trustme.CA()
    async with (
        echo_worker() as worker,
        listening_with_tls(authority, worker.url, "rate = 100000", pace="100000") as serving,
    ):
        for _ in range(CLIENTS):
            await leave(serving.port, trusting(authority))
        await is_idle(serving)
        (seen,) = (await status(serving))["workers"]
        assert (seen["open"], seen["pending"]) == (0, 0)
        await until(lambda: len(worker.ended) == len(worker.seen), "all that the worker has taken has ended")
        assert "Traceback" not in serving.log()


async def test_an_error_between_them_closes_the_connection_to_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise ZeroDivisionError

    async with echo_worker() as worker, gateway([worker.url], leg="splice") as front:
        with monkeypatch.context() as patch:
            patch.setattr("herdgate_gateway.front_door.protocol.set_tcp_options", fail)
            assert (await knock(front.port, "/ws")).status == 500
        await front.is_idle()
        await until(lambda: worker.ended == [(1001, "")], "the worker is told")
        assert (await knock(front.port, "/ws")).status == 101
