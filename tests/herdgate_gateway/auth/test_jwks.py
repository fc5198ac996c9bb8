"""Keys from a URL: how often it is asked, and that nothing it does wrong takes keys away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from herdgate_gateway.auth import Jwt, JwtSettings
from herdgate_gateway.auth import jwks as source
from herdgate_gateway.auth.jwks import KeysUnavailableError, KeyUrl
from tests.herdgate_gateway.auth.behind import Behind, scope_of
from tests.herdgate_gateway.auth.stub import Stub, stub
from tests.herdgate_gateway.auth.tokens import jwk, jwks, token
from tests.wire import eventually

A, B = jwk("RS256", "a"), jwk("RS256", "b")


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def asked(service: Stub, clock: Clock | None = None) -> AsyncIterator[KeyUrl]:
    keys = KeyUrl("jwt.keys", service.url, clock or Clock())
    try:
        yield keys
    finally:
        await keys.aclose()


async def found(keys: KeyUrl, kid: str) -> list[str | None]:
    return [key.kid for key in await keys.find(kid, "RS256")]


async def test_first_arrivals_share_one_fetch() -> None:
    async with stub() as service, asked(service) as keys:
        service.body, service.latency_s = jwks(A), 0.1
        answers = await asyncio.gather(*(found(keys, "a") for _ in range(50)))
        assert answers == [["a"]] * 50
        assert len(service.requests) == 1


async def test_known_keys_are_not_asked_for_again() -> None:
    clock = Clock()
    async with stub() as service, asked(service, clock) as keys:
        service.body = jwks(A)
        for _ in range(10):
            assert await found(keys, "a") == ["a"]
            clock.now += 29
        assert len(service.requests) == 1


async def test_unknown_key_id_asks_again_but_not_often() -> None:
    clock = Clock()
    async with stub() as service, asked(service, clock) as keys:
        service.body = jwks(A)
        assert await found(keys, "a") == ["a"]
        service.body = jwks(A, B)
        assert await found(keys, "b") == []
        assert len(service.requests) == 1
        clock.now += source.REFETCH_S
        assert await asyncio.gather(*(found(keys, "b") for _ in range(20))) == [["b"]] * 20
        for number in range(100):
            assert await found(keys, f"made up {number}") == []
        assert len(service.requests) == 2


async def test_old_keys_serve_while_new_ones_are_fetched() -> None:
    clock = Clock()
    async with stub() as service, asked(service, clock) as keys:
        service.body = jwks(A)
        await found(keys, "a")
        clock.now += source.TTL_S + 1
        service.body, service.latency_s = jwks(B), 0.2
        assert await found(keys, "a") == ["a"]  # whoever had waited would have lost it

        async def replaced() -> bool:
            return bool(keys.held("b", "RS256"))

        await eventually(replaced, "the new keys are there")
        assert keys.held("a", "RS256") == ()


async def test_very_old_keys_are_fetched_before_they_serve() -> None:
    clock = Clock()
    async with stub() as service, asked(service, clock) as keys:
        service.body = jwks(A)
        await found(keys, "a")
        clock.now += 2 * source.TTL_S + 1
        service.body = jwks(B)
        assert await found(keys, "b") == ["b"]
        assert keys.held("a", "RS256") == ()


BROKEN = {
    "error": (500, b""),
    "redirect": (302, jwks(B)),
    "created": (201, jwks(B)),
    "no JSON": (200, b"<html>"),
    "no keys": (200, b'{"keys": []}'),
    "too long": (200, jwks(B) + b" " * source.MOST_BYTES),
    "hang up": (0, b""),
}


@pytest.mark.parametrize(("status", "body"), BROKEN.values(), ids=BROKEN)
async def test_failing_fetch_keeps_the_keys(status: int, body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    async with stub() as service, asked(service, clock) as keys:
        service.body = jwks(A)
        await found(keys, "a")
        service.status, service.body = status, body
        service.headers = [(b"location", b"/check")] if status == 302 else []
        for _ in range(3):
            clock.now += 2 * source.TTL_S + 1
            assert await found(keys, "a") == ["a"]
        with pytest.raises(KeysUnavailableError):  # it may be a new one: nobody can tell
            await keys.find("b", "RS256")
        assert len(service.requests) == 4
    assert len([record for record in caplog.records if "the keys there are stay" in record.message]) == 3


async def test_without_any_key_it_is_tried_again_soon() -> None:
    clock = Clock()
    async with stub() as service, asked(service, clock) as keys:
        service.status = 500
        for _ in range(5):
            with pytest.raises(KeysUnavailableError):
                await keys.find("a", "RS256")
        assert len(service.requests) == 1
        clock.now += source.FIRST_RETRY_S
        service.status, service.body = 200, jwks(A)
        assert await found(keys, "a") == ["a"]


async def test_slow_fetch_ends_in_time_and_does_not_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "FETCH_S", 0.2)
    async with stub() as service, asked(service) as keys:
        service.latency_s = 30
        waiting = asyncio.create_task(keys.find("a", "RS256"))
        turns = 0
        while not waiting.done():
            await asyncio.sleep(0.01)
            turns += 1
        assert isinstance(waiting.exception(), KeysUnavailableError)
        assert turns > 5


async def test_arrival_that_leaves_does_not_end_the_fetch_of_others() -> None:
    async with stub() as service, asked(service) as keys:
        service.body, service.latency_s = jwks(A), 0.2
        leaving, staying = (asyncio.create_task(found(keys, "a")) for _ in range(2))
        await eventually(lambda: _is(service.busy == 1), "the fetch is in progress")
        leaving.cancel()
        assert await staying == ["a"]
        assert leaving.cancelled()
        assert len(service.requests) == 1


async def _is(condition: bool) -> bool:
    return condition


async def test_closing_ends_a_fetch_in_progress() -> None:
    async with stub() as service:
        service.latency_s = 30
        async with asked(service) as keys:
            waiting = asyncio.create_task(keys.find("a", "RS256"))
            await eventually(lambda: _is(service.busy == 1), "the fetch is in progress")
        waiting.cancel()
        await asyncio.wait((waiting,))
        await eventually(lambda: _is(service.busy == 0), "the fetch has ended")


async def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    async with stub() as service, asked(service) as keys:
        service.body = jwks(A)
        assert await found(keys, "a") == ["a"]


async def test_password_and_query_of_the_url_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    async with stub() as service:
        service.status = 500
        keys = KeyUrl("jwt.keys", service.url.replace("http://", "http://user:secret@") + "?key=hidden", Clock())
        with pytest.raises(KeysUnavailableError):
            await keys.find("a", "RS256")
        await keys.aclose()
    (line,) = [record.message for record in caplog.records if record.name.startswith("herdgate")]
    assert "secret" not in line
    assert "hidden" not in line
    assert service.url in line


async def test_token_is_checked_against_the_url_and_refused_as_busy_without_it() -> None:
    async with stub() as service:
        guard, behind = Jwt(JwtSettings(keys=service.url)), Behind()

        async def answer(text: str) -> int | str:
            return await behind.ask(guard(behind), scope_of(headers=[(b"authorization", text.encode())]))

        service.status = 500
        assert await answer(token(name="a")) == "auth_busy"
        assert await answer("no token") == 401
        service.status, service.body = 200, jwks(A)

        async def passes() -> bool:
            return await answer(token(name="a")) == 200

        await eventually(passes, "the keys are fetched again")
        assert await answer(token(name="b", kid="a")) == 401
        await guard.aclose()
