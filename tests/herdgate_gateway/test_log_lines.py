"""The first line of a gateway's log."""

import socket
from typing import Any

import pytest

from herdgate_gateway.log_lines import start_line
from herdgate_gateway.settings import load

FLEET = {"redis": "redis://:hidden@10.0.0.5", "name": "chat"}


@pytest.mark.parametrize(
    ("settings", "url", "line"),
    [
        ({}, "http://127.0.0.1:9901", "serving on {}; room for 18 sockets; admin on http://127.0.0.1:9901"),
        ({"admin": {"listen": "off"}}, None, "serving on {}; room for 18 sockets; admin off"),
        (
            {"admin": {"listen": "off", "socket": "/run/c"}},
            None,
            "serving on {}; room for 18 sockets; admin on /run/c",
        ),
        (
            {"admin": {"listen": "unix:/run/a"}},
            None,
            "serving on {}; room for 18 sockets; admin on unix:/run/a",
        ),
        (
            {"fleet": FLEET, "admin": {"listen": "off"}},
            None,
            "serving on {}; room for 18 sockets; fleet chat at 10.0.0.5:6379; admin off",
        ),
    ],
)
def test_it_says_what_is_served_where(
    settings: dict[str, Any], url: str | None, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("herdgate_gateway.log_lines.most_sockets", lambda: 18)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        bound = f"127.0.0.1:{listener.getsockname()[1]}"
        assert start_line(load(settings, None, {}), [listener], url) == line.format(bound)
