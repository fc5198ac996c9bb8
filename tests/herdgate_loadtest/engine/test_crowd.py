"""A crowd comes up, is cut off and comes back: against a real server on loopback."""

import asyncio
import math
import random
import socket
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from herdgate_loadtest import engine
from herdgate_loadtest.engine import Attempt, Crowd, CrowdConfig, Cut, ServerCounts, loopback_sources
from herdgate_loadtest.engine.dialer import reset
from herdgate_loadtest.errors import ConfigurationError, CrowdError
from tests.herdgate_loadtest.engine.crowds import Once, admit, close_codes, crowd_of, say_nothing, spoiled
from tests.herdgate_loadtest.engine.servers import Peer, eventually, serving

pytestmark = pytest.mark.usefixtures("quick_settling")

GOING_AWAY = 1001


async def test_whole_crowd_comes_up_and_leaves_politely() -> None:
    async with serving(admit) as server:
        crowd = crowd_of(server, 200)
        await crowd.bring_up()
        assert len(server.peers) == 200
        peers = list(server.peers)
        await crowd.close()
        await eventually(lambda: not server.peers)
        assert {tuple(close_codes(peer)) for peer in peers} == {(GOING_AWAY,)}
        record = crowd.record(rate=1000, burst=10)
        assert record.clients == record.behaviours["obey"].back == 200
        assert record.attempts_per_client == 1.0
        assert (record.denied, record.failed) == (0, 0)


@pytest.mark.parametrize("how", ["close", "reset"])
async def test_cut_is_seen_by_the_server_and_everybody_comes_back(how: Cut) -> None:
    async with serving(admit) as server, crowd_of(server, 50, spread_s=0.1) as crowd:
        await crowd.bring_up()
        before = list(server.peers)
        crowd.cut(how)
        assert await crowd.recover(deadline_s=5)
        assert all(peer.ended for peer in before)
        resets = sum(isinstance(peer.ended, ConnectionResetError) for peer in before)
        assert resets == (50 if how == "reset" else 0)
        assert all(close_codes(peer) == ([GOING_AWAY] if how == "close" else []) for peer in before)
        assert len(server.peers) == 50
        record = crowd.record(rate=500, burst=10)
        assert record.clients == 50
        assert record.attempts_per_client == 1.0
        assert record.recovery_ratio is not None
        assert math.isfinite(record.recovery_ratio)
        assert record.peak_admitted_per_s == 40


async def test_first_returns_are_spread_over_the_given_time() -> None:
    async with serving(admit) as server, crowd_of(server, 200, spread_s=0.4) as crowd:
        await crowd.bring_up()
        cut_at = crowd.cut("reset")
        assert await crowd.recover(deadline_s=5)
        offsets = sorted(peer.at - cut_at for peer in server.handshakes[200:])
        assert offsets[0] < 0.1
        assert offsets[-1] > 0.3
        assert offsets[50] < 0.2 < offsets[150]


async def test_server_side_cut_is_observed_and_its_hint_obeyed() -> None:
    attempts: list[Attempt] = []
    async with serving(admit) as server, crowd_of(server, 20, spread_s=0.5, observe=attempts.append) as crowd:
        await crowd.bring_up()
        cut_at = crowd.cut("observe")
        for number, peer in enumerate(list(server.peers)[:8]):
            peer.close(1012, retry_ms=200, ticket=f"t{number}")
        assert await crowd.recover(deadline_s=5, expected=8)
        returns = server.handshakes[20:]
        assert sorted(peer.ticket or "" for peer in returns) == [f"t{number}" for number in range(8)]
        assert all(0.2 <= peer.at - cut_at < 2 for peer in returns)
        record = crowd.record(rate=10, burst=2)
        assert record.clients == 8
        assert record.ideal_s == pytest.approx(0.6)
        assert record.attempts_per_client == 1.0
        waits = [attempt.wait_s for attempt in attempts[20:] if attempt.wait_s is not None]
        assert len(waits) == 8
        assert min(waits) >= 0.2, "the wait of those who were told counts from the cut, without an offset"


@pytest.mark.parametrize("end", [Peer.reset, lambda peer: peer.transport.close(), lambda peer: peer.close(1012)])
async def test_server_side_cut_without_a_hint_brings_everybody_back_at_once(end: Callable[[Peer], None]) -> None:
    async with serving(admit) as server, crowd_of(server, 10) as crowd:
        await crowd.bring_up()
        crowd.cut("observe")
        for peer in list(server.peers):
            end(peer)
        assert await crowd.recover(deadline_s=5)
        assert crowd.snapshot().lost == 10
        assert crowd.record(rate=10, burst=2).t100_s < 2


async def test_time_the_cut_itself_takes_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def take_time(sock: socket.socket) -> None:
        time.sleep(0.02)
        reset(sock)

    monkeypatch.setattr("herdgate_loadtest.engine.client.reset", take_time)
    async with serving(admit) as server, crowd_of(server, 20) as crowd:
        await crowd.bring_up()
        crowd.cut("reset")
        assert await crowd.recover(deadline_s=5)
        record = crowd.record(rate=1, burst=1)
        assert record.behaviours["obey"].wait_p50_s >= 0.4
        assert crowd.health.lag_p99_s < 0.3, "the block was intended"


