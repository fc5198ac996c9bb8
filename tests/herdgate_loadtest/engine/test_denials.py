"""Orderly denials, by HTTP and by close frame, and who comes back how."""

import asyncio

import pytest

from herdgate_loadtest.engine import Attempt, ServerCounts
from tests.herdgate_loadtest.engine.crowds import Once, admit, close_codes, crowd_of, spoiled
from tests.herdgate_loadtest.engine.servers import Peer, eventually, serving


async def test_obedient_client_comes_when_told_with_its_ticket() -> None:
    answer = Once(lambda peer: peer.deny(retry_ms=300, ticket="1.abc"))
    async with serving(answer) as server, crowd_of(server) as crowd:
        await crowd.bring_up()
        first, second = server.handshakes
        assert (first.ticket, second.ticket) == (None, "1.abc")
        assert 0.3 <= second.at - first.at < 2
        record = crowd.record(rate=1, burst=1)
        assert (record.denied, record.failed, record.attempts_per_client) == (1, 0, 2.0)
        assert record.denial_p99_ms is not None
        assert 0 < record.denial_p99_ms < 300
        assert crowd.answers() == {"429 rate": 1, "101": 1}


async def test_ticket_is_shown_once_only() -> None:
    answer = Once(lambda peer: peer.deny(retry_ms=10, ticket="1.abc"))
    async with serving(answer) as server, crowd_of(server) as crowd:
        await crowd.bring_up()
        crowd.cut("reset")
        assert await crowd.recover(deadline_s=5)
        assert [peer.ticket for peer in server.handshakes] == [None, "1.abc", None]


async def test_client_that_obeys_only_the_hint_shows_no_ticket() -> None:
    answer = Once(lambda peer: peer.deny(retry_ms=100, ticket="1.abc"))
    async with serving(answer) as server, crowd_of(server, behaviour="hint") as crowd:
        await crowd.bring_up()
        assert [peer.ticket for peer in server.handshakes] == [None, None]


@pytest.mark.parametrize("pieces", [1, 2, 1000])
async def test_close_1013_after_the_101_is_a_denial(pieces: int) -> None:
    def turn_away(peer: Peer) -> None:
        frame = peer.close_frame(1013, retry_ms=150, ticket="1.abc")
        if pieces == 1:
            peer.admit(frame)
            return
        peer.admit()
        for i in range(0, len(frame), step := max(1, 2 * len(frame) // pieces)):
            asyncio.get_running_loop().call_later(i * 1e-3, peer.send, frame[i : i + step])

    attempts: list[Attempt] = []
    async with serving(Once(turn_away)) as server, crowd_of(server, observe=attempts.append) as crowd:
        await crowd.bring_up()
        assert server.handshakes[1].ticket == "1.abc"
        assert [(attempt.outcome, attempt.answer) for attempt in attempts] == [
            ("denied", "close 1013"),
            ("admitted", "101"),
        ]
        record = crowd.record(rate=1, burst=1, server=ServerCounts(admitted=1, denied=1, permits=0))
        assert (record.denied, record.failed, record.attempts_per_client) == (1, 0, 2.0)
        assert not spoiled(record)
        assert record.leaked_permits == 0
        await eventually(lambda: server.handshakes[0].ended is not False)
        assert close_codes(server.handshakes[0]) == [1013], "the close is answered"


@pytest.mark.parametrize("code", [1000, 1011, 1012])
async def test_other_close_after_the_101_is_an_admission_that_was_lost(code: int) -> None:
    answer = Once(lambda peer: peer.admit(peer.close_frame(code, retry_ms=20)))
    async with serving(answer) as server, crowd_of(server) as crowd:
        await crowd.bring_up()
        assert len(server.handshakes) == 2
        now = crowd.snapshot()
        assert (now.denied, now.lost, now.admitted) == (0, 1, 2)


async def test_ticket_that_let_its_client_in_is_not_shown_again() -> None:
    answer = Once(lambda peer: peer.deny(retry_ms=10, ticket="1.abc"))
    async with serving(answer) as server, crowd_of(server) as crowd:
        await crowd.bring_up()
        server.peers[0].reset()
        await eventually(lambda: len(server.handshakes) == 3)
        assert [peer.ticket for peer in server.handshakes] == [None, "1.abc", None]


async def test_close_1013_of_an_old_socket_is_no_denial() -> None:
    async with serving(admit) as server, crowd_of(server) as crowd:
        await crowd.bring_up()  # ends when the admission has settled
        server.peers[0].close(1013)
        await eventually(lambda: len(server.handshakes) == 2)
        assert crowd.snapshot().denied == 0
        assert crowd.snapshot().lost == 1


async def test_denials_of_a_whole_crowd_are_counted_by_answer() -> None:
    def deny_by_turns(peer: Peer) -> None:
        peer.deny(429 if len(server.handshakes) % 2 else 503, retry_ms=20)

    async with serving(Once(deny_by_turns, times=40)) as server, crowd_of(server, 40) as crowd:
        await crowd.bring_up()
        assert crowd.answers() == {"101": 40, "429 rate": 20, "503 rate": 20}
