"""How large the head of a handshake may be, the same for both relays; and which heads are relayed by message."""

import pytest

from tests.herdgate_gateway.gateways import Visitor, frame, gateway, scripted_worker, until
from tests.wire import handshake, raw

pytestmark = pytest.mark.usefixtures("both_relays")

OWN = 5  # headers of a handshake
KIB = 1_024


def lines(count: int, size: int = 1) -> list[tuple[str, str]]:
    """So many headers of so many bytes."""
    return [(f"X-{number}", "a" * size) for number in range(count)]


def line(size: int) -> list[tuple[str, str]]:
    """One header on a line of so many bytes, its end included."""
    return [("X", "a" * (size - len("X: \r\n")))]


@pytest.mark.parametrize(
    ("headers", "path", "status"),
    [
        pytest.param(lines(128 - OWN), "/ws", 101, id="128 headers"),
        pytest.param(lines(129 - OWN), "/ws", 400, id="129 headers"),
        pytest.param(line(8 * KIB), "/ws", 101, id="a line of 8 KiB"),
        pytest.param(line(8 * KIB + 1), "/ws", 400, id="a longer line"),
        pytest.param([], "/" + "a" * (8 * KIB - 16), 101, id="a request line of 8 KiB"),
        pytest.param([], "/" + "a" * (8 * KIB - 14), 400, id="a longer request line"),
        pytest.param(lines(20, 1_000), "/ws", 101, id="20 KiB on many lines"),
        pytest.param(lines(60, 1_000), "/ws", 101, id="60 KiB on many lines"),
        pytest.param(lines(66, 1_000), "/ws", 431, id="above 64 KiB"),
    ],
)
async def test_a_head_is_as_large_as_the_documentation_says(
    headers: list[tuple[str, str]], path: str, status: int
) -> None:
    async with scripted_worker(Visitor.accept) as worker, gateway([worker.url]) as front:
        async with raw(front.port, handshake(path, headers=headers)) as client:
            assert (await client.head())[0] == status
        await front.is_idle()


async def test_a_handshake_of_http_1_0_is_refused_before_the_decision() -> None:
    async with scripted_worker(Visitor.accept) as worker, gateway([worker.url]) as front:
        async with raw(front.port, handshake("/ws").replace(b"HTTP/1.1", b"HTTP/1.0")) as client:
            assert (await client.head())[0] == 400
        assert front.gate.snapshot().admitted == 0
        assert worker.visits == []


@pytest.mark.parametrize("leg", ["splice"])
@pytest.mark.parametrize(
    ("headers", "spliced"),
    [
        pytest.param(lines(100 - OWN), True, id="100 headers"),
        pytest.param(lines(101 - OWN), False, id="101 headers"),
        pytest.param(lines(15, 1_000), True, id="15 KiB"),
        pytest.param(lines(20, 1_000), False, id="20 KiB"),
        pytest.param([("X", "\u00e9")], False, id="no ASCII"),
    ],
)
async def test_what_is_no_simple_handshake_is_relayed_by_message(
    leg: str, headers: list[tuple[str, str]], spliced: bool
) -> None:
    """Told apart by what a ping of the client meets: its worker, or the gateway."""

    heard = bytearray()

    async def listen(visit: Visitor) -> None:
        await visit.accept()
        while data := await visit.reader.read(100):
            heard.extend(data)

    async with (
        scripted_worker(listen) as worker,
        gateway([worker.url], leg=leg) as front,
        raw(front.port, handshake("/ws", headers=headers)) as client,
    ):
        assert (await client.head())[0] == 101
        await client.send(frame(9, b"?", mask=True))
        if spliced:
            await until(lambda: bool(heard), "the worker gets the ping")
        else:
            assert await client.frame() == (10, b"?")
            assert not heard
