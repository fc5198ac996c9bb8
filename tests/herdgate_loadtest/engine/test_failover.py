"""Clients that know several servers, and stay with one of them as long as it answers."""

import pytest

from herdgate_loadtest.engine import Crowd, CrowdConfig
from tests.herdgate_loadtest.engine.crowds import Once, admit
from tests.herdgate_loadtest.engine.servers import Peer, Server, serving

pytestmark = pytest.mark.usefixtures("quick_settling")


def deny(peer: Peer) -> None:
    peer.deny(retry_ms=10, ticket="1.abc")


def crowd_at(*servers: Server, clients: int = 1, failover: bool = True, moves_on: bool = False) -> Crowd:
    urls = tuple(server.url for server in servers)
    return Crowd(CrowdConfig(urls, clients={"obey": clients}, failover=failover, moves_on=moves_on, spread_s=0))


def tries_at(*servers: Server) -> list[int]:
    return [len(server.handshakes) for server in servers]


async def test_clients_begin_at_one_server_each_in_turn() -> None:
    async with serving(admit) as one, serving(admit) as two, crowd_at(one, two, clients=5) as crowd:
        await crowd.bring_up()
        assert tries_at(one, two) == [3, 2]


async def test_who_is_told_when_to_come_comes_back_to_the_same_server() -> None:
    async with serving(Once(deny, times=3)) as one, serving(admit) as two, crowd_at(one, two) as crowd:
        await crowd.bring_up()
        assert tries_at(one, two) == [4, 0]


async def test_without_it_every_try_goes_to_the_next_server() -> None:
    async with serving(Once(deny)) as one, serving(admit) as two, crowd_at(one, two, failover=False) as crowd:
        await crowd.bring_up()
        assert tries_at(one, two) == [1, 1]


async def test_try_without_an_orderly_answer_goes_on_at_the_next_server() -> None:
    async with serving(Once(Peer.reset)) as one, serving(admit) as two, crowd_at(one, two) as crowd:
        await crowd.bring_up()
        assert tries_at(one, two) == [1, 1]


async def test_socket_that_ends_without_goodbye_sends_its_client_to_the_next_server() -> None:
    async with serving(admit) as one, serving(admit) as two, crowd_at(one, two) as crowd:
        await crowd.bring_up()
        crowd.cut("observe")
        one.peers[0].reset()
        assert await crowd.recover(deadline_s=5)
        assert tries_at(one, two) == [1, 1]


async def test_socket_that_is_closed_in_good_order_sends_its_client_to_the_same_server() -> None:
    async with serving(admit) as one, serving(admit) as two, crowd_at(one, two) as crowd:
        await crowd.bring_up()
        crowd.cut("observe")
        one.peers[0].close(1012)
        assert await crowd.recover(deadline_s=5)
        assert tries_at(one, two) == [2, 0]


async def test_who_moves_on_and_is_called_back_comes_to_the_next_server() -> None:
    async with serving(admit) as one, serving(admit) as two, crowd_at(one, two, moves_on=True) as crowd:
        await crowd.bring_up()
        crowd.cut("observe")
        one.peers[0].close(1012)
        assert await crowd.recover(deadline_s=5)
        assert tries_at(one, two) == [1, 1]


async def test_who_moves_on_is_not_held_up_by_a_server_that_drains() -> None:
    def draining(peer: Peer) -> None:
        peer.deny(503, retry_ms=10)

    async with serving(draining) as one, serving(admit) as two, crowd_at(one, two, moves_on=True) as crowd:
        await crowd.bring_up()
        assert tries_at(one, two) == [1, 1]
