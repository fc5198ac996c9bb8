"""Settings of a crowd, and where it goes."""

import socket
from typing import Any

import pytest

from herdgate_loadtest.engine.config import CrowdConfig, loopback_sources
from herdgate_loadtest.engine.target import Target
from herdgate_loadtest.errors import ConfigurationError

GOOD: dict[str, Any] = {"urls": ("ws://127.0.0.1:8000/ws",), "clients": {"obey": 9, "fixed:15": 1}}


def test_total_is_the_whole_crowd() -> None:
    assert CrowdConfig(**GOOD).total == 10


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"urls": ()}, "urls"),
        ({"clients": {}}, "clients"),
        ({"clients": {"obey": 0}}, "clients"),
        ({"clients": {"obey": -1}}, "clients.obey"),
        ({"clients": {"obey": 1.5}}, "clients.obey"),
        ({"clients": {"obey": True}}, "clients.obey"),
        ({"clients": {"polite": 1}}, "behaviour"),
        ({"sources": ("localhost",)}, "sources"),
        ({"spread_s": -0.1}, "spread_s"),
        ({"spread_s": float("nan")}, "spread_s"),
        ({"timeout_s": 0.0}, "timeout_s"),
        ({"timeout_s": float("inf")}, "timeout_s"),
    ],
)
def test_wrong_setting_is_named(change: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{field}: ") as caught:
        CrowdConfig(**GOOD | change)
    assert caught.value.field == field


@pytest.mark.parametrize("count", [0, -1, 65_537])
def test_number_of_loopback_sources_is_bounded(count: int) -> None:
    with pytest.raises(ConfigurationError, match="sources"):
        loopback_sources(count)


@pytest.mark.parametrize(
    ("url", "host", "path", "address"),
    [
        ("ws://127.0.0.1:8000/ws?a={n}#part", "127.0.0.1:8000", "/ws?a={n}", ("127.0.0.1", 8000)),
        ("ws://127.0.0.1", "127.0.0.1", "/", ("127.0.0.1", 80)),
        ("ws://127.0.0.1:81?x=1", "127.0.0.1:81", "/?x=1", ("127.0.0.1", 81)),
    ],
)
def test_url_is_taken_apart(url: str, host: str, path: str, address: tuple[str, int]) -> None:
    target = Target.of(url)
    assert (target.host, target.path, target.address) == (host, path, address)
    assert target.loopback


@pytest.mark.parametrize(
    "url",
    [
        "wss://127.0.0.1/",
        "ws://user@127.0.0.1/",
        "ws://127.0.0.1:0/",
        "ws://127.0.0.1:65536/",
        "ws://[::1/",
        "ws:///ws",
        "ws://127.0.0.1/a b",
        "ws://127.0.0.1/\r\nX: y",
        "ws://b\xfccher.example/",
        f"ws://{'a' * 64}.example/",
    ],
)
def test_url_that_cannot_be_is_named(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^url: got [ -~]+; [ -~]+$"):
        Target.of(url)


def test_ipv6_is_understood() -> None:
    target = Target.of("ws://[::1]:8000/")
    assert target.family == socket.AF_INET6
    assert target.host == "[::1]:8000"
    assert target.loopback
    assert not Target.of("ws://[2001:db8::1]/").loopback


@pytest.mark.parametrize(
    "url",
    [
        *("wss://127.0.0.1/", "http://127.0.0.1/", "127.0.0.1:8000", "ws:///ws", "ws://", "ws://me@127.0.0.1/"),
        *("ws://127.0.0.1:99999/", "ws://[::1/", "ws://no-such-host.invalid/"),
    ],
)
def test_url_that_will_not_do_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^url: got ") as caught:
        Target.of(url)
    assert "\n" not in str(caught.value)
