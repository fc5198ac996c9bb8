"""What an arrival at `herdgate serve` has to pass, in order: its own shape, its origin, who it is. Real processes."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.herdgate_gateway.auth import tokens
from tests.herdgate_gateway.auth.stub import stub
from tests.herdgate_gateway.gateways import EchoWorker, echo_worker
from tests.herdgate_gateway.handshakes import AMBIGUOUS, WITH_BODY
from tests.herdgate_gateway.serving import Serving, serving
from tests.wire import WAIT_S, eventually, knock, open_socket, raw

SCARCE = "rate = 0.001\nburst = 3\n"
EVIL = ["https://evil.example", "null", "http://a:b", "", "evil", "http://[::1", "file://", "http://127.0.0.1:1"]


IDS = """
[[routes]]
name = "path"
paths = ["/path/*"]
connection_id = { path = 2 }
[[routes]]
name = "query"
paths = ["/query"]
connection_id = { query = "id" }
[[routes]]
name = "header"
paths = ["/header"]
connection_id = { header = "X-Id" }
[[routes]]
name = "cookie"
paths = ["/cookie"]
connection_id = { cookie = "id" }
"""


COUNTS = ("tokens", "pending", "open", "held", "admitted", "denied", "gone", "client_keys")


async def decided(gateway: Serving) -> dict[str, Any]:
    """What decisions have changed up to this call, by route and name: waits for a status that is no older."""
    since = time.monotonic()
    transport = httpx.AsyncHTTPTransport(uds=str(gateway.folder / "control"))
    async with httpx.AsyncClient(transport=transport, base_url="http://control") as control:
        while True:
            asked = time.monotonic()
            status = (await control.get("/status.json")).json()
            if asked - status["age_s"] > since:
                return {route: {name: gate[name] for name in COUNTS} for route, gate in status["gates"].items()}
            assert asked < since + WAIT_S, "the status grows old"
            await asyncio.sleep(0.01)


async def is_idle(gateway: Serving) -> None:
    """Wait until no permit is taken."""

    async def idle() -> bool:
        return not any(gate["pending"] or gate["open"] for gate in (await decided(gateway)).values())

    await eventually(idle, "no permit is taken")


def check_quiet(gateway: Serving) -> None:
    """Fail if it has logged a fault."""
    assert not [word for word in ("ERROR", "Traceback") if word in gateway.log()], gateway.log()


def connection_ids(worker: EchoWorker) -> list[list[bytes]]:
    """What each handshake said of its connection's id, in the order they came."""
    seen = [[(name.replace(b"_", b"-"), value) for name, value in scope["headers"]] for scope in worker.seen]
    return [[value for name, value in pairs if name == b"herdgate-connection-id"] for pairs in seen]


async def test_case_6_12_what_could_be_read_in_two_ways_costs_nothing() -> None:
    async with echo_worker() as worker:
        with serving(SCARCE, worker.url) as gateway:
            before = await decided(gateway)
            for name, data in {**AMBIGUOUS, **WITH_BODY}.items():
                async with raw(gateway.port, data) as client:
                    assert (await client.answer()).status in (400, 405, 426), name
            assert await decided(gateway) == before
            assert worker.seen == []
            assert [(await knock(gateway.port, "/ws")).status for _ in range(4)] == [101, 101, 101, 429]
            check_quiet(gateway)


async def test_case_6_9_a_foreign_page_is_refused_before_it_costs_anything() -> None:
    async with echo_worker() as worker, stub() as service:
        auth = f'[[routes]]\nname = "all"\nauth = {{ url = "{service.url}" }}\n'
        with serving(SCARCE + auth, worker.url) as gateway:
            before = await decided(gateway)
            for origin in EVIL:
                headers = [("Origin", origin), ("Cookie", "session=of-ann")]
                answer = await knock(gateway.port, "/ws", headers=headers)
                assert (answer.status, answer.json()["reason"]) == (403, "origin"), origin
                assert "www-authenticate" not in answer.headers
            assert await decided(gateway) == {"all": {**before["all"], "denied": {"origin": len(EVIL)}}}
            assert (service.requests, worker.seen) == ([], [])
            own = [("Origin", f"http://127.0.0.1:{gateway.port}")]
            assert (await knock(gateway.port, "/ws", headers=own)).status == 101
            assert (await knock(gateway.port, "/ws")).status == 101, "no page sends no Origin"
            assert len(service.requests) == len(worker.seen) == 2
            check_quiet(gateway)


