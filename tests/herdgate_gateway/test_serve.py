"""`herdgate serve`, the whole process: real workers behind it, real sockets before it."""

import asyncio
import signal
import socket
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from tests.herdgate_gateway.gateways import echo_worker
from tests.herdgate_gateway.serving import herdgate, serving
from tests.wire import WAIT_S, ask, eventually, knock, open_socket, read_close

PAGE = "http://127.0.0.1"


async def test_messages_pass_to_a_worker_and_back() -> None:
    async with echo_worker() as worker:
        with serving("rate = 10", worker.url) as gateway:
            async with open_socket(gateway.port, "/any/path?x=1") as client:
                await client.send("hello")
                assert await asyncio.wait_for(client.recv(), WAIT_S) == "hello"
                await eventually(lambda: _is(gateway.status()["gates"]["default"]["open"], 1), "the permit is open")
            await eventually(lambda: _is(gateway.status()["gates"]["default"]["open"], 0), "the permit is back")
            assert gateway.status()["workers"][0]["url"] == worker.url
    assert worker.seen[0]["path"] == "/any/path"


async def test_a_crowd_is_admitted_at_the_rate_and_the_rest_is_told_when_to_come() -> None:
    async with echo_worker() as worker:
        with serving("rate = 0.01\nburst = 3", worker.url) as gateway:
            answers = [await knock(gateway.port, "/ws") for _ in range(5)]
            assert [answer.status for answer in answers] == [101, 101, 101, 429, 429]
            assert answers[-1].headers["herdgate-ticket"]
            closed = await read_close(gateway.port, "/ws", headers=[("Origin", f"{PAGE}:{gateway.port}")])
            assert closed.code == 1013
    assert len(worker.seen) == 3, "nothing of a refused request reaches a worker"


async def test_routes_have_their_own_limits_and_one_rate() -> None:
    toml = """
rate = 0.01
burst = 4
[[routes]]
name = "chat"
paths = ["/chat/*"]
client = { open = 1 }
[[routes]]
name = "feed"
paths = ["/feed"]
"""
    async with echo_worker() as worker:
        with serving(toml, worker.url) as gateway:
            async with open_socket(gateway.port, "/chat/a"):
                refused = await knock(gateway.port, "/chat/b")
                assert refused.json()["reason"] == "client_open"
                assert [(await knock(gateway.port, "/feed")).status for _ in range(4)] == [101, 101, 101, 429]
            unknown = await knock(gateway.port, "/elsewhere")
            assert (unknown.status, unknown.json()) == (404, {"error": "no route covers this path"})
            assert set(gateway.status()["gates"]) == {"chat", "feed"}


async def test_plain_requests_are_health_pre_flight_or_not_found() -> None:
    async with echo_worker() as worker:
        with serving("rate = 10", worker.url) as gateway:
            assert (await ask(gateway.port, "/healthz")).status == 200
            assert (await ask(gateway.port, "/_herdgate/admission?path=/ws")).json()["ticket"]
            assert (await ask(gateway.port, "/")).status == 404


async def test_rate_and_fraction_change_live_over_the_control_socket() -> None:
    async with echo_worker() as worker:
        with serving("rate = 0", worker.url) as gateway:
            assert (await knock(gateway.port, "/ws")).status == 429
            assert gateway.control("rate", "1000").returncode == 0
            await eventually(lambda: _admits(gateway.port), "the new rate admits")
            assert gateway.control("fraction", "0").returncode == 0
            assert (await knock(gateway.port, "/ws")).json()["reason"] == "shed"
            wrong = gateway.control("rate", "-1")
            assert wrong.returncode == 2
            assert len(wrong.stderr.strip().splitlines()) == 1


async def test_three_gateways_give_one_client_the_same_shed_verdict() -> None:
    toml = 'rate = 1000\nadmit_fraction = 0.5\n[[routes]]\nname = "all"\nclient_key = { header = "x-account" }'
    async with echo_worker() as worker:
        with serving(toml, worker.url) as one, serving(toml, worker.url) as two, serving(toml, worker.url) as three:
            verdicts = [
                tuple(
                    [(await knock(port, "/ws", headers=[("X-Account", f"account-{n}")])).status for n in range(40)],
                )
                for port in (one.port, two.port, three.port)
            ]
    assert len(set(verdicts)) == 1
    assert set(verdicts[0]) == {101, 503}


async def test_pages_of_other_hosts_may_not_connect() -> None:
    async with echo_worker() as worker:
        with serving("rate = 10", worker.url) as gateway:
            refused = await knock(gateway.port, "/ws", headers=[("Origin", "https://evil.example")])
            assert (refused.status, refused.json()["reason"]) == (403, "origin")
    assert worker.seen == []


