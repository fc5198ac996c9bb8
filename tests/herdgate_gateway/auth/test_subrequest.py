"""The sub-request: what it asks, how answers become verdicts, and that a slow service cannot be crowded."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from herdgate import AdmissionMiddleware, ConfigurationError, Limits
from herdgate.asgi import ASGIApp, Receive, Scope, Send
from herdgate_gateway.auth import AuthUrl, AuthUrlSettings
from tests.herdgate_gateway.auth.behind import Behind, scope_of
from tests.herdgate_gateway.auth.stub import Stub, stub
from tests.herdgate_gateway.in_thread import serving
from tests.servers import IMPLEMENTATIONS
from tests.wire import eventually, handshake, knock, raw


@asynccontextmanager
async def guarding(service: Stub, **options: Any) -> AsyncIterator[AuthUrl]:
    guard = AuthUrl(AuthUrlSettings(**{"url": service.url, **options}))
    try:
        yield guard
    finally:
        await guard.aclose()


async def answer_to(guard: AuthUrl, **options: Any) -> int | str:
    behind = Behind()
    return await behind.ask(guard(behind), scope_of(**options))


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        *((200, 200), (204, 200), (299, 200), (401, 401), (403, 403)),
        *((302, "auth_busy"), (400, "auth_busy"), (404, "auth_busy"), (429, "auth_busy"), (500, "auth_busy")),
        *((503, "auth_busy"), (0, "auth_busy")),
    ],
)
@pytest.mark.parametrize("kind", ["websocket", "http"])
async def test_answer_becomes_a_verdict(kind: str, status: int, answer: int | str) -> None:
    async with stub() as service, guarding(service) as guard:
        service.status = status
        service.body = b"" if status == 204 else b"whatever"
        service.headers = [(b"location", b"/elsewhere")]
        assert await answer_to(guard, kind=kind) == answer
        assert [line for line, _ in service.requests] == [b"GET /check HTTP/1.1"]
        assert guard.busy == 0


async def test_lifespan_passes() -> None:
    async with stub() as service, guarding(service) as guard:
        behind = Behind()
        assert await behind.ask(guard(behind), {"type": "lifespan"}) == 200
        assert not service.requests


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ([], "Bearer"),
        ([(b"WWW-Authenticate", b'Basic realm="caf\xe9"')], 'Basic realm="caf\xe9"'),
        ([(b"www-authenticate", b"Basic"), (b"www-authenticate", b"Digest x=1")], "Basic, Digest x=1"),
        ([(b"www-authenticate", b"")], "Bearer"),
        ([(b"www-authenticate", b"a\x01b")], "Bearer"),
    ],
)
async def test_challenge_of_the_service_is_passed_on(headers: list[tuple[bytes, bytes]], told: str) -> None:
    async with stub() as service:
        guard = AuthUrl(AuthUrlSettings(url=service.url))
        app = ending(AdmissionMiddleware(guard(accept), Limits(rate=100)), guard)
        with serving(app, ws="websockets-sansio", lifespan="on") as port:
            service.headers, service.status = headers, 401
            answered = await knock(port, "/")
            service.status = 403
            assert "www-authenticate" not in (await knock(port, "/")).headers
    assert (answered.status, answered.json()["reason"]) == (401, "auth")
    assert answered.headers["www-authenticate"] == told


async def test_service_that_is_not_there_refuses() -> None:
    async with stub() as service:
        pass
    async with guarding(service) as guard:
        assert await answer_to(guard) == "auth_busy"


async def test_chosen_headers_and_no_others_are_sent() -> None:
    sent = [(b"authorization", b"Bearer x"), (b"cookie", b"a=1"), (b"cookie", b"b=\xe9"), (b"x-other", b"y")]
    async with stub() as service, guarding(service) as guard:
        assert await answer_to(guard, headers=[(b"host", b"chat.example"), *sent]) == 200
        assert service.values(b"authorization") == [b"Bearer x"]
        assert service.values(b"cookie") == [b"a=1", b"b=\xe9"]
        assert service.values(b"x-other") == []
        assert service.values(b"host") == [b"127.0.0.1:%d" % service.port]


async def test_handshake_is_described() -> None:
    async with stub() as service, guarding(service) as guard:
        headers = [(b"host", b"chat.example"), (b"x-original-uri", b"/forged"), (b"x-real-ip", b"forged")]
        assert await answer_to(guard, headers=headers, query="room=a%20b", raw_path=b"/chat%2Fx") == 200
        assert service.values(b"x-original-uri") == [b"/chat%2Fx?room=a%20b"]
        assert service.values(b"x-original-method") == [b"GET"]
        assert service.values(b"x-forwarded-host") == [b"chat.example"]
        assert service.values(b"x-forwarded-proto") == [b"https"]
        assert service.values(b"x-real-ip") == [b"192.0.2.7"]
        assert await answer_to(guard, kind="http", method="POST", scheme="http", client=None) == 200
        assert service.values(b"x-original-method") == [b"POST"]
        assert service.values(b"x-forwarded-proto") == [b"http"]
        assert service.values(b"x-real-ip") == []


async def test_chosen_header_replaces_ours() -> None:
    async with stub() as service, guarding(service, headers=["X-Real-IP"]) as guard:
        assert await answer_to(guard, headers=[(b"x-real-ip", b"198.51.100.9")]) == 200
        assert service.values(b"x-real-ip") == [b"198.51.100.9"]


async def test_taken_headers_replace_whatever_the_client_sent_under_their_names() -> None:
    behind = Behind()
    forged = [(b"x-user", b"root"), (b"x_user", b"root"), (b"x-role", b"root"), (b"x-kept", b"1")]
    async with stub() as service, guarding(service, response_headers=["X-User", "x_role"]) as guard:
        service.headers = [(b"X-User", b"ann"), (b"x-secret", b"s")]
        assert await behind.ask(guard(behind), scope_of(headers=forged)) == 200
    assert behind.scopes[0]["headers"] == [(b"x-kept", b"1"), (b"x-user", b"ann")]


async def test_cookies_of_the_service_are_not_kept_for_the_next_client() -> None:
    async with stub() as service, guarding(service) as guard:
        service.headers = [(b"set-cookie", b"session=of-ann; Path=/")]
        for _ in range(2):
            assert await answer_to(guard) == 200
        assert service.values(b"cookie") == []


async def test_no_proxy_or_password_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1 login a password b\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    async with stub() as service, guarding(service) as guard:
        assert await answer_to(guard) == 200
        assert service.values(b"authorization") == []


async def test_connections_are_used_again() -> None:
    async with stub() as service, guarding(service) as guard:
        service.body = b"x" * 1_000
        for _ in range(5):
            assert await answer_to(guard) == 200
        assert (len(service.requests), service.connections) == (5, 1)


async def test_long_body_is_not_read_to_its_end() -> None:
    async with stub() as service, guarding(service) as guard:
        service.body = b"x" * 10_000_000
        assert await answer_to(guard) == 200
        service.body = b""
        assert await answer_to(guard) == 200


@pytest.mark.parametrize("value", [b"a\r\nx-injected: 1", b"a\nb", b"\x00"])
async def test_header_that_cannot_be_sent_refuses(value: bytes) -> None:
    async with stub() as service, guarding(service) as guard:
        assert await answer_to(guard, headers=[(b"authorization", value)]) == "auth_busy"
        assert not service.requests


async def test_slow_answer_is_a_refusal_in_time() -> None:
    async with stub() as service, guarding(service, timeout_s=0.2) as guard:
        service.latency_s = 30
        async with asyncio.timeout(5):
            assert await answer_to(guard) == "auth_busy"
        assert guard.busy == 0
        service.latency_s = 0
        assert await answer_to(guard) == 200


async def test_excess_is_refused_at_once_and_never_queued() -> None:
    async with stub() as service, guarding(service, max_busy=3) as guard:
        service.latency_s = 0.3
        answers = Counter(await asyncio.gather(*(answer_to(guard) for _ in range(20))))
        assert answers == {200: 3, "auth_busy": 17}
        assert (service.most_busy, len(service.requests)) == (3, 3)
        service.latency_s = 0
        assert await answer_to(guard) == 200


async def test_zero_busy_is_nobody() -> None:
    async with stub() as service, guarding(service, max_busy=0) as guard:
        assert await answer_to(guard) == "auth_busy"
        assert not service.requests


async def test_clients_that_are_cancelled_free_their_places_when_their_calls_end() -> None:
    """A cancelled call could keep its connection in the pool for ever, until nobody gets one any more."""
    async with stub() as service, guarding(service, max_busy=2, timeout_s=30) as guard:
        service.latency_s = 0.01
        for moment in range(40):
            task = asyncio.create_task(answer_to(guard))
            await asyncio.sleep(moment % 5 / 250)
            task.cancel()
            await asyncio.wait((task,))

        async def passes() -> bool:
            return await answer_to(guard) == 200

        for _ in range(5):
            await eventually(passes, "a place is free")


async def _is(condition: bool) -> bool:
    return condition


async def test_failures_do_not_flood_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with stub() as service, guarding(service) as guard:
        service.status = 500
        for _ in range(50):
            await answer_to(guard)
    lines = [record.message for record in caplog.records if record.name.startswith("herdgate")]
    assert len(lines) == 1
    assert "500" in lines[0]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"url": "auth.example/check"}, "url"),
        ({"url": "ftp://auth.example"}, "url"),
        ({"url": "http://"}, "url"),
        ({"url": "http://[::1"}, "url"),
        ({"timeout_s": 0}, "timeout_s"),
        ({"timeout_s": 61}, "timeout_s"),
        ({"max_busy": -1}, "max_busy"),
        ({"max_busy": 1.5}, "max_busy"),
        ({"headers": "cookie"}, "headers"),
        ({"headers": ["a b"]}, "headers"),
        ({"headers": [""]}, "headers"),
        ({"headers": ["Host"]}, "headers"),
        ({"headers": ["Sec-WebSocket-Key"]}, "headers"),
        ({"headers": ["Content-Length"]}, "headers"),
        ({"response_headers": ["Connection"]}, "response_headers"),
    ],
)
def test_wrong_settings_are_one_line(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^auth\.{field}: got .*; ") as error:
        AuthUrlSettings(**{"url": "http://127.0.0.1:1/", **options})
    assert "\n" not in str(error.value)


async def accept(scope: Scope, receive: Receive, send: Send) -> None:
    assert (await receive())["type"] == "websocket.connect"
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


def ending(app: ASGIApp, guard: AuthUrl) -> ASGIApp:
    """The app; when its server ends, the guard is closed in the server's own loop."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for step in ("startup", "shutdown"):
            await receive()
            if step == "shutdown":
                await guard.aclose()
            await send({"type": f"lifespan.{step}.complete"})

    return served