async def test_the_connection_id_is_found_where_the_route_says() -> None:
    forged = [("Herdgate-Connection-Id", "forged"), ("Herdgate_Connection_Id", "forged")]
    async with echo_worker() as worker:
        with serving("rate = 0.001\nburst = 4\n" + IDS, worker.url) as gateway:
            before = await decided(gateway)
            for target, place in (
                ("/path/", "segment 2 of the path"),
                ("/query?id=a&id=b", "the query parameter id"),
                ("/header", "the header X-Id"),
                ("/cookie", "the cookie id"),
            ):
                refused = await knock(gateway.port, target, headers=forged)
                assert refused.status == 400
                assert refused.body.startswith(f"a handshake has one connection id here, in {place}: ".encode())
            assert await decided(gateway) == before
            assert worker.seen == []
            for target, headers in (
                ("/path/a%3Ab", []),
                ("/query?id=a:b", []),
                ("/header", [("x-id", "a:b")]),
                ("/cookie", [("Cookie", "id=a:b; x=1")]),
            ):
                assert (await knock(gateway.port, target, headers=[*headers, *forged])).status == 101
            check_quiet(gateway)
    assert connection_ids(worker) == [[b"a:b"]] * 4


async def test_without_a_rule_every_connection_has_an_id_of_its_own() -> None:
    async with echo_worker() as worker:
        with serving("rate = 100", worker.url) as gateway:
            for _ in range(5):
                assert (await knock(gateway.port, "/ws", headers=[("Herdgate-Connection-Id", "forged")])).status == 101
    told = connection_ids(worker)
    assert {len(ids) for ids in told} == {1}
    assert len({ids[0] for ids in told}) == 5
    assert {len(ids[0]) for ids in told} == {22}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    file = tmp_path / "keys.json"
    file.write_bytes(tokens.jwks(tokens.jwk("ES256", "k")))
    return file


def bearer(token: str) -> list[tuple[str, str]]:
    return [("Authorization", f"Bearer {token}")]


async def test_a_token_opens_and_its_claims_count(keys: Path) -> None:
    route = f"""
[[routes]]
name = "all"
auth = {{ jwt = {{ keys = {json.dumps(str(keys))} }} }}
client_key = {{ claim = "sub" }}
client = {{ open = 1 }}
"""
    ann, bob = (bearer(tokens.token("ES256", "k", sub=name)) for name in ("ann", "bob"))
    async with echo_worker() as worker:
        with serving("rate = 100\n" + route, worker.url) as gateway:
            async with open_socket(gateway.port, "/ws", headers=ann) as client:
                await client.send("hello")
                assert await asyncio.wait_for(client.recv(), WAIT_S) == "hello"
                assert (await knock(gateway.port, "/ws", headers=ann)).json()["reason"] == "client_open"
                assert (await knock(gateway.port, "/ws", headers=bob)).status == 101
            await is_idle(gateway)
            check_quiet(gateway)


async def test_a_bad_token_is_a_401_that_says_how_and_costs_a_token_of_the_calendar(keys: Path) -> None:
    route = f'[[routes]]\nname = "all"\nauth = {{ jwt = {{ keys = {json.dumps(str(keys))} }} }}\n'
    forged = tokens.token("ES256", "other", kid="k")
    async with echo_worker() as worker:
        with serving("rate = 0.001\nburst = 5\n" + route, worker.url) as gateway:
            page = ("Origin", f"http://127.0.0.1:{gateway.port}")
            for headers in ([], bearer("no.good.token"), bearer(forged), [*bearer(forged), page]):
                answer = await knock(gateway.port, "/ws", headers=headers)
                assert (answer.status, answer.json()["reason"], answer.json()["retry_ms"]) == (401, "auth", None)
                assert answer.headers["www-authenticate"] == "Bearer"
            await is_idle(gateway)
            assert (await decided(gateway))["all"]["tokens"] == pytest.approx(1, abs=0.2)
            assert worker.seen == []
            good = bearer(tokens.token("ES256", "k"))
            assert [(await knock(gateway.port, "/ws", headers=good)).status for _ in range(2)] == [101, 429]
            check_quiet(gateway)