async def test_cut_in_the_middle_of_a_recovery_forgets_nothing_and_nobody() -> None:
    attempts: list[Attempt] = []
    silent = False

    def admit_unless_silent(peer: Peer) -> None:
        if not silent:
            peer.admit()

    async with (
        serving(admit_unless_silent) as server,
        crowd_of(server, 30, spread_s=0.5, timeout_s=0.4, observe=attempts.append) as crowd,
    ):
        await crowd.bring_up()
        crowd.cut("reset")
        await eventually(lambda: crowd.snapshot().open >= 10)
        silent = True
        await eventually(lambda: crowd.snapshot().dialling >= 5)
        admitted_before = crowd.snapshot().admitted
        crowd.cut("reset")
        silent = False
        now = crowd.snapshot()
        assert (now.open, now.dialling, now.tries) == (0, 0, 0)
        assert await crowd.recover(deadline_s=5)
        last = crowd.snapshot()
        assert (last.tries, last.admitted, last.failed) == (30, 30, 0), "tries cut short are not answered late"
        outcomes = Counter(attempt.outcome for attempt in attempts)
        assert outcomes["admitted"] == 30 + admitted_before + 30


async def test_client_lost_while_held_comes_back_by_itself() -> None:
    async with serving(admit) as server, crowd_of(server, 5) as crowd:
        await crowd.bring_up()
        server.peers[0].reset()
        await eventually(lambda: len(server.handshakes) == 6)
        await eventually(lambda: crowd.snapshot().open == 5)
        crowd.cut("reset")
        assert await crowd.recover(deadline_s=5)
        assert crowd.snapshot().lost == 0, "that was before the cut"


async def test_admission_lost_again_during_the_recovery_counts_in_the_peak() -> None:
    async with serving(admit) as server, crowd_of(server, 5) as crowd:
        await crowd.bring_up()
        crowd.cut("reset")
        await eventually(lambda: len(server.handshakes) == 10)
        assert await crowd.recover(deadline_s=5)
        server.handshakes[-1].reset()
        await eventually(lambda: len(server.handshakes) == 11)
        assert await crowd.recover(deadline_s=5)
        record = crowd.record(rate=10, burst=1)
        assert crowd.snapshot().admitted == 6
        assert record.peak_admitted_per_s == 5
        assert record.behaviours["obey"].back == record.clients == 5


async def test_crowd_that_does_not_come_up_says_what_it_met() -> None:
    async with serving(lambda peer: peer.deny(503)) as server, crowd_of(server, 4, behaviour="immediate") as crowd:
        with pytest.raises(CrowdError, match=r"only 0 of 4 clients came up in 0\.4 s \(503 rate: \d+\)"):
            await crowd.bring_up(deadline_s=0.4)


async def test_crowd_is_used_in_order() -> None:
    async with serving(admit) as server, crowd_of(server) as crowd:
        for too_early in (crowd.snapshot, lambda: crowd.cut("reset"), lambda: crowd.record(rate=1, burst=1)):
            with pytest.raises(CrowdError, match="bring_up first"):
                too_early()
        await crowd.bring_up()
        with pytest.raises(CrowdError, match="comes up once"):
            await crowd.bring_up()


async def test_clients_dial_from_every_source_in_turn() -> None:
    async with serving(admit) as server, crowd_of(server, 9, sources=loopback_sources(3)) as crowd:
        await crowd.bring_up()
        sources = Counter(peer.transport.get_extra_info("peername")[0] for peer in server.peers)
        assert sources == {"127.0.0.2": 3, "127.0.0.3": 3, "127.0.0.4": 3}


async def test_tries_go_to_every_listener_in_turn() -> None:
    answer = Once(lambda peer: peer.deny(retry_ms=0))
    async with serving(answer) as one, serving(admit) as two:
        config = CrowdConfig(urls=(one.url, two.url), clients={"obey": 2})
        async with Crowd(config) as crowd:
            await crowd.bring_up()
            assert (len(one.handshakes), len(two.handshakes)) == (1, 2)


async def test_every_client_can_be_someone_of_its_own() -> None:
    async with serving(admit) as server:
        config = CrowdConfig(urls=(f"{server.url}/{{n}}",), clients={"obey": 3}, headers=(("X-User", "u{n}"),))
        async with Crowd(config) as crowd:
            await crowd.bring_up()
            assert {(peer.request, peer.headers["x-user"]) for peer in server.peers} == {
                (f"GET /ws/{n} HTTP/1.1", f"u{n}") for n in range(3)
            }


async def test_header_that_would_break_the_request_is_refused_before_anything_is_opened() -> None:
    with pytest.raises(ConfigurationError, match="printable"):
        Crowd(CrowdConfig(urls=("ws://127.0.0.1:9/",), clients={"obey": 1}, headers=(("X", "a\r\nb"),)))