@pytest.mark.parametrize("ws", IMPLEMENTATIONS)
async def test_verdict_reaches_a_real_client(ws: str) -> None:
    async with stub() as service:
        guard = AuthUrl(AuthUrlSettings(url=service.url))
        app = ending(AdmissionMiddleware(guard(accept), Limits(rate=100)), guard)
        with serving(app, ws=ws, lifespan="on") as port:
            statuses = {}
            for service.status in (200, 401, 403, 500):
                statuses[service.status] = (answered := await knock(port, "/")).status
                assert answered.status == 101 or answered.json()["reason"] in ("auth", "auth_busy")
        assert statuses == {200: 101, 401: 401, 403: 403, 500: 503}


async def test_slow_service_and_a_crowd() -> None:
    """A service that takes 10 s, and 500 clients: few calls, no 101, and everybody hears within the timeout."""
    bound = 50

    async def client(port: int) -> tuple[int, bool]:
        async with raw(port, handshake("/")) as connection:
            answered = await connection.answer()
            return answered.status, "retry-after" in answered.headers

    async with stub() as service:
        service.latency_s = 10
        guard = AuthUrl(AuthUrlSettings(url=service.url, timeout_s=2, max_busy=bound))
        middleware = AdmissionMiddleware(guard(accept), Limits(rate=None), max_wait_s=0)
        with serving(ending(middleware, guard), backlog=1024, lifespan="on") as port:
            answers = Counter(await asyncio.gather(*(client(port) for _ in range(500))))
            snapshot = middleware.gate.snapshot()
    assert answers == {(503, True): 500}
    assert 0 < service.most_busy <= bound
    assert (snapshot.denied["auth_busy"], snapshot.open, snapshot.pending) == (500, 0, 0)
    assert guard.busy == 0
