"""Which bytes are a health check, and what answers one."""

import pytest

from herdgate_gateway.front_door.health import HEALTHY, is_health_check

KEPT = b"GET /healthz HTTP/1.1\r\nHost: lb\r\n"
HEAD = KEPT + b"Connection: close\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"GET /healthz HTTP/1.0\r\n\r\n",
        b"GET /healthz HTTP/1.0\r\nConnection: close\r\n\r\n",
        HEAD + b"\r\n",
        KEPT + b"CONNECTION: Close\r\n\r\n",
        HEAD + b"User-Agent: ELB-HealthChecker/2.0\r\nAccept: */*\r\n\r\n",
        HEAD + b"X-Empty:\r\n\r\n",
    ],
)
def test_plain_checks_are_known(data: bytes) -> None:
    assert is_health_check(data, "/healthz")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        HEAD,
        HEAD + b"\r\nGET /healthz HTTP/1.1\r\n\r\n",
        KEPT + b"\r\n",
        KEPT + b"Connection: keep-alive\r\n\r\n",
        KEPT + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        HEAD + b"Connection: keep-alive\r\n\r\n",
        HEAD + b"UPGRADE: websocket\r\n\r\n",
        HEAD + b"Content-Length: 3\r\n\r\nabc",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
        HEAD + b"Expect: 100-continue\r\n\r\n",
        HEAD + b"no field\r\n\r\n",
        HEAD + b"A: \x01\r\n\r\n",
        HEAD + b"A: b\r\n folded\r\n\r\n",
        HEAD + b"Name : b\r\n\r\n",
        HEAD.replace(b"\r\n", b"\n") + b"\n",
        HEAD.replace(b"GET", b"POST") + b"\r\n",
        HEAD.replace(b"GET", b"get") + b"\r\n",
        HEAD.replace(b"healthz", b"HEALTHZ") + b"\r\n",
        HEAD.replace(b"healthz", b"healthz2") + b"\r\n",
        HEAD.replace(b"healthz", b"healthz?full") + b"\r\n",
        HEAD.replace(b"1.1", b"2.0") + b"\r\n",
    ],
)
def test_anything_else_is_left_to_the_app(data: bytes) -> None:
    assert not is_health_check(data, "/healthz")


def test_the_path_is_taken_as_text() -> None:
    assert is_health_check(b"GET /up.now HTTP/1.0\r\n\r\n", "/up.now")
    assert not is_health_check(b"GET /up_now HTTP/1.0\r\n\r\n", "/up.now")


def test_without_a_path_nothing_is_one() -> None:
    assert not is_health_check(HEAD + b"\r\n", None)


def test_the_answer_is_whole_and_ends_its_connection() -> None:
    head, _, body = HEALTHY.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nconnection: close" in head
    assert b"\r\ncontent-length: 3" in head
    assert body == b"ok\n"
