"""SIGHUP on `herdgate serve`, the whole process: what changes at once, and what goes on."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Self

from websockets.asyncio.client import ClientConnection

from tests.herdgate_gateway.auth.tokens import jwk, jwks
from tests.herdgate_gateway.gateways import echo_worker
from tests.herdgate_gateway.reloads import hang_up, outcomes, reload, rewrite
from tests.herdgate_gateway.serving import Serving, launched, serving
from tests.servers import END_S, START_S, poll
from tests.wire import WAIT_S, ask, eventually, handshake, knock, open_socket, raw

ROUTES = """
rate = 1000
[[routes]]
name = "chat"
paths = ["/chat"]
client = { open = 2 }
[[routes]]
name = "feed"
paths = ["/feed"]
"""


async def test_a_reload_is_one_line_that_names_what_changed() -> None:
    toml = "rate = 10\nsecrets = ['first-secret-of-ours']"
    async with echo_worker() as worker:
        with serving(toml, worker.url) as gateway:
            (line,) = await reload(gateway, toml, "rate = 20\nsecrets = ['other-secret-of-ours']\nmax_open = 5")
            assert line == "INFO:     settings reloaded, changed: rate, max_open, secrets"
            (line,) = await reload(gateway)
            assert line == "INFO:     settings reloaded, changed: nothing"


async def test_what_takes_a_restart_is_one_warning_and_the_rest_is_taken() -> None:
    async with echo_worker() as worker:
        with serving("rate = 0", worker.url) as gateway:
            await reload(
                gateway, "rate = 0", "rate = 1000\nrelay = { idle_s = 5 }\nbreaker = { failures = 1 }", lines=2
            )
            for _ in range(2):  # again each time, as long as it is so
                assert outcomes(gateway)[-2] == (
                    "WARNING:  these settings take a restart, and stay as they were: relay.idle_s, breaker.failures"
                )
                assert (await knock(gateway.port, "/ws")).status == 101
                await reload(gateway, lines=2)


async def test_settings_that_cannot_be_served_change_nothing_and_say_why() -> None:
    async with echo_worker() as worker:
        with serving("rate = 0", worker.url) as gateway:
            missing = gateway.folder / "missing"
            tls = f"rate = 9\ntls = {{ certificate = '{missing}', key = '{missing}' }}"
            auth = f"rate = 9\n[[routes]]\nname = 'a'\nauth.jwt.keys = '{missing}'"
            for broken, fields in (
                ("rate = ", ["config"]),
                ("rate = 9\nrat = 9", ["rat"]),
                ("rate = -9\nburst = 0", ["rate", "burst"]),
                ("rate = 9\nadmit_fraction = 2\nsecrets = ['short']", ["admit_fraction", "secrets"]),
                (tls, ["tls.certificate", "tls.key"]),
                (auth, ["routes[0].auth.jwt.keys"]),
            ):
                lines = await reload(gateway, "rate = 0", broken, lines=len(fields))
                said = [line.removeprefix("ERROR:    settings not reloaded, all stays as it was: ") for line in lines]
                assert [line.partition(":")[0] for line in said] == fields, lines
                rewrite(gateway, broken, "rate = 0")
                assert (await knock(gateway.port, "/ws")).status == 429
            await reload(gateway, "rate = 0", "rate = 1000")
            assert (await knock(gateway.port, "/ws")).status == 101
            assert "Traceback" not in gateway.log()


async def test_a_file_that_is_gone_changes_nothing() -> None:
    async with echo_worker() as worker:
        with serving("rate = 1000", worker.url) as gateway:
            (gateway.folder / "herdgate.toml").rename(gateway.folder / "elsewhere.toml")
            hang_up(gateway)
            await eventually(lambda: _said(gateway, "No such file"), "it says why", within_s=WAIT_S)
            assert (await knock(gateway.port, "/ws")).status == 101


async def test_limits_change_within_a_second_of_a_crowd_and_no_socket_closes() -> None:
    async with echo_worker() as worker:
        with serving("rate = 10\nburst = 10\nmax_wait_s = 0", worker.url) as gateway:
            held = [await open_socket(gateway.port, "/ws") for _ in range(8)]
            async with _Crowd(gateway.port) as crowd:
                await eventually(lambda: _holds(len(crowd.admitted) >= 10), "the crowd is admitted", within_s=WAIT_S)
                closed_at = crowd.now()
                await reload(gateway, "rate = 10", "rate = 0")
                await eventually(lambda: _holds(crowd.now() > closed_at + 2), "time passes")
                assert max(crowd.admitted) < closed_at + 1
                opened_at = crowd.now()
                await reload(gateway, "rate = 0", "rate = 1000")
                await eventually(lambda: _holds(crowd.now() > opened_at + 1), "time passes")
                assert sum(opened_at < at < opened_at + 1 for at in crowd.admitted) > 10
            for client in held:
                assert await _echoes(client)
            status = gateway.status()["gates"]["default"]
            assert status["open"] == len(held)
            assert status["denied"]["rate"] == crowd.denied, "counters go on"
            for client in held:
                await client.close()
            await eventually(lambda: _permits_are_back(gateway), "released are as many as taken", within_s=WAIT_S)


async def test_a_rate_set_live_stays_until_the_file_changes_it() -> None:
    async with echo_worker() as worker:
        with serving("rate = 1000", worker.url) as gateway:
            assert gateway.control("rate", "7").returncode == 0
            assert gateway.control("fraction", "0.5").returncode == 0
            await reload(gateway, "rate = 1000", "rate = 1000\nburst = 3")
            gate = await _gate(gateway, "burst", 3)
            assert (gate["rate"], gate["admit_fraction"]) == (7, 0.5)
            await reload(gateway, "rate = 1000", "rate = 500")
            gate = await _gate(gateway, "rate", 500)
            assert gate["admit_fraction"] == 0.5
            await reload(gateway, "rate = 500", "rate = 500\nadmit_fraction = 0.9")
            await _gate(gateway, "admit_fraction", 0.9)


async def test_tickets_are_good_as_long_as_the_secret_that_signed_them_is_listed() -> None:
    old, new = "secrets = ['first-secret-of-ours']", "secrets = ['other-secret-of-ours', 'first-secret-of-ours']"
    async with echo_worker() as worker:
        with serving(f"{old}\nrate = 0.01\nburst = 3\nhold_s = 30", worker.url) as gateway:
            one, other = [await _ticket(gateway.port) for _ in range(2)]
            await reload(gateway, old, new)
            assert await _admitted_with(gateway.port, one) == 101
            await reload(gateway, new, "secrets = ['other-secret-of-ours']")
            latest = await _ticket(gateway.port)
            assert await _admitted_with(gateway.port, other) == 429
            assert await _admitted_with(gateway.port, latest) == 101


async def test_without_secrets_the_random_one_stays() -> None:
    async with echo_worker() as worker:
        with serving("rate = 0.01\nburst = 1\nhold_s = 30", worker.url) as gateway:
            ticket = await _ticket(gateway.port)
            await reload(gateway, "hold_s = 30", "hold_s = 31")
            assert await _admitted_with(gateway.port, ticket) == 101


async def test_trusted_proxies_hold_for_the_next_arrival() -> None:
    toml = "rate = 1000\n[[routes]]\nname = 'all'\nclient = { open = 1 }"
    async with echo_worker() as worker:
        with serving(toml, worker.url) as gateway:
            async with open_socket(gateway.port, "/ws", headers=[("X-Forwarded-For", "203.0.113.1")]):
                other = [("X-Forwarded-For", "203.0.113.2")]
                assert (await knock(gateway.port, "/ws", headers=other)).json()["reason"] == "client_open"
                await reload(gateway, "rate = 1000", "rate = 1000\ntrusted_proxies = ['127.0.0.1']")
                async with open_socket(gateway.port, "/ws", headers=other):
                    assert (await knock(gateway.port, "/ws", headers=other)).json()["reason"] == "client_open"
    assert [dict(scope["headers"])[b"x-forwarded-for"] for scope in worker.seen] == [b"127.0.0.1", b"203.0.113.2"]


async def test_peers_trusted_by_a_reload_send_a_proxy_header() -> None:
    line = b"PROXY TCP4 203.0.113.9 203.0.113.1 5000 80\r\n"
    toml = "rate = 1000\nproxy_protocol = true\ntrusted_proxies = ['203.0.113.1']"
    async with echo_worker() as worker:
        with serving(toml, worker.url) as gateway:
            async with raw(gateway.port, line + handshake("/ws")) as client:
                assert (await client.head())[0] == 400
            await reload(gateway, "['203.0.113.1']", "['127.0.0.1']")
            async with raw(gateway.port, line + handshake("/ws")) as client:
                assert (await client.head())[0] == 101
            await reload(gateway, "proxy_protocol = true", "proxy_protocol = false")
            assert (await knock(gateway.port, "/ws")).status == 101
            await reload(gateway, "proxy_protocol = false", "proxy_protocol = true")
            async with raw(gateway.port, line + handshake("/ws")) as client:
                assert (await client.head())[0] == 101


async def test_proxy_headers_are_asked_for_from_a_reload_on() -> None:
    """On a listener that has read heads so far."""
    line = b"PROXY TCP4 203.0.113.9 203.0.113.1 5000 80\r\n"
    off = "rate = 1000\nproxy_protocol = false\ntrusted_proxies = ['127.0.0.1']"
    async with echo_worker() as worker:
        with serving(off, worker.url) as gateway:
            assert (await knock(gateway.port, "/ws")).status == 101
            await reload(gateway, "proxy_protocol = false", "proxy_protocol = true")
            async with raw(gateway.port, line + handshake("/ws")) as client:
                assert (await client.head())[0] == 101
            async with raw(gateway.port, handshake("/ws")) as client:
                assert await client._reader.read() == b"", "nobody knows whose it is"
    assert dict(worker.seen[-1]["headers"])[b"x-forwarded-for"] == b"203.0.113.9"


async def test_arrivals_go_to_the_workers_of_the_new_list() -> None:
    async with echo_worker() as one, echo_worker() as other:
        with serving("rate = 1000", one.url) as gateway:
            async with open_socket(gateway.port, "/ws") as client:
                await reload(gateway, one.url, other.url)
                assert (await knock(gateway.port, "/ws")).status == 101
                assert await _echoes(client)
        assert (len(one.seen), len(other.seen)) == (1, 1)


async def test_pages_health_and_pre_flight_follow_the_file() -> None:
    page = [("Origin", "https://app.example")]
    new = "rate = 1000\nallowed_origins = ['https://app.example']\nhealth_path = '/up'\npreflight_path = '/may-i'"
    async with echo_worker() as worker:
        with serving("rate = 1000", worker.url) as gateway:
            assert (await knock(gateway.port, "/ws", headers=page)).status == 403
            await reload(gateway, "rate = 1000", new)
            assert (await knock(gateway.port, "/ws", headers=page)).status == 101
            assert (await ask(gateway.port, "/up")).status == 200
            assert (await ask(gateway.port, "/healthz")).status == 404
            assert (await ask(gateway.port, "/may-i?path=/ws")).json()["ticket"]


async def test_a_route_that_is_removed_keeps_its_sockets_and_gets_nobody_new() -> None:
    first = ROUTES[ROUTES.index("[[routes]]") : ROUTES.rindex("[[routes]]")]
    other = first.replace("chat", "talk")
    async with echo_worker() as worker:
        with serving(ROUTES, worker.url) as gateway:
            async with open_socket(gateway.port, "/chat") as client, open_socket(gateway.port, "/chat"):
                await reload(gateway, first, other)
                assert (await knock(gateway.port, "/chat")).status == 404
                assert (await knock(gateway.port, "/talk")).status == 101
                assert (await knock(gateway.port, "/feed")).status == 101
                assert await _echoes(client)
                assert set(gateway.status()["gates"]) == {"talk", "feed"}
                # It comes back: who is still there counts.
                await reload(gateway, other, first)
                assert (await knock(gateway.port, "/chat")).json()["reason"] == "client_open"
            await eventually(lambda: _permits_are_back(gateway), "released are as many as taken", within_s=WAIT_S)


async def test_the_calendar_goes_on_when_the_first_route_is_replaced() -> None:
    async with echo_worker() as worker:
        with serving(ROUTES.replace("rate = 1000", "rate = 0.01\nburst = 2"), worker.url) as gateway:
            assert (await knock(gateway.port, "/chat")).status == 101
            await reload(gateway, "chat", "talk")
            assert [(await knock(gateway.port, "/talk")).status for _ in range(2)] == [101, 429]
            assert (await knock(gateway.port, "/feed")).status == 429
            await reload(gateway, "rate = 0.01", "rate = 1000")
            await eventually(lambda: _admits(gateway.port, "/feed"), "the new rate holds on every route")


async def test_hangups_in_a_row_end_in_the_last_state() -> None:
    async with echo_worker() as worker:
        with serving("rate = 100", worker.url) as gateway:
            for rate in range(101, 131):
                rewrite(gateway, f"rate = {rate - 1}\n", f"rate = {rate}\n")
                hang_up(gateway)
            await _gate(gateway, "rate", 130)
            assert all("settings reloaded" in line for line in outcomes(gateway))


async def test_a_hangup_before_it_serves_does_no_harm_and_counts() -> None:
    keys = jwks(jwk("ES256"))
    toml = "rate = 1000\nworkers = ['ws://127.0.0.1:1']\n[[routes]]\nname = 'a'\nauth.jwt.keys = '{folder}/keys'"
    # It starts no further than to its key file, which is a pipe.
    with launched(toml, fill=lambda folder: os.mkfifo(folder / "keys")) as gateway:
        file = gateway.folder / "keys"
        pipes: list[int] = []
        poll(lambda: _is_read(file, pipes), "the gateway is starting", within_s=START_S)
        hang_up(gateway)
        (gateway.folder / "new").write_bytes(keys)
        (gateway.folder / "new").replace(file)
        os.write(pipes[0], keys)
        os.close(pipes[0])
        await eventually(lambda: _said(gateway, "settings reloaded"), "it reloads", within_s=START_S)
        assert (await ask(gateway.port, "/healthz")).status == 200


async def test_hangups_while_it_stops_do_no_harm() -> None:
    async with echo_worker() as worker:
        with serving("rate = 1000", worker.url) as gateway:
            async with open_socket(gateway.port, "/ws"):
                gateway.process.send_signal(signal.SIGTERM)
                await eventually(lambda: _is_gone_after_another_hangup(gateway), "it stops", within_s=END_S)
            assert gateway.process.returncode == 0
            assert "Traceback" not in gateway.log()


class _Crowd:
    """Clients that connect all the time.

    Attributes:
        admitted: when each of those that were admitted had begun.
        denied: how many were not.
    """

    def __init__(self, port: int) -> None:
        self.admitted: list[float] = []
        self.denied = 0
        self._port = port
        self._over = False
        self.now = asyncio.get_running_loop().time

    async def __aenter__(self) -> Self:
        self._clients = [asyncio.create_task(self._connect()) for _ in range(8)]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over = True
        await asyncio.gather(*self._clients)

    async def _connect(self) -> None:
        while not self._over:
            began = self.now()
            if (await knock(self._port, "/ws")).status == 101:
                self.admitted.append(began)
            else:
                self.denied += 1


async def _echoes(client: ClientConnection) -> bool:
    await client.send("still there")
    return await asyncio.wait_for(client.recv(), WAIT_S) == "still there"


async def _ticket(port: int) -> str:
    """A firm slot for this moment, with a token set aside."""
    return str((await ask(port, "/_herdgate/admission?path=/ws")).json()["ticket"])


async def _admitted_with(port: int, ticket: str) -> int:
    return (await knock(port, "/ws", headers=[("Herdgate-Ticket", ticket)])).status


async def _admits(port: int, path: str) -> bool:
    return (await knock(port, path)).status == 101


async def _gate(gateway: Serving, name: str, wanted: float) -> dict[str, float]:
    """The gate, once this value of it is as wanted."""
    gate: dict[str, float] = {}

    async def is_there() -> bool:
        gate.update(gateway.status()["gates"]["default"])
        return gate[name] == wanted

    await eventually(is_there, f"{name} is {wanted}", within_s=2 * WAIT_S)
    return gate


async def _permits_are_back(gateway: Serving) -> bool:
    gates = gateway.status()["gates"].values()
    return not any(gate["open"] + gate["pending"] + gate["held"] for gate in gates)


async def _said(gateway: Serving, what: str) -> bool:
    return what in gateway.log()


async def _holds(condition: bool) -> bool:
    return condition


async def _is_gone_after_another_hangup(gateway: Serving) -> bool:
    hang_up(gateway)
    return gateway.process.poll() is not None


def _is_read(file: Path, pipes: list[int]) -> bool:
    """True once somebody reads this pipe, whose other end is then in `pipes`."""
    with suppress(OSError):
        pipes.append(os.open(file, os.O_WRONLY | os.O_NONBLOCK))
    return bool(pipes)
