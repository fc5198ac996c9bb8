"""Tokens: which ones get through, and that the claims are those of the token that was verified."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from herdgate import AdmissionMiddleware, ClientLimits, ConfigurationError, Limits
from herdgate.asgi import Receive, Scope, Send
from herdgate_gateway.auth import Jwt, JwtSettings
from tests.herdgate_gateway.auth.behind import Behind, scope_of
from tests.herdgate_gateway.auth.tokens import (
    SECRET,
    claims,
    encode,
    jwk,
    jwks,
    private_pem,
    public_pem,
    raw_token,
    token,
)
from tests.herdgate_gateway.in_thread import serving
from tests.servers import IMPLEMENTATIONS
from tests.wire import handshake, knock, raw


def ahead(seconds: int) -> Callable[[], int]:
    """A time that far from when the test runs."""
    return lambda: int(time.time()) + seconds


@pytest.fixture
def key_file(tmp_path: Path) -> Callable[[bytes], str]:
    def write(text: bytes) -> str:
        path = tmp_path / "keys"
        path.write_bytes(text)
        return str(path)

    return write


@pytest.fixture
def guard(key_file: Callable[[bytes], str]) -> Callable[..., Jwt]:
    def make(text: bytes | None = None, **options: Any) -> Jwt:
        return Jwt(JwtSettings(keys=key_file(jwks(jwk("RS256", "a")) if text is None else text), **options))

    return make


def bearer(text: str) -> dict[str, Any]:
    return scope_of(headers=[(b"authorization", b"Bearer " + text.encode("latin-1"))])


async def answer_to(guard: Jwt, text: str) -> int | str:
    behind = Behind()
    return await behind.ask(guard(behind), bearer(text))


@pytest.mark.parametrize("kind", ["websocket", "http"])
async def test_claims_of_a_good_token_are_in_the_state(guard: Callable[..., Jwt], kind: str) -> None:
    behind = Behind()
    scope = {**bearer(token(name="a", role="admin")), "type": kind, "state": {"kept": 1}}
    assert await behind.ask(guard()(behind), scope) == 200
    state = behind.scopes[0]["state"]
    assert (state["claims"]["sub"], state["claims"]["role"], state["kept"]) == ("ann", "admin", 1)


async def test_token_stays_where_it_is(guard: Callable[..., Jwt]) -> None:
    behind = Behind()
    scope = scope_of(query=f"x=1&access_token={token(name='a')}")
    before = scope["query_string"]
    assert await behind.ask(guard(place="query")(behind), scope) == 200
    assert behind.scopes[0]["query_string"] == before


async def test_lifespan_passes(guard: Callable[..., Jwt]) -> None:
    behind = Behind()
    assert await behind.ask(guard()(behind), {"type": "lifespan"}) == 200
    assert behind.scopes == [{"type": "lifespan"}]


async def test_without_a_token_it_is_401(guard: Callable[..., Jwt]) -> None:
    behind = Behind()
    assert await behind.ask(guard()(behind), scope_of()) == 401


@pytest.mark.parametrize("place", ["query", "cookie"])
async def test_token_is_looked_for_in_its_place_only(guard: Callable[..., Jwt], place: str) -> None:
    behind = Behind()
    guarded = guard(place=place, name="t")(behind)
    text = token(name="a")
    shown = {"query": scope_of(query=f"t={text}"), "cookie": scope_of(headers=[(b"cookie", b"t=" + text.encode())])}
    answers = {name: await behind.ask(guarded, scope) for name, scope in shown.items()}
    assert answers.pop(place) == 200
    assert set(answers.values()) == {401}
    assert await behind.ask(guarded, bearer(text)) == 401


async def test_header_name_is_not_case_sensitive(guard: Callable[..., Jwt]) -> None:
    behind = Behind()
    scope = scope_of(headers=[(b"x-token", token(name="a").encode())])
    assert await behind.ask(guard(name="X-Token")(behind), scope) == 200


@pytest.mark.parametrize(
    "algorithm", ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA", "HS256", "HS384", "HS512"]
)
async def test_every_algorithm_verifies_with_its_own_key_only(guard: Callable[..., Jwt], algorithm: str) -> None:
    made = guard(jwks(jwk(algorithm)), algorithms=[algorithm])
    assert await answer_to(made, token(algorithm)) == 200
    body, _, signature = token(algorithm).rpartition(".")
    other = encode(bytes(64)) if signature else ""
    assert await answer_to(made, f"{body}.{other}") == 401
    if not algorithm.startswith("HS"):
        assert await answer_to(made, token(algorithm, "somebody else")) == 401


async def test_pem_verifies_whatever_the_key_id(guard: Callable[..., Jwt]) -> None:
    made = guard(public_pem("RS256", "a"))
    assert await answer_to(made, token(name="a", kid="some id")) == 200
    assert await answer_to(made, token(name="b")) == 401


async def test_token_without_key_id_is_tried_with_every_key(guard: Callable[..., Jwt]) -> None:
    made = guard(public_pem("RS256", "old") + public_pem("RS256", "new"))
    for name in ("old", "new"):
        assert await answer_to(made, token(name=name, kid="x")) == 200
    assert await answer_to(made, token(name="third", kid="x")) == 401


async def test_token_with_the_id_of_another_key_is_refused(guard: Callable[..., Jwt]) -> None:
    assert await answer_to(guard(jwks(jwk("RS256", "a"), jwk("RS256", "b"))), token(name="a", kid="b")) == 401


@pytest.mark.parametrize("none", ["none", "None", "NONE", "", None])
async def test_unsigned_token_is_refused(guard: Callable[..., Jwt], none: str | None) -> None:
    assert await answer_to(guard(), raw_token({"alg": none, "typ": "JWT"}, claims())) == 401
    assert await answer_to(guard(), raw_token({"alg": none, "typ": "JWT", "kid": "a"}, claims())) == 401
    assert await answer_to(guard(), raw_token({"typ": "JWT"}, claims())) == 401


async def test_algorithm_that_is_not_listed_is_refused(guard: Callable[..., Jwt]) -> None:
    assert await answer_to(guard(algorithms=["RS256"]), token("RS512", "a")) == 401
    assert (
        await answer_to(guard(jwks(jwk("RS256", "a", alg="RS512")), algorithms=["RS256", "RS512"]), token(name="a"))
        == 401
    )


async def test_public_key_never_passes_as_an_hmac_secret(guard: Callable[..., Jwt]) -> None:
    pem = public_pem("RS256", "a")
    for secret in (pem, pem.strip(), b""):
        forged = raw_token({"alg": "HS256", "typ": "JWT", "kid": "a"}, claims(), secret)
        for text in (None, pem):
            assert await answer_to(guard(text), forged) == 401
    with pytest.raises(ConfigurationError, match=r"jwt\.keys.*none of its keys"):
        guard(public_pem("RS256", "a"), algorithms=["HS256"])


@pytest.mark.parametrize(
    ("changed", "answer"),
    [
        ({"exp": ahead(60)}, 200),
        ({"exp": ahead(-5)}, 200),
        ({"exp": ahead(-60)}, 401),
        ({"exp": None}, 401),
        ({"exp": "soon"}, 401),
        ({"exp": 1e300}, 200),
        ({"exp": float("inf")}, 401),
        ({"exp": float("nan")}, 401),
        ({"exp": [1]}, 401),
        ({"nbf": ahead(-60)}, 200),
        ({"nbf": ahead(5)}, 200),
        ({"nbf": ahead(3_600)}, 401),
        ({"nbf": "x"}, 401),
        ({"iat": ahead(3_600)}, 401),
        ({"sub": 5}, 401),
        ({"aud": "chat"}, 401),
        ({"iss": "https://whoever.example"}, 200),
    ],
)
async def test_times_and_unasked_claims(guard: Callable[..., Jwt], changed: dict[str, Any], answer: int) -> None:
    payload = {**claims(), **{name: value() if callable(value) else value for name, value in changed.items()}}
    payload = {name: value for name, value in payload.items() if value is not None}
    made = guard(jwks(jwk("HS256")), algorithms=["HS256"])
    assert await answer_to(made, raw_token({"alg": "HS256", "typ": "JWT"}, payload, SECRET)) == answer


async def test_leeway_is_as_set(guard: Callable[..., Jwt]) -> None:
    assert await answer_to(guard(leeway_s=0), token(name="a", exp=int(time.time()) - 2)) == 401
    assert await answer_to(guard(leeway_s=120), token(name="a", exp=int(time.time()) - 60)) == 200


@pytest.mark.parametrize(
    ("aud", "answer"),
    [("chat", 200), (["other", "chat"], 200), ("game", 200), ("other", 401), (None, 401), ([], 401), ("cha", 401)],
)
async def test_audience(guard: Callable[..., Jwt], aud: object, answer: int) -> None:
    assert await answer_to(guard(audience=["chat", "game"]), token(name="a", aud=aud)) == answer


@pytest.mark.parametrize(
    ("iss", "answer"), [("https://id.example", 200), ("https://id.example/", 401), ("https://id", 401), (None, 401)]
)
async def test_issuer(guard: Callable[..., Jwt], iss: str | None, answer: int) -> None:
    assert await answer_to(guard(issuer="https://id.example"), token(name="a", iss=iss)) == answer


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", "...", "a.b.c", "\xe9.\xe9.\xe9", "x" * 20_000),
        raw_token([], {}),
        raw_token({"alg": ["RS256"]}, {}),
        raw_token({"alg": "RS256", "kid": 5}, {}),
        raw_token({"alg": "RS256", "kid": {"a": 1}}, {}),
        raw_token({"alg": "RS256"}, []),
        raw_token(b"[" * 9_000, {}),
        raw_token({"alg": "RS256", "crit": ["b64"], "b64": False}, {}),
    ],
)
async def test_malformed_tokens_are_refused(guard: Callable[..., Jwt], text: str) -> None:
    assert await answer_to(guard(), text) == 401


json_values = st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=4)


@given(payload=st.dictionaries(st.sampled_from(["exp", "nbf", "iat", "aud", "iss", "sub", "jti"]), json_values))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
async def test_signed_nonsense_is_judged_without_an_error(guard: Callable[..., Jwt], payload: dict[str, Any]) -> None:
    made = guard(jwks(jwk("HS256")), algorithms=["HS256"], issuer="us", audience=["us"])
    assert await answer_to(made, raw_token({"alg": "HS256"}, payload, SECRET)) in (200, 401)


@pytest.mark.parametrize(
    ("value", "key"), [("ann", "ann"), (7, "7"), (True, None), (None, None), (["a"], None), ("", "")]
)
def test_client_key_is_the_verified_claim(guard: Callable[..., Jwt], value: object, key: str | None) -> None:
    find = guard().client_key("account")
    assert find(bearer(token(name="a", account=value))) == key
    assert find(bearer(token(name="b", kid="a", account=value))) is None
    assert find(scope_of()) is None


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"algorithms": []}, "algorithms"),
        ({"algorithms": ["none"]}, "algorithms"),
        ({"algorithms": ["RS256", "none"]}, "algorithms"),
        ({"algorithms": "RS256"}, "algorithms"),
        ({"algorithms": ["RS256", "HS256"]}, "algorithms"),
        ({"algorithms": ["HS256"], "keys": "https://id.example/keys"}, "keys"),
        ({"keys": "ftp://id.example/keys"}, "keys"),
        ({"keys": "https://"}, "keys"),
        ({"keys": "/no/such/file"}, "keys"),
        ({"keys": "/"}, "keys"),
        ({"keys": "/dev/null"}, "keys"),
        ({"audience": "chat"}, "audience"),
        ({"place": "body"}, "from"),
        ({"name": ""}, "name"),
        ({"leeway_s": -1}, "leeway_s"),
        ({"leeway_s": 301}, "leeway_s"),
        ({"leeway_s": float("nan")}, "leeway_s"),
    ],
)
def test_wrong_settings_are_one_line(key_file: Callable[[bytes], str], options: dict[str, Any], field: str) -> None:
    keys = key_file(jwks(jwk("RS256")))
    with pytest.raises(ConfigurationError, match=rf"^jwt\.{field}: got .*; ") as error:
        Jwt(JwtSettings(**{"keys": keys, **options}))
    assert "\n" not in str(error.value)


def test_private_key_file_is_refused(guard: Callable[..., Jwt]) -> None:
    with pytest.raises(ConfigurationError, match="private key"):
        guard(private_pem("RS256"))


async def accept(scope: Scope, receive: Receive, send: Send) -> None:
    assert (await receive())["type"] == "websocket.connect"
    await send({"type": "websocket.accept", "headers": [(b"x-sub", scope["state"]["claims"]["sub"].encode())]})
    while (await receive())["type"] != "websocket.disconnect":
        pass


@pytest.mark.parametrize("ws", IMPLEMENTATIONS)
async def test_no_handshake_is_answered_101_without_a_good_token(guard: Callable[..., Jwt], ws: str) -> None:
    middleware = AdmissionMiddleware(guard()(accept), Limits(rate=None))
    with serving(middleware, ws=ws) as port:
        good = [("Authorization", f"Bearer {token(name='a')}")]
        assert (await knock(port, "/", headers=good)).headers["x-sub"] == "ann"
        for headers in ([], [("Authorization", f"Bearer {token(name='b', kid='a')}")]):
            refused = await knock(port, "/", headers=headers)
            assert (refused.status, refused.json()["reason"]) == (401, "auth")
            assert "retry-after" not in refused.headers
        assert middleware.gate.snapshot().open == 0


async def test_limits_per_client_count_the_verified_claim(guard: Callable[..., Jwt]) -> None:
    made = guard()
    limits = Limits(rate=None, client=ClientLimits(open=1), anonymous=ClientLimits())
    with serving(AdmissionMiddleware(made(accept), limits, client_key=made.client_key("sub"))) as port:

        def shake(sub: str) -> Any:
            text = token(name="a", sub=sub)
            return raw(port, handshake("/", headers=[("Authorization", f"Bearer {text}")]))

        async with shake("ann") as first, shake("bob") as other:
            assert (await first.head())[0] == (await other.head())[0] == 101
            async with shake("ann") as second:
                assert (await second.head())[0] == 429