async def test_mixed_crowd_is_recorded_by_behaviour() -> None:
    rng = random.Random(5)

    def deny_some(peer: Peer) -> None:
        if peer.ticket or rng.random() < 0.4:
            peer.admit()
        else:
            peer.deny(retry_ms=50, ticket="1.abc")

    async with serving(deny_some) as server:
        config = CrowdConfig(urls=(server.url,), clients={"obey": 40, "fixed:0.1": 20, "immediate": 20}, spread_s=0.1)
        attempts: list[Attempt] = []
        async with Crowd(config, attempts.append) as crowd:
            await crowd.bring_up()
            before, tries_before = len(attempts), len(server.handshakes)
            crowd.cut("close")
            assert await crowd.recover(deadline_s=10)
            record, snapshot = crowd.record(rate=100, burst=10), crowd.snapshot()
        assert {name: found.clients for name, found in record.behaviours.items()} == config.clients
        assert all(found.back == found.clients for found in record.behaviours.values())
        assert record.behaviours["obey"].attempts_per_client <= 2.0
        tries = len(server.handshakes) - tries_before
        assert snapshot.tries == tries == record.denied + 80 == len(attempts) - before
        assert record.attempts_per_client == pytest.approx(tries / 80)
        assert sum(attempt.wait_s is not None for attempt in attempts[before:]) == 80


async def test_peak_comes_from_the_workers_if_they_say_when_they_admitted() -> None:
    async with serving(admit) as server, crowd_of(server, 10) as crowd:
        await crowd.bring_up()
        cut_at = crowd.cut("reset")
        assert await crowd.recover(deadline_s=5)
        theirs = ServerCounts(admitted=10, admitted_at=[cut_at + 0.5] * 4 + [cut_at + 1.5] * 6)
        assert crowd.record(rate=10, burst=1, server=theirs).peak_admitted_per_s == 6


async def test_server_that_counts_otherwise_makes_the_run_invalid() -> None:
    async with serving(admit) as server, crowd_of(server, 10) as crowd:
        await crowd.bring_up()
        record = crowd.record(rate=10, burst=1, server=ServerCounts(admitted=11))
        (reason,) = spoiled(record)
        assert "the server counted 11 admissions, the clients 10" in reason


async def test_client_that_never_came_back_is_infinite() -> None:
    def admit_but_not_again(peer: Peer) -> None:
        if len(server.handshakes) <= 5 or len(server.handshakes) % 5:
            peer.admit()

    async with serving(admit_but_not_again) as server, crowd_of(server, 5, timeout_s=60.0) as crowd:
        await crowd.bring_up()
        crowd.cut("reset")
        assert not await crowd.recover(deadline_s=1)
        record = crowd.record(rate=1, burst=1)
        assert record.recovery_ratio == record.t100_s == math.inf
        assert record.behaviours["obey"].back == 4


async def test_snapshot_follows_the_run() -> None:
    async with serving(Once(say_nothing, times=3)) as server, crowd_of(server, 10, timeout_s=1.0) as crowd:
        coming_up = asyncio.create_task(crowd.bring_up())
        await eventually(lambda: len(server.handshakes) == 10)
        await eventually(lambda: crowd.snapshot().open == 7)
        now = crowd.snapshot()
        assert (now.clients, now.cut_off, now.dialling, now.tries, now.admitted) == (10, 10, 3, 10, 7)
        await eventually(lambda: crowd.snapshot().tries_per_s > 0)
        await coming_up
        assert crowd.snapshot().failed == 3
        assert crowd.snapshot().elapsed_s >= 1.0


async def test_held_client_costs_at_most_four_kibibytes_of_heap() -> None:
    count = 400
    ours = [tracemalloc.Filter(True, str(Path(engine.__file__).parent / "*"))]
    ours += [tracemalloc.Filter(True, f"*/{name}.py") for name in ("selectors", "socket", "collections/__init__")]
    async with serving(admit) as server:
        crowd = crowd_of(server, count)
        tracemalloc.start()
        await crowd.bring_up()
        held = tracemalloc.take_snapshot().filter_traces(ours)
        tracemalloc.stop()
        await crowd.close()
    heap = sum(statistic.size for statistic in held.statistics("filename"))
    assert 100 * count < heap < 4096 * count


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_runs_on_either_event_loop(loop: str) -> None:
    async def cycle() -> None:
        deny_some = Once(lambda peer: peer.deny(retry_ms=20, ticket="t"), times=50)
        async with serving(deny_some) as server, crowd_of(server, 100, spread_s=0.05) as crowd:
            await crowd.bring_up(rate=2000)
            crowd.cut("reset")
            assert await crowd.recover(deadline_s=10)
            assert len(server.handshakes) == 250

    factory = pytest.importorskip("uvloop").new_event_loop if loop == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(asyncio.wait_for(cycle(), 20))
