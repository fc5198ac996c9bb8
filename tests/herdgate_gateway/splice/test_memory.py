"""What an idle socket costs, beside the transports below it."""

import gc
import tracemalloc
from contextlib import AsyncExitStack

from tests.herdgate_gateway.gateways import scripted_worker, until
from tests.herdgate_gateway.splice.fronts import Front, splice
from tests.herdgate_gateway.splice.scripts import Listener
from tests.wire import handshake, raw

SOCKETS = 100
OURS = [
    tracemalloc.Filter(True, f"*/herdgate_gateway/splice/{module}.py")
    for module in ("frames", "halves", "handshake", "joint", "relay", "scanner", "sweeper")
]
"""All but the place that dials, which counts the worker's transport."""


async def test_an_idle_socket_is_less_than_1_5_kib_of_objects() -> None:
    async with scripted_worker(Listener()) as worker, splice([worker.url]) as front, AsyncExitStack() as clients:
        await _open(front, clients, SOCKETS)  # what is made once
        gc.collect()
        tracemalloc.start()
        try:
            before = _taken()
            await _open(front, clients, SOCKETS)
            gc.collect()
            each = (_taken() - before) / SOCKETS
        finally:
            tracemalloc.stop()
        assert 300 < each < 1536


async def _open(front: Front, clients: AsyncExitStack, count: int) -> None:
    expected = len(front.relay.joints) + count
    for _ in range(count):
        client = await clients.enter_async_context(raw(front.port, handshake("/ws")))
        assert (await client.head())[0] == 101
    await until(lambda: len(front.relay.joints) == expected, "all are joined")


def _taken() -> int:
    statistics = tracemalloc.take_snapshot().filter_traces(OURS).statistics("filename")
    return sum(statistic.size for statistic in statistics)