async def test_a_worker_out_of_reach_is_a_refusal_with_a_hint_and_the_permit_is_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"ws://127.0.0.1:{nobody.getsockname()[1]}"
    with serving("rate = 10", url) as gateway:
        answer = await knock(gateway.port, "/ws")
        assert (answer.status, answer.json()["reason"]) == (502, "upstream")
        assert answer.json()["retry_ms"] >= 1000
        assert gateway.status()["gates"]["default"]["pending"] == 0
        assert "Traceback" not in gateway.log()


async def test_sigterm_closes_every_socket_with_a_code_and_ends_the_process() -> None:
    async with echo_worker() as worker:
        with serving("rate = 10", worker.url) as gateway:
            async with open_socket(gateway.port, "/ws") as client:
                await client.send("hello")
                await asyncio.wait_for(client.recv(), WAIT_S)
                code = await asyncio.to_thread(gateway.end, signal.SIGTERM)
                with pytest.raises(ConnectionClosed) as closed:
                    await asyncio.wait_for(client.recv(), WAIT_S)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012
            assert code == 0
            assert not (gateway.folder / "control").exists()
            assert "Traceback" not in gateway.log()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--worker", "ws://127.0.0.1:1"), "rate: got nothing; write the admissions per second"),
        (("--rate", "5"), "workers: got nothing; write where they listen"),
        (("--rate", "-5", "--worker", "ws://127.0.0.1:1"), "rate: got -5"),
        (("--rate", "5", "--worker", "127.0.0.1:1"), "workers: got 127.0.0.1:1"),
        (("--rate", "5", "--worker", "ws://127.0.0.1:1", "--listen", "nowhere"), "listen: got nowhere"),
    ],
)
def test_settings_that_cannot_be_served_are_one_line(arguments: tuple[str, ...], told: str) -> None:
    finished = herdgate("serve", *arguments)

    assert finished.returncode == 2
    (line,) = finished.stderr.strip().splitlines()
    assert line.startswith(f"herdgate: {told}")


def test_process_wide_caps_beside_several_routes_are_an_error(tmp_path: Path) -> None:
    routes = "".join(f'[[routes]]\nname = "{name}"\npaths = ["/{name}"]\n' for name in "ab")
    file = tmp_path / "herdgate.toml"
    file.write_text(f'rate = 1\nmax_open = 5\nworkers = ["ws://127.0.0.1:1"]\nlisten = ["127.0.0.1:0"]\n{routes}')

    finished = herdgate("serve", "--config", str(file))

    assert finished.returncode == 2
    assert finished.stderr.strip() == f"herdgate: max_open: got 5; write it at each of the routes (file {file})"


async def _is(value: object, wanted: object) -> bool:
    return value == wanted


async def _admits(port: int) -> bool:
    return (await knock(port, "/ws")).status == 101


async def test_client_that_was_in_before_comes_before_newcomers() -> None:
    toml = """
rate = 0.01
burst = 2
[[classes]]
name = "resume"
share = 1
[[classes]]
name = "normal"
share = 0
"""
    async with echo_worker() as worker:
        with serving(toml, worker.url) as gateway:
            first, second = [await knock(gateway.port, "/ws") for _ in range(2)]
            token = first.headers["herdgate-session"]
            assert "herdgate_session_default=" in second.headers["set-cookie"]
            newcomer = await knock(gateway.port, "/ws")
            resuming = await knock(gateway.port, "/ws", headers=[("Herdgate-Session", token)])
            assert (newcomer.status, resuming.status) == (429, 429)
            classes = gateway.status()["gates"]["default"]["classes"]
            assert {name: klass["hints"] for name, klass in classes.items()} == {"resume": 1, "normal": 1}
            assert {name: klass["admitted"] for name, klass in classes.items()} == {"resume": 0, "normal": 2}
    assert all(b"herdgate-session" not in dict(scope["headers"]) for scope in worker.seen)


async def test_class_may_stand_in_a_header_of_a_proxy() -> None:
    toml = """
rate = 0.01
burst = 1
[[routes]]
name = "chat"
client_class = { header = "X-Tier" }
[[classes]]
name = "paying"
share = 0.5
[[classes]]
name = "normal"
share = 0.5
"""
    async with echo_worker() as worker:
        with serving(toml, worker.url) as gateway:
            answer = await knock(gateway.port, "/ws", headers=[("X-Tier", "paying")])
            assert answer.status == 101
            assert "herdgate-session" not in answer.headers
            assert gateway.status()["gates"]["chat"]["classes"]["paying"]["admitted"] == 1


async def test_start_says_where_clients_and_admins_are_served() -> None:
    with serving("rate = 10", "ws://127.0.0.1:9") as gateway:
        (line,) = [line for line in gateway.log().splitlines() if "serving on" in line]
        assert f"serving on 127.0.0.1:{gateway.port};" in line
        assert line.endswith(f"admin on {gateway.folder}/control")
