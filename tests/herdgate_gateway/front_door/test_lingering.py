"""Sockets that have been told to close are kept for a second, and not too many of them."""

import asyncio
import socket

import pytest

from herdgate_gateway.descriptors import most_lingering
from herdgate_gateway.front_door.bare_socket import BareSocket
from herdgate_gateway.front_door.lingering import LINGER_S, Lingering
from tests.herdgate_gateway.gateways import until


def pair() -> tuple[BareSocket, socket.socket]:
    """A socket to linger with, and its client's."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    return BareSocket(ours.family, ours.type, ours.proto, ours.detach()), theirs


def is_kept(theirs: socket.socket) -> bool:
    """True if what the client says finds a socket."""
    try:
        theirs.send(b"x")
    except BrokenPipeError:
        return False
    return True


async def test_client_may_answer_for_a_second() -> None:
    loop, (ours, theirs) = asyncio.get_running_loop(), pair()
    lingering = Lingering(loop)
    with theirs:
        began = loop.time()
        lingering.add(ours)
        assert is_kept(theirs)
        await until(lambda: not lingering, "it is closed")
        assert loop.time() - began >= LINGER_S
        assert not is_kept(theirs)


async def test_a_client_that_is_gone_already_is_no_error() -> None:
    lingering, (ours, theirs) = Lingering(asyncio.get_running_loop()), pair()
    theirs.close()
    lingering.add(ours)
    lingering.close()
    assert len(lingering) == 0


async def test_the_oldest_goes_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("herdgate_gateway.front_door.lingering.most_lingering", lambda: 3)
    lingering, clients = Lingering(asyncio.get_running_loop()), []
    for _ in range(5):
        ours, theirs = pair()
        lingering.add(ours)
        clients.append(theirs)
    assert [is_kept(theirs) for theirs in clients] == [False, False, True, True, True]
    lingering.close()
    assert not any(is_kept(theirs) for theirs in clients)
    for theirs in clients:
        theirs.close()


def test_there_is_room_for_some_whatever_the_limit_is() -> None:
    assert 16 <= most_lingering() <= 1_000
