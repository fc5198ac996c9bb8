"""Readiness of many sockets behind one descriptor."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from herdgate_loadtest.engine.poller import Poller
from tests.herdgate_loadtest.engine.servers import eventually


class Owner:
    """One end of a pair of sockets; counts what it reads."""

    def __init__(self) -> None:
        self.sock, self.far = socket.socketpair()
        self.sock.setblocking(False)
        self.read = b""
        self.calls = 0

    def on_ready(self) -> None:
        self.calls += 1
        try:
            self.read += self.sock.recv(100)
        except BlockingIOError:
            return

    def close(self) -> None:
        self.sock.close()
        self.far.close()


@pytest.fixture
def owners() -> Iterator[list[Owner]]:
    made = [Owner() for _ in range(300)]
    yield made
    for owner in made:
        owner.close()


async def test_every_ready_socket_is_served_by_its_owner(owners: list[Owner]) -> None:
    poller = Poller(asyncio.get_running_loop())
    for number, owner in enumerate(owners):
        poller.watch(owner.sock, owner)
        if number % 3 == 0:
            owner.far.send(b"%d" % number)
    await eventually(
        lambda: all(owner.read == b"%d" % number for number, owner in enumerate(owners) if number % 3 == 0)
    )
    poller.close()
    assert not any(owner.calls for number, owner in enumerate(owners) if number % 3)


async def test_timers_get_their_turn_while_many_sockets_are_ready(owners: list[Owner]) -> None:
    poller = Poller(asyncio.get_running_loop())
    for owner in owners:
        poller.watch(owner.sock, owner)
        owner.far.send(b"x")
    served = []
    while sum(owner.calls for owner in owners) < len(owners):
        await asyncio.sleep(0)
        served.append(sum(owner.calls for owner in owners))
    poller.close()
    assert max(later - earlier for earlier, later in zip([0, *served], served, strict=False)) <= 128


async def test_forgotten_socket_is_left_alone(owners: list[Owner]) -> None:
    poller = Poller(asyncio.get_running_loop())
    first, second = owners[:2]
    poller.watch(first.sock, first)
    poller.forget(first.sock)
    poller.forget(first.sock)  # twice is fine
    poller.watch(second.sock, second)
    first.far.send(b"x")
    second.far.send(b"y")
    await eventually(lambda: second.read == b"y")
    poller.close()
    assert first.calls == 0


async def test_writing_is_watched_only_while_asked_for(owners: list[Owner]) -> None:
    poller = Poller(asyncio.get_running_loop())
    owner = owners[0]
    poller.watch(owner.sock, owner)
    poller.set_writing(owner.sock, owner, writing=True)
    await eventually(lambda: owner.calls > 0)
    poller.set_writing(owner.sock, owner, writing=False)
    calls = owner.calls
    for _ in range(10):
        await asyncio.sleep(0)
    poller.close()
    assert owner.calls <= calls + 1, "one call may have been on its way"
