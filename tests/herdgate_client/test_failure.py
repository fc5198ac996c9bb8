"""What is tried again and what is not, on real sockets; time passes by itself."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trustme
from websockets.asyncio.client import ClientConnection
from websockets.asyncio.server import serve

from herdgate_client import ClosedError, GaveUpError, RefusedError, UntrustedError
from tests.herdgate_client.scripted import CUT, OPEN, SILENCE, Enough, Retries, closing, giving, refusal, sockets_of
from tests.herdgate_gateway.gateways import closed_port, until

EXACT = "Herdgate-Retry-Ms: 5000"


class ClosesAtOnce(ClientConnection):
    """Says 1008 first: the server's is an echo."""

    async def wait_closed(self) -> None:
        """Close it, instead of waiting for the server."""
        await self.close(1008)


@pytest.mark.parametrize("status", [408, 421, 425, 429, 500, 501, 502, 503, 504, 511, 599])
async def test_status_that_passes_is_tried_again(status: int) -> None:
    retries = Retries()
    async with giving(refusal(status), OPEN) as server:
        await sockets_of(server.url, retries)
        assert len(server.visits) == 2
    assert retries.whys == [f"HTTP {status}"]
    assert 0.1 <= retries.delays[0] <= 1


@pytest.mark.parametrize("status", [200, 204, 300, 302, 304, 400, 401, 402, 403, 404, 405, 407, 410, 418, 426, 451])
async def test_status_that_stays_is_raised(status: int) -> None:
    retries = Retries()
    async with giving(refusal(status, "Retry-After: 1"), OPEN) as server:
        with pytest.raises(RefusedError, match=rf"^ws://127\.0\.0\.1:\d+: HTTP {status}; ") as refused:
            await sockets_of(server.url, retries)
        assert len(server.visits) == 1
    assert refused.value.status == status
    assert retries.delays == []


async def test_reason_of_a_denial_is_said() -> None:
    async with giving(refusal(403, body=b'{"reason": "origin"}')) as server:
        with pytest.raises(RefusedError, match="HTTP 403 origin; this client or its origin is not allowed"):
            await sockets_of(server.url, Retries())


@pytest.mark.parametrize("status", [400, 403, 404, 418])
async def test_status_with_an_exact_time_is_tried_again_whatever_it_is(status: int) -> None:
    retries = Retries()
    async with giving(refusal(status, EXACT), OPEN) as server:
        await sockets_of(server.url, retries)
    assert retries.delays == [5]


async def test_header_that_comes_twice_says_nothing() -> None:
    retries = Retries()
    async with giving(refusal(503, EXACT, EXACT), OPEN) as server:
        await sockets_of(server.url, retries)
    assert retries.delays[0] <= 1


@pytest.mark.parametrize("answer", [CUT, b"HTTP/1.1 503 So\r\nContent-"])
async def test_connection_that_is_cut_is_tried_again(answer: bytes) -> None:
    retries = Retries()
    async with giving(answer, OPEN) as server:
        await sockets_of(server.url, retries)
    assert retries.whys == ["did not receive a valid HTTP response"]


async def test_silence_is_tried_again() -> None:
    retries = Retries()
    async with giving(SILENCE, OPEN) as server:
        await sockets_of(server.url, retries, open_timeout=1)
    assert retries.whys == ["timed out during opening handshake"]


async def test_nobody_there_is_tried_for_ever() -> None:
    retries = Retries(most=50)
    with pytest.raises(Enough):
        await sockets_of(closed_port(), retries)
    assert all("Connect call failed" in why for why in retries.whys)
    assert [delay for failures, delay in enumerate(retries.delays) if not 0.1 <= delay <= min(30, 2**failures)] == []
    assert max(retries.delays) > 15


async def test_unknown_name_is_tried_again() -> None:
    with pytest.raises(Enough):
        await sockets_of("ws://nobody.invalid/", Retries(most=1))


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9.2\r\n\r\n", b"HTTP/1.1 101 So\r\nUpgrade: tea\r\nConnection: Upgrade\r\n\r\n"]
)
async def test_answer_of_something_else_is_raised(answer: bytes) -> None:
    async with giving(answer) as server:
        with pytest.raises(GaveUpError, match="no later try can succeed") as gave_up:
            await sockets_of(server.url, Retries())
        assert len(server.visits) == 1
    assert gave_up.value.__cause__ is not None


