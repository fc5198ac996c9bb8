"""The client's connection before it is a WebSocket: nothing of it waits for the garbage collector."""

import gc
from collections.abc import Iterator

import pytest

from herdgate_gateway.http_leg import HttpLeg
from tests.fake_server import echo
from tests.herdgate_gateway.gateways import serve, until
from tests.wire import ask, open_socket


@pytest.fixture
def no_collection() -> Iterator[None]:
    """Nothing is freed but by its last reference."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def legs() -> int:
    return sum(type(each) is HttpLeg for each in gc.get_objects())


@pytest.mark.usefixtures("no_collection")
async def test_nothing_is_left_of_it_once_a_websocket_has_taken_over_or_the_client_has_gone() -> None:
    async with serve(echo, http=HttpLeg) as port:
        for _ in range(3):
            async with open_socket(port, "/ws") as client:
                await client.send("hello")
                assert await client.recv() == "hello"
                assert legs() == 0
            assert (await ask(port, "/")).status == 200
        await until(lambda: legs() == 0, "all are gone")
