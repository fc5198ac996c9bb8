"""Only whole, equal echoes are counted, and only sockets that were let in are open."""

import socket
import threading

import pytest

from herdgate_loadtest.bench.sides.contenders import echo_worker
from herdgate_loadtest.bench.sides.talks import open_sockets, talk
from herdgate_loadtest.errors import CrowdError
from tests.herdgate_loadtest.bench.sides.answering import answering, upgraded
from tests.servers import poll


@pytest.mark.parametrize("size", [0, 64, 125, 126, 65_535, 65_536])
def test_echo_worker_sends_each_message_back(size: int) -> None:
    with echo_worker() as worker, open_sockets(worker.port, 3) as sockets:
        assert worker.open() == 3
        done, wrong = talk(sockets, size, 0.1)

    assert wrong == []
    assert done >= 6


def test_sockets_that_are_closed_are_open_no_more() -> None:
    with echo_worker() as worker:
        with open_sockets(worker.port, 2):
            assert worker.open() == 2
        with open_sockets(worker.port, 1) as sockets:
            talk(sockets, 1, 0.05)  # the worker has read both ends by then
            assert worker.open() == 1


@pytest.mark.parametrize(
    ("echo", "why"),
    [
        (lambda data: b"\x82\x04" + b"none", "a message did not come back as it went"),
        (lambda data: b"\x81\x04" + data[-4:], "a message did not come back as it went"),
        (lambda data: data, "the server masked a frame"),
    ],
)
def test_anything_but_an_equal_echo_is_wrong(echo: object, why: str) -> None:
    assert callable(echo)
    with answering(upgraded, echo) as port, open_sockets(port, 1) as sockets:
        done, wrong = talk(sockets, 4, 0.1)

    assert (done, wrong) == (0, [why])


def test_ping_is_answered_and_no_echo() -> None:
    heard: list[int] = []

    def ping_first(data: bytes) -> bytes:
        heard.append(data[0])
        if len(heard) == 1:
            return b"\x89\x00"
        return b""

    with answering(upgraded, ping_first) as port, open_sockets(port, 1) as (sock,):
        sock.settimeout(5)
        talks = threading.Thread(target=talk, args=([sock], 4, 0.05))
        talks.start()
        poll(lambda: heard == [0x82, 0x8A], "a message, then a pong")
        sock.shutdown(socket.SHUT_RDWR)
        talks.join(5)


def test_echo_worker_answers_a_ping() -> None:
    with echo_worker() as worker, open_sockets(worker.port, 1) as (sock,):
        sock.sendall(b"\x89\x82\0\0\0\0hi")
        assert sock.recv(100) == b"\x8a\x02hi"


def test_connection_that_ends_is_wrong() -> None:
    with answering(upgraded) as port, open_sockets(port, 1) as sockets:
        done, wrong = talk(sockets, 4, 0.1)

    assert done == 0
    assert len(wrong) == 1


def test_socket_that_is_refused_is_an_error() -> None:
    refusal = b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n"
    with answering(lambda _: refusal) as port, pytest.raises(CrowdError, match="the answer is a 503"):
        open_sockets(port, 1).__enter__()


def test_answer_to_another_key_is_an_error() -> None:
    def other(request: bytes) -> bytes:
        return upgraded(b"Sec-WebSocket-Key: another\r\n")

    with answering(other) as port, pytest.raises(CrowdError, match="wrong Sec-WebSocket-Accept"):
        open_sockets(port, 1).__enter__()
