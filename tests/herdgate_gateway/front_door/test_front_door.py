"""The front door on a real process: every form of handshake meets the gate, whoever accepts it and however it comes."""

import asyncio
import contextlib
import os
import resource
import socket
from collections.abc import AsyncIterator

import pytest

from tests.herdgate_gateway.gateways import ScriptedWorker, Visitor, echo_worker, frame, scripted_worker, until
from tests.herdgate_gateway.outside import beside
from tests.herdgate_gateway.serving import Serving
from tests.wire import WAIT_S, Raw, ask, knock, open_socket, raw

CLOSED = "rate = 0\n[[routes]]\nname = 'ws'\npaths = ['/ws', '/ws/*']\n"
KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
SOUND = (
    b"GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    + KEY
    + (b"\r\nSec-WebSocket-Version: 13\r\n\r\n")
)
FORMS = {
    "plain": SOUND,
    "lower case": SOUND.replace(b"Upgrade", b"upgrade").replace(b"Connection", b"connection"),
    "upper case": SOUND.replace(b"Upgrade: websocket", b"UPGRADE: WEBSOCKET").replace(b"Host", b"HOST"),
    "no space behind colons": SOUND.replace(b": ", b":"),
    "tabs": SOUND.replace(b": ", b":\t"),
    "spaces behind values": SOUND.replace(b"\r\nUpgrade", b"  \r\nUpgrade"),
    "folded": SOUND.replace(b"Host: a", b"Host: a\r\nX-Long: a\r\n b"),
    "two hosts": SOUND.replace(b"Host: a", b"Host: a\r\nHost: b"),
    "no host": SOUND.replace(b"Host: a\r\n", b""),
    "two keys": SOUND.replace(KEY, KEY + b"\r\n" + KEY),
    "two upgrades": SOUND.replace(b"Upgrade: websocket", b"Upgrade: websocket\r\nUpgrade: websocket"),
    "two connections": SOUND.replace(b"Connection: Upgrade", b"Connection: keep-alive\r\nConnection: Upgrade"),
    "several tokens": SOUND.replace(b"Connection: Upgrade", b"Connection: keep-alive, Upgrade, x"),
    "absolute target": SOUND.replace(b"GET /ws", b"GET http://a/ws"),
    "authority": SOUND.replace(b"GET /ws", b"GET a:80"),
    "asterisk": SOUND.replace(b"GET /ws", b"GET *"),
    "fragment": SOUND.replace(b"/ws", b"/ws#x"),
    "query": SOUND.replace(b"/ws", b"/ws?a=1&b=%20"),
    "encoded": SOUND.replace(b"/ws", b"/%77s"),
    "encoded line break": SOUND.replace(b"/ws", b"/ws%0A"),
    "two slashes": SOUND.replace(b"/ws", b"//ws"),
    "slash behind": SOUND.replace(b"/ws", b"/ws/"),
    "dot segments": SOUND.replace(b"/ws", b"/x/../ws"),
    "HTTP/1.0": SOUND.replace(b"HTTP/1.1", b"HTTP/1.0"),
    "HTTP/2.0": SOUND.replace(b"HTTP/1.1", b"HTTP/2.0"),
    "body": SOUND.replace(b"Host: a", b"Host: a\r\nContent-Length: 2") + b"ab",
    "empty body": SOUND.replace(b"Host: a", b"Host: a\r\nContent-Length: 0"),
    "chunked body": SOUND.replace(b"Host: a", b"Host: a\r\nTransfer-Encoding: chunked") + b"0\r\n\r\n",
    "expectation": SOUND.replace(b"Host: a", b"Host: a\r\nExpect: 100-continue"),
    "post": SOUND.replace(b"GET", b"POST"),
    "line feeds": SOUND.replace(b"\r\n", b"\n"),
    "line break in front": b"\r\n" + SOUND,
    "frames behind": SOUND + frame(1, b"early", mask=True),
    "another handshake behind": SOUND + SOUND,
    "behind a plain request": b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" + SOUND,
    "obs-text": SOUND.replace(b"Host: a", b"Host: a\r\nX: \xff"),
    "empty value": SOUND.replace(b"Host: a", b"Host: a\r\nX:"),
    "long": SOUND.replace(b"Host: a", b"Host: a\r\nX: " + b"x" * 7_000),
    "longer": SOUND.replace(b"Host: a", b"Host: a\r\n" + b"X: " + b"x" * 20_000),
    "many headers": SOUND.replace(b"Host: a", b"Host: a" + b"\r\nX: y" * 99),
    "version 8": SOUND.replace(b"Version: 13", b"Version: 8"),
    "deflate": SOUND.replace(b"Host: a", b"Host: a\r\nSec-WebSocket-Extensions: permessage-deflate"),
    "subprotocols": SOUND.replace(b"Host: a", b"Host: a\r\nSec-WebSocket-Protocol: v1, v2"),
    "a page": SOUND.replace(b"Host: a", b"Host: a\r\nOrigin: http://a"),
    "a page elsewhere": SOUND.replace(b"Host: a", b"Host: a\r\nOrigin: http://b"),
}


