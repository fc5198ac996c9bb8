"""A switchboard that the tests of the clients share: every test makes a site of its own."""

from collections.abc import Iterator

import pytest

from tests.board import Board
from tests.servers import Server, uvicorn

__all__ = ["board", "server"]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A switchboard on uvicorn."""
    with uvicorn("tests.apps:switchboard") as server:
        yield server


@pytest.fixture
def board(server: Server) -> Board:
    """Makes sites there."""
    return Board(server.port)
