"""Servers that the tests of the middleware share: every test makes a site of its own on a switchboard."""

from collections.abc import Iterator

import pytest

from tests.board import Board
from tests.herdgate.gates import Clock
from tests.servers import IMPLEMENTATIONS, Server, uvicorn

__all__ = ["board", "clock", "server"]


@pytest.fixture(scope="session", params=IMPLEMENTATIONS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A switchboard on uvicorn, once with each WebSocket implementation."""
    with uvicorn("tests.apps:switchboard", ws=request.param) as server:
        yield server


@pytest.fixture
def board(server: Server) -> Board:
    """Makes sites there."""
    return Board(server.port)


@pytest.fixture
def clock() -> Clock:
    """Stands still until told otherwise."""
    return Clock()