async def test_subprotocol_that_is_refused_is_raised() -> None:
    async with giving(OPEN) as server:
        with pytest.raises(GaveUpError, match="no subprotocol of those offered"):
            await sockets_of(server.url, Retries(), subprotocols=["chat"])
        (visit,) = server.visits
        await until(visit.writer.is_closing, "the socket is closed")


async def test_subprotocol_that_is_chosen_is_the_sockets() -> None:
    async with giving(OPEN, headers=("Sec-WebSocket-Protocol: chat",)) as server:
        (ws,) = await sockets_of(server.url, Retries(), subprotocols=["chat"])
    assert ws.subprotocol == "chat"


@pytest.mark.parametrize("code", [1002, 1003, 1007, 1008, 1009, 1010])
async def test_close_code_that_stays_is_raised(code: int) -> None:
    async with giving(closing(code, "bad\nkey")) as server:
        with pytest.raises(ClosedError, match=rf"closed with {code} 'bad\\nkey'; not to be tried again") as closed:
            await sockets_of(server.url, Retries(), 2)
        assert len(server.visits) == 1
    assert (closed.value.code, closed.value.reason) == (code, "bad\nkey")


@pytest.mark.parametrize("code", [1000, 1001, 1011, 1012, 1013, 1014, 3000, 4000, 4999])
async def test_close_code_that_passes_is_tried_again(code: int) -> None:
    retries = Retries()
    async with giving(closing(code, "later"), OPEN) as server:
        await sockets_of(server.url, retries, 2)
    assert retries.whys == [f"closed with {code}"]
    assert 0.1 <= retries.delays[0] <= 1


async def test_code_that_our_side_sent_is_nobodys_verdict() -> None:
    retries = Retries(most=1)
    async with serve(lambda ws: ws.wait_closed(), "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        with pytest.raises(Enough):
            await sockets_of(f"ws://127.0.0.1:{port}", retries, 2, create_connection=ClosesAtOnce)
    assert retries.whys == ["closed with 1008"]


@asynccontextmanager
async def _tls_server(authority: trustme.CA) -> AsyncIterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    async with serve(lambda ws: ws.wait_closed(), "127.0.0.1", 0, ssl=context) as server:
        yield next(iter(server.sockets)).getsockname()[1]


def _trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def test_certificate_that_does_not_verify_is_raised() -> None:
    async with _tls_server(trustme.CA()) as port:
        with pytest.raises(UntrustedError, match="the server's certificate is not trusted"):
            await sockets_of(f"wss://localhost:{port}", Retries(), ssl=_trusting(trustme.CA()))


async def test_certificate_of_another_name_is_raised() -> None:
    authority = trustme.CA()
    async with _tls_server(authority) as port:
        with pytest.raises(UntrustedError, match="IP address mismatch"):
            await sockets_of(f"wss://127.0.0.1:{port}", Retries(), ssl=_trusting(authority))


async def test_certificate_that_verifies_opens_a_socket() -> None:
    authority = trustme.CA()
    async with _tls_server(authority) as port:
        (ws,) = await sockets_of(f"wss://localhost:{port}", Retries(), ssl=_trusting(authority))
    assert ws.close_code == 1000


async def test_proxy_that_cannot_now_is_tried_again_and_one_that_will_not_is_raised() -> None:
    retries = Retries()
    async with giving(refusal(503), refusal(407)) as proxy:
        with pytest.raises(RefusedError, match="HTTP 407 of the proxy; the proxy wants credentials"):
            await sockets_of("ws://chat.invalid/", retries, proxy=proxy.url.replace("ws", "http", 1))
    assert retries.whys == ["HTTP 503 of the proxy"]


async def test_message_hides_query_and_password() -> None:
    async with giving(refusal(404)) as server:
        with pytest.raises(RefusedError) as refused:
            await sockets_of(server.url.replace("://", "://user:hush@") + "/ws?token=hush", Retries())
    assert "hush" not in str(refused.value)
    assert refused.value.where == server.url + "/ws"
