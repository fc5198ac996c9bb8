"""Clients over TLS, where nobody can end one side of a connection only."""

import asyncio
import logging
import ssl
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
import trustme
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from herdgate_gateway.relay import RelaySettings
from tests.herdgate_gateway.gateways import Visitor, echo_worker, frame, scripted_worker, until
from tests.herdgate_gateway.splice.fronts import Front, splice
from tests.herdgate_gateway.splice.scripts import close_payload, closing
from tests.wire import WAIT_S

QUICK = RelaySettings(close_s=0.4, max_message_bytes=1 << 20, stall_s=0.5)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing above INFO, whatever a client or a worker does."""
    yield
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


@pytest.fixture(scope="module")
def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The server's, and the client's."""
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(client)
    return server, client


def secure(front: Front, context: ssl.SSLContext) -> connect:
    """A WebSocket over TLS."""
    return connect(f"wss://127.0.0.1:{front.port}/ws", ssl=context, proxy=None, max_size=1 << 21, ping_interval=None)


async def closed(client: ClientConnection) -> tuple[int | None, str | None]:
    """Read to the end: code and reason."""
    with suppress(ConnectionClosed):
        while True:
            await asyncio.wait_for(client.recv(), WAIT_S)
    return client.close_code, client.close_reason


Contexts = tuple[ssl.SSLContext, ssl.SSLContext]


async def test_messages_pass_and_the_client_s_end_is_the_worker_s(contexts: Contexts) -> None:
    async with echo_worker() as worker, splice([worker.url], tls=contexts[0]) as front:
        async with secure(front, contexts[1]) as client:
            for message in ("text", b"x" * (1 << 20)):
                await client.send(message)
                assert await asyncio.wait_for(client.recv(), WAIT_S) == message
            await client.close(4000, "bye")
        await until(lambda: worker.ended == [(4000, "bye")], f"{worker.ended}")
        await front.is_idle()
    assert dict(worker.seen[0]["headers"])[b"x-forwarded-proto"] == b"https"


async def vanish(visit: Visitor) -> None:
    await visit.accept()


async def close_and_vanish(visit: Visitor) -> None:
    await visit.accept(then=frame(1, b"x") + frame(8, close_payload(4001)))


async def break_the_rules(visit: Visitor) -> None:
    await visit.accept(then=b"\xff\xff\xff\xff")
    await visit.reader.read()


@pytest.mark.parametrize(
    ("script", "code"),
    [(vanish, 1012), (closing(close_payload(1012)), 1012), (close_and_vanish, 4001), (break_the_rules, 1014)],
)
async def test_the_worker_s_end_is_the_client_s(contexts: Contexts, script: object, code: int) -> None:
    async with (
        scripted_worker(script) as worker,  # type: ignore[arg-type]
        splice([worker.url], tls=contexts[0], settings=QUICK) as front,
    ):
        for _ in range(5):
            async with secure(front, contexts[1]) as client:
                assert (await closed(client))[0] == code
            await front.is_idle()


async def test_a_client_that_is_cut_is_told_to_the_worker(contexts: Contexts) -> None:
    async with echo_worker() as worker, splice([worker.url], tls=contexts[0], settings=QUICK) as front:
        async with secure(front, contexts[1]) as client:
            client.transport.abort()
        await until(lambda: worker.ended == [(1001, "")], f"{worker.ended}")
        await front.is_idle()


async def test_a_message_too_big_is_told(contexts: Contexts) -> None:
    settings = RelaySettings(max_message_bytes=1000, close_s=0.4)
    async with echo_worker() as worker, splice([worker.url], tls=contexts[0], settings=settings) as front:
        async with secure(front, contexts[1]) as client:
            with suppress(ConnectionClosed):
                await client.send([b"\0" * 600, b"\xff" * (1 << 20)] * 2)
            assert await closed(client) == (1009, "message too big")
        await front.is_idle()


async def test_a_client_that_does_not_read_is_gone_in_time(contexts: Contexts) -> None:
    async def fountain(visit: Visitor) -> None:
        await visit.accept()
        while True:
            await visit.send(frame(2, b"x" * 65_536))

    async with (
        scripted_worker(fountain) as worker,
        splice([worker.url], tls=contexts[0], settings=QUICK) as front,
        secure(front, contexts[1]) as client,
    ):
        client.transport.pause_reading()
        await front.has_joined()
        start = time.monotonic()
        await front.is_idle()
        assert time.monotonic() - start < 8
        client.transport.abort()


async def test_it_can_be_closed_from_here(contexts: Contexts) -> None:
    async with echo_worker() as worker, splice([worker.url], tls=contexts[0]) as front:
        async with secure(front, contexts[1]) as client:
            joint = await front.has_joined()
            joint.say("goodbye")
            joint.close(1012, "drained")
            assert await client.recv() == "goodbye"
            assert await closed(client) == (1012, "drained")
        await front.is_idle()