@contextlib.asynccontextmanager
async def dialled() -> AsyncIterator[ScriptedWorker]:
    """A worker that takes everybody."""

    async def take(visit: Visitor) -> None:
        await visit.accept()
        await visit.reader.read()

    async with scripted_worker(take) as worker:
        yield worker


@pytest.fixture(params=["own", "asyncio"])
def listener(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_no_form_of_handshake_passes_without_a_decision(listener: str) -> None:
    async with dialled() as worker, beside(f'listener = "{listener}"\n{CLOSED}', worker.url) as gateway:
        whole = await asyncio.gather(*(whole_answer(gateway.port, form) for form in FORMS.values()))
        answers = dict(zip(FORMS, whole, strict=True))
        assert not worker.visits
        assert {name for name, answer in answers.items() if b"101 Switching" in answer} == {"a page"}
        assert b'\x03\xf5{"retry_ms":' in answers["a page"], "closed with 1013 at once"
        assert (await ask(gateway.port, "/healthz")).status == 200
        assert "Traceback" not in gateway.log()


async def test_every_form_that_passes_an_open_gate_was_counted(listener: str) -> None:
    async with (
        dialled() as worker,
        beside(f'listener = "{listener}"\nrate = 1000\n[relay]\nclose_s = 0.3', worker.url) as gateway,
    ):
        await asyncio.gather(*(first_answer(gateway.port, form) for form in FORMS.values()))
        gates = await asyncio.to_thread(gateway.status)
        assert gates["gates"]["default"]["admitted"] == len(worker.visits) > 15


async def whole_answer(port: int, form: bytes) -> bytes:
    """All that comes back, for as long as the gateway keeps the connection, or until it waits for more."""
    async with raw(port, form) as client:
        answer = b""
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(0.5):
                while data := await client._reader.read(65_536):
                    answer += data
        return answer


async def first_answer(port: int, form: bytes) -> None:
    async with raw(port, form) as client:
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(1):
                await client._reader.read(65_536)


@pytest.mark.parametrize("origin", [None, "http://a"])
async def test_a_handshake_split_anywhere_gets_the_same_answer(listener: str, origin: str | None) -> None:
    form = FORMS["plain"] if origin is None else FORMS["a page"]
    async with dialled() as worker, beside(f'listener = "{listener}"\n{CLOSED}', worker.url) as gateway:
        answers = await asyncio.gather(*(in_two(gateway.port, form, at) for at in range(1, len(form))))
        assert not worker.visits
        kinds = {answer.partition(b"\r\n")[0] for answer in answers}
        assert kinds == {b"HTTP/1.1 429 Too Many Requests" if origin is None else b"HTTP/1.1 101 Switching Protocols"}
        assert all(b"retry_ms" in answer for answer in answers)


async def in_two(port: int, form: bytes, at: int) -> bytes:
    async with raw(port, form[:at]) as client:
        await asyncio.sleep(0.02)  # two segments, not one
        await client.send(form[at:])
        answer: bytes = await asyncio.wait_for(client._reader.read(65_536), WAIT_S)
        return answer


async def test_both_listeners_and_both_ways_through_give_one_answer_but_for_its_ticket() -> None:
    seen = []
    for listener in ("own", "asyncio"):
        async with beside(f'listener = "{listener}"\n{CLOSED}', "ws://127.0.0.1:1") as gateway:
            for form in (FORMS["plain"], FORMS["obs-text"]):  # the second one goes through uvicorn and the app
                answer = (await whole_answer(gateway.port, form)).lower()
                head, _, body = answer.partition(b"\r\n\r\n")
                fields = {line.partition(b":")[0] for line in head.split(b"\r\n")[1:]} - {b"date"}
                seen.append((head.split(b"\r\n")[0], sorted(fields), sorted(part[:8] for part in body.split(b","))))
    assert all(one == seen[0] for one in seen), seen


async def test_what_a_client_sends_before_its_101_reaches_the_worker_behind_the_handshake(listener: str) -> None:
    async with (
        echo_worker() as worker,
        beside(f'listener = "{listener}"\nrate = 1000', worker.url) as gateway,
        raw(gateway.port, SOUND + frame(1, b"early", mask=True)) as client,
    ):
        assert (await client.head())[0] == 101
        assert await client.frame() == (1, b"early")


async def test_a_handshake_behind_plain_requests_on_one_connection_is_spliced(listener: str) -> None:
    async with (
        echo_worker() as worker,
        beside(f'listener = "{listener}"\nrate = 1000', worker.url) as gateway,
        raw(gateway.port, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n") as client,
    ):
        assert (await client.head())[0] == 200
        await client._reader.readexactly(3)
        await client.send(FORMS["deflate"])
        status, headers = await client.head()
        assert status == 101
        assert "permessage-deflate" in headers["sec-websocket-extensions"], "as the worker and it agree"


@pytest.mark.parametrize("mode", ["splice", "messages"])
@pytest.mark.parametrize("body", ["Content-Length: %d", "Transfer-Encoding: chunked"])
async def test_the_body_of_a_plain_request_is_never_a_handshake(mode: str, body: str) -> None:
    async with dialled() as worker, beside(f'rate = 1000\n[relay]\nmode = "{mode}"', worker.url) as gateway:
        length = body % len(SOUND) if "%" in body else body
        async with raw(gateway.port, f"POST /healthz HTTP/1.1\r\nHost: a\r\n{length}\r\n\r\n".encode()) as client:
            assert (await client.head())[0] == 200
            with contextlib.suppress(OSError):
                await client.send(SOUND if "Length" in body else b"%x\r\n%b\r\n0\r\n\r\n" % (len(SOUND), SOUND))
            assert b"HTTP/" not in await rest_of(client), "one answer, to one request"
        assert not worker.visits


async def rest_of(client: Raw) -> bytes:
    """All that still comes until the end of the connection."""
    got = b""
    with contextlib.suppress(OSError):
        while data := await asyncio.wait_for(client._reader.read(65_536), WAIT_S):
            got += data
    return got


@pytest.mark.parametrize("more", [1_000, 17_000, 200_000])
async def test_a_denial_arrives_whatever_the_client_sends_behind_its_handshake(listener: str, more: int) -> None:
    async with beside(f'listener = "{listener}"\n{CLOSED}', "ws://127.0.0.1:1") as gateway:
        for _ in range(10):
            assert b" 429 " in await whole_answer(gateway.port, SOUND + b"x" * more)


async def test_a_denial_arrives_though_a_frame_is_on_its_way(listener: str) -> None:
    async def come(port: int) -> bytes:
        async with raw(port, SOUND) as client:
            with contextlib.suppress(OSError):
                await client.send(frame(1, b"early", mask=True))
            return await rest_of(client)

    async with beside(f'listener = "{listener}"\n{CLOSED}', "ws://127.0.0.1:1") as gateway:
        for _ in range(20):
            answers = await asyncio.gather(*(come(gateway.port) for _ in range(25)))
            assert all(b"retry_ms" in answer for answer in answers)


@pytest.mark.parametrize("mode", ["splice", "messages"])
async def test_frames_behind_a_handshake_and_behind_plain_requests_reach_the_worker(mode: str) -> None:
    async with echo_worker() as worker, beside(f'rate = 1000\n[relay]\nmode = "{mode}"', worker.url) as gateway:
        async with raw(gateway.port, SOUND + frame(1, b"a" * 100, mask=True) + frame(1, b"b", mask=True)) as client:
            assert (await client.head())[0] == 101
            assert [await client.frame() for _ in range(2)] == [(1, b"a" * 100), (1, b"b")]
        async with raw(gateway.port, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n") as client:
            assert (await client.head())[0] == 200
            await client._reader.readexactly(3)
            await client.send(SOUND)
            assert (await client.head())[0] == 101


async def test_client_that_has_left_before_the_verdict_spends_no_token(listener: str) -> None:
    async with beside(f'listener = "{listener}"\nrate = 0.001\nburst = 1', "ws://127.0.0.1:1") as gateway:
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", gateway.port)) as leaving:
                leaving.sendall(SOUND, socket.MSG_MORE)  # with the FIN in one packet
                leaving.shutdown(socket.SHUT_WR)

        def gone() -> int:
            return int(gateway.status()["gates"]["default"]["gone"])

        await until(lambda: gone() == 20, "all have left", within_s=10)
        assert gateway.status()["gates"]["default"]["tokens"] == pytest.approx(1, abs=0.1)


async def test_a_firm_slot_close_by_is_waited_for(listener: str) -> None:
    toml = f'listener = "{listener}"\nrate = 20\nburst = 1\nmax_wait_s = 1'
    async with echo_worker() as worker, beside(toml, worker.url) as gateway:
        await knock(gateway.port, "/ws")
        told = (await knock(gateway.port, "/ws")).json()
        await asyncio.sleep(told["retry_ms"] / 1000)
        crowd = [open_socket(gateway.port, f"/ws?herdgate_ticket={told['ticket']}") for _ in range(3)]
        entered = await asyncio.gather(*crowd, return_exceptions=True)
        assert any(not isinstance(each, BaseException) for each in entered)
        for each in entered:
            if not isinstance(each, BaseException):
                await each.close()


async def test_a_page_that_never_answers_its_close_frame_keeps_its_socket_for_a_second() -> None:
    """For our own listener see `test_lingering`."""
    async with (
        beside(f'listener = "asyncio"\n{CLOSED}', "ws://127.0.0.1:1") as gateway,
        raw(gateway.port, FORMS["a page"]) as client,
    ):
        began = asyncio.get_running_loop().time()
        while await asyncio.wait_for(client._reader.read(65_536), WAIT_S):
            pass
        assert 0.9 <= asyncio.get_running_loop().time() - began < 9


async def test_out_of_descriptors_who_comes_is_told_so_and_who_is_in_stays() -> None:
    async with echo_worker() as worker, beside("rate = 100000", worker.url) as gateway:
        limit(gateway, spare=12)
        async with open_socket(gateway.port, "/ws") as inside:
            crowd = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(40)]
            for _, writer in crowd:
                writer.write(b"GET /ws HTTP/1.1\r\n")
            said = await asyncio.gather(*(first_bytes(reader) for reader, _ in crowd))
            assert any(b"503" in each for each in said)
            await inside.send("still here")
            assert await asyncio.wait_for(inside.recv(), WAIT_S) == "still here"
            for _, writer in crowd:
                writer.close()
        answer = await asyncio.wait_for(knock_until(gateway), WAIT_S)
        assert answer == 101


async def first_bytes(reader: asyncio.StreamReader) -> bytes:
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(1):
            return await reader.read(1_000)
    return b""


async def knock_until(gateway: Serving) -> int:
    while True:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            status = (await knock(gateway.port, "/ws")).status
            if status == 101:
                return status
        await asyncio.sleep(0.05)


def limit(gateway: Serving, *, spare: int) -> None:
    """Leave it so many descriptors."""
    pid = gateway.process.pid
    used = max(map(int, os.listdir(f"/proc/{pid}/fd"))) + 1  # noqa: PTH208
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (used + spare, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
