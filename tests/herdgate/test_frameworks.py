"""The middleware inside Starlette and FastAPI, served by uvicorn."""

from collections.abc import Iterator

import pytest

from tests.servers import Server, uvicorn
from tests.wire import ask, handshake, knock, open_socket, raw, read_close

BROWSER = [("Origin", "https://app.example")]

APPS = ("starlette_app", "starlette_with_middleware", "fastapi_with_limits", "fastapi_with_gate")


@pytest.mark.parametrize("app", APPS)
async def test_added_middleware_admits_and_denies(app: str) -> None:
    with uvicorn(f"tests.frameworks:{app}", rate=0.2) as server:
        async with open_socket(server.port, "/ws") as client:
            await client.send("hello")
            assert await client.recv() == "hello"
        denied = await knock(server.port, "/ws")
        assert (denied.status, denied.json()["reason"]) == (429, "rate")
        closed = await read_close(server.port, "/ws", headers=BROWSER)
        assert closed.code == 1013
        log = server.log()
    assert "Traceback" not in log
    assert "ERROR" not in log


async def test_gate_given_to_the_middleware_is_changed_by_the_app_itself() -> None:
    with uvicorn("tests.frameworks:fastapi_with_gate", rate=0.2) as server:
        assert (await knock(server.port, "/ws")).status == 101
        assert (await knock(server.port, "/ws")).status == 429
        assert (await ask(server.port, "/rate/500", method="POST")).json() == {"admitted": 1}
        refused = await knock(server.port, "/ws")
        assert refused.status in (101, 429)
        assert refused.status == 101 or refused.json()["retry_ms"] < 100


@pytest.fixture(scope="module")
def starlette() -> Iterator[Server]:
    """Starlette whose rate is 0."""
    with uvicorn("tests.frameworks:starlette_app", rate=0) as server:
        yield server


async def test_lifespan_reaches_the_app_and_its_state_the_requests(starlette: Server) -> None:
    answer = await ask(starlette.port, "/started")
    assert (answer.status, answer.body) == (200, b"yes")
    assert "startup complete" in starlette.log()


async def test_guarded_http_is_denied_and_the_rest_passes(starlette: Server) -> None:
    assert (await ask(starlette.port, "/events")).status == 429
    for path, status in {"/": 200, "/healthz": 200, "/static/frameworks.py": 200, "/static/none": 404}.items():
        assert (await ask(starlette.port, path)).status == status


@pytest.fixture(scope="module")
def mounted() -> Iterator[Server]:
    """A guarded app below `/{tenant}` that is full."""
    with uvicorn("tests.frameworks:mounted", rate=100, max_open=0) as server:
        yield server


async def test_mounted_middleware_sees_paths_from_there_on(mounted: Server) -> None:
    denied = await knock(mounted.port, "/acme/ws")
    assert (denied.status, denied.json()["reason"]) == (503, "full")
    assert (await ask(mounted.port, "/healthz")).status == 200
    assert (await ask(mounted.port, "/acme/_herdgate/admission?path=/acme/ws")).status == 503
    assert (await ask(mounted.port, "/_herdgate/admission?path=/ws")).status == 404


@pytest.mark.parametrize(
    ("tenant", "path"),
    [
        ("acme", "/acme/ws"),
        ("caf%C3%A9", "/caf%C3%A9/ws"),
        ("a%20b", "/a%20b/ws"),
        ("@me", "/@me/ws"),
        ("a%0d%0aSet-Cookie:%20session=stolen", "/a%0D%0ASet-Cookie:%20session=stolen/ws"),
        ("a;Domain=example", "/a%3BDomain=example/ws"),
    ],
)
async def test_ticket_cookie_has_the_path_that_browsers_see_and_nothing_of_the_client_s_making(
    mounted: Server, tenant: str, path: str
) -> None:
    async with raw(mounted.port, handshake(f"/{tenant}/ws", headers=BROWSER)) as client:
        status, headers = await client.head()
    assert status == 101
    attributes = headers["set-cookie"].split("; ")[1:]
    assert attributes[0] == f"Path={path}"
    assert [attribute.partition("=")[0] for attribute in attributes] == ["Path", "Max-Age", "HttpOnly", "SameSite"]
