"""SIGHUP and authentication: what is kept, what is made anew, and when the old is closed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.herdgate_gateway.auth.stub import stub
from tests.herdgate_gateway.auth.tokens import jwk, jwks, token
from tests.herdgate_gateway.gateways import echo_worker, until
from tests.herdgate_gateway.reloads import reload
from tests.herdgate_gateway.serving import Serving, serving
from tests.wire import WAIT_S, knock, open_socket


async def test_a_replaced_service_is_hung_up_on_once_its_handshakes_are_over_not_its_sockets() -> None:
    async with echo_worker() as worker, _slow_service() as old, stub() as new:
        with serving(_asking(old.url), worker.url) as gateway:
            slow = asyncio.ensure_future(open_socket(gateway.port, "/ws").__aenter__())
            await until(lambda: old.open == 1, "the old service is asked")
            await reload(gateway, old.url, new.url)
            assert (await knock(gateway.port, "/ws")).status == 101
            assert len(new.requests) == 1
            assert old.open == 1, "it is still waited for"
            old.answers.set()
            client = await asyncio.wait_for(slow, WAIT_S)
            await until(lambda: old.open == 0, "the old service is hung up on")
            await client.send("still there")
            assert await asyncio.wait_for(client.recv(), WAIT_S) == "still there"
            await client.close()
            assert "Traceback" not in gateway.log()


async def test_a_service_that_stays_keeps_its_connection() -> None:
    async with echo_worker() as worker, stub() as service:
        with serving(_asking(service.url), worker.url) as gateway:
            assert (await knock(gateway.port, "/ws")).status == 101
            await reload(gateway, "rate = 1000", "rate = 999")
            assert (await knock(gateway.port, "/ws")).status == 101
            assert (len(service.requests), service.connections) == (2, 1)


async def test_keys_from_a_url_stay_at_hand() -> None:
    async with echo_worker() as worker, stub() as service:
        service.body = jwks(jwk("ES256", "a"))
        with serving(_verifying(service.url), worker.url) as gateway:
            assert await _answer(gateway, token("ES256", "a")) == 101
            await reload(gateway, "rate = 1000", "rate = 999")
            assert await _answer(gateway, token("ES256", "a")) == 101
            assert len(service.requests) == 1


async def test_a_key_file_is_read_again() -> None:
    async with echo_worker() as worker:
        with serving("rate = 1000", worker.url) as gateway:
            file = gateway.folder / "keys.json"
            file.write_bytes(jwks(jwk("ES256", "a")))
            await reload(gateway, "rate = 1000", _verifying(str(file)))
            assert await _answer(gateway, token("ES256", "a")) == 101
            file.write_bytes(jwks(jwk("ES256", "b")))
            (line,) = await reload(gateway)
            assert line.endswith("changed: nothing; files read again: routes[0].auth.jwt.keys")
            assert await _answer(gateway, token("ES256", "b")) == 101
            assert await _answer(gateway, token("ES256", "a")) == 401
            file.write_bytes(b"{}")
            (line,) = await reload(gateway)
            assert "not reloaded" in line
            assert await _answer(gateway, token("ES256", "b")) == 101


@dataclass
class _SlowService:
    """It answers when told to.

    Attributes:
        open: connections.
    """

    url: str = ""
    open: int = 0
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.open += 1
        await reader.readuntil(b"\r\n\r\n")
        await self.answers.wait()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
        await reader.read()
        self.open -= 1
        writer.close()


@asynccontextmanager
async def _slow_service() -> AsyncIterator[_SlowService]:
    service = _SlowService()
    async with await asyncio.start_server(service.serve, "127.0.0.1", 0) as server:
        service.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/check"
        yield service


def _asking(url: str) -> str:
    return f'rate = 1000\n[[routes]]\nname = "all"\nauth.url = "{url}"\nauth.timeout_s = 30'


def _verifying(keys: str) -> str:
    return f'rate = 1000\n[[routes]]\nname = "default"\nauth.jwt = {{ keys = "{keys}" }}'


async def _answer(gateway: Serving, shown: str) -> int:
    return (await knock(gateway.port, "/ws", headers=[("Authorization", f"Bearer {shown}")])).status
