"""Single clients come, are cut off and leave at moments of their own; messages."""

import time

from herdgate_loadtest.engine import Crowd, CrowdConfig, Record
from herdgate_loadtest.engine.play import Played, Step
from tests.herdgate_loadtest.engine.crowds import close_codes
from tests.herdgate_loadtest.engine.servers import Peer, Server, eventually, server_frame, serving


async def play(
    server: Server, clients: int, present: set[int], *steps: Step, deadline_s: float = 5.0
) -> tuple[Played, Record]:
    config = CrowdConfig(urls=(server.url,), clients={"obey": clients}, spread_s=0.0, timeout_s=2.0)
    async with Crowd(config) as crowd:
        await crowd.bring_up_some(present, None, 5.0)
        began = crowd.begin()
        played = await crowd.play(steps, began=began, deadline_s=deadline_s)
        assert all(peer.at >= began for peer in server.handshakes[len(present) :])
        return played, crowd.record(rate=1.0, burst=1.0)


async def test_only_those_who_are_there_come_up() -> None:
    async with serving(Peer.admit) as server:
        _, record = await play(server, 3, {0, 2})
        assert len(server.handshakes) == 2
        assert record.clients == 0


async def test_each_client_is_cut_off_at_its_moment_and_comes_back() -> None:
    async with serving(Peer.admit) as server:
        played, record = await play(server, 3, {0, 1, 2}, Step(0.05, 1, "reset"), Step(0.1, 0, "close"))
        assert played.are_in
        assert (record.clients, record.behaviours["obey"].back) == (2, 2)
        assert 0.1 <= record.t100_s < 2
        assert record.behaviours["obey"].wait_max_s < record.t100_s, "a wait counts from the client's own cut"


async def test_newcomer_comes_at_its_moment() -> None:
    async with serving(Peer.admit) as server:
        played, record = await play(server, 2, {0}, Step(0.1, 1, "come"))
        assert played.are_in
        assert (len(server.handshakes), record.clients) == (2, 1)
        assert record.t100_s >= 0.1


async def test_client_that_leaves_does_not_come_back_and_is_not_waited_for() -> None:
    async with serving(Peer.admit) as server:
        peers: list[Peer] = []

        def admit(peer: Peer) -> None:
            peers.append(peer)
            peer.admit()

        server.answer = admit
        played, record = await play(server, 2, {0, 1}, Step(0.05, 0, "leave"))
        await eventually(lambda: not server.peers)
        assert played.are_in
        assert (len(server.handshakes), record.clients) == (2, 0)
        assert [close_codes(peer) for peer in peers] == [[1001], [1001]]


async def test_cut_of_a_client_that_is_outside_is_missed() -> None:
    def deny_returns(peer: Peer) -> None:
        if len(peer.server.handshakes) == 2:
            peer.deny(retry_ms=300)
        else:
            peer.admit()

    async with serving(deny_returns) as server:
        played, record = await play(server, 1, {0}, Step(0.0, 0, "reset"), Step(0.15, 0, "reset"))
        assert played.are_in
        assert played.missed == {"reset": 1}
        assert record.denied == 1


async def test_client_that_should_leave_while_it_is_outside_leaves_once_it_is_in() -> None:
    def deny_returns(peer: Peer) -> None:
        if len(peer.server.handshakes) == 2:
            peer.deny(retry_ms=300)
        else:
            peer.admit()

    async with serving(deny_returns) as server:
        played, record = await play(server, 1, {0}, Step(0.0, 0, "reset"), Step(0.1, 0, "leave"))
        assert played.are_in
        assert record.clients == 0
        assert len(server.handshakes) == 3


async def test_who_does_not_come_back_is_waited_for_until_the_deadline() -> None:
    async with serving(Peer.admit) as server:

        def once(peer: Peer) -> None:
            if len(peer.server.handshakes) == 1:
                peer.admit()
            else:
                peer.deny(503, retry_ms=50)

        server.answer = once
        began = time.monotonic()
        played, record = await play(server, 1, {0}, Step(0.0, 0, "reset"), deadline_s=0.5)
        assert not played.are_in
        assert time.monotonic() - began >= 0.5
        assert record.behaviours["obey"].back == 0


async def test_client_cut_off_twice_counts_once_and_both_admissions_count() -> None:
    async with serving(Peer.admit) as server:
        steps = (Step(0.0, 0, "reset"), Step(0.4, 0, "reset"))
        played, record = await play(server, 1, {0}, *steps)
        assert (played.missed, record.clients) == ({}, 1)
        assert record.attempts_per_client == 2
        assert record.peak_admitted_per_s == 1  # two in the first second, less the burst


async def test_clients_that_are_in_speak_in_turn_and_hear_the_server() -> None:
    heard: list[bytes] = []

    def greet(peer: Peer) -> None:
        peer.admit(server_frame(1, b"hello"))

    async with serving(greet) as server:
        config = CrowdConfig(urls=(server.url,), clients={"obey": 2})
        async with Crowd(config, heard=heard.append) as crowd:
            await crowd.bring_up(deadline_s=5.0)
            assert [crowd.say(b"one"), crowd.say(b"two")] == [True, True]
            await eventually(lambda: len(heard) == 2 and all(peer.received for peer in server.peers))
            assert heard == [b"hello", b"hello"]


async def test_nobody_speaks_where_nobody_is_in() -> None:
    async with serving(Peer.admit) as server:
        async with Crowd(CrowdConfig(urls=(server.url,), clients={"obey": 2})) as crowd:
            await crowd.bring_up(deadline_s=5.0)
        assert not crowd.say(b"late")
