"""How much longer an admission takes for asking Redis, where there is no crowd.

Handshakes go in turn to a gateway with the fleet's store and to one with the store in memory, one at a time and at
random intervals: far fewer than a gateway may call.
"""

import asyncio
import random
import socket
import statistics
import time
from dataclasses import dataclass

from herdgate_loadtest.bench.crowds import fleet_is_up
from herdgate_loadtest.bench.echo import Settings
from herdgate_loadtest.bench.finding import Finding
from herdgate_loadtest.bench.gateways import run_gateways
from herdgate_loadtest.demo.process import HOST
from herdgate_loadtest.engine.record import percentile
from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.servers.redis import redis_server

__all__ = ["handshake_ms", "measure"]

_RATE = 500.0
_PAUSE_S = (0.03, 0.05)
_TIMEOUT_S = 5.0
_RESET = b"\1\0\0\0\0\0\0\0"  # struct linger: on, 0 s
_REQUEST = (
    b"GET %b HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class _Plan:
    pairs: int


_FULL, _FAST = _Plan(200), _Plan(20)


async def measure(*, fast: bool) -> Finding:
    """`added_latency_p50_ms`: the difference of the medians, from the request to the 101."""
    plan = _FAST if fast else _FULL
    with (
        redis_server() as redis,
        run_gateways(1, Settings(_RATE, redis.url)) as fleet,
        run_gateways(1, Settings(_RATE, None)) as alone,
    ):
        await asyncio.gather(fleet_is_up(fleet), fleet_is_up(alone))
        await asyncio.sleep(1.0)  # a bucket that is found empty has filled up
        there, here = await asyncio.to_thread(_alternate, plan.pairs, fleet[0].port, alone[0].port)
        is_up = (await fleet[0].ask(time.monotonic())).is_up
    figures = {"added_latency_p50_ms": statistics.median(there) - statistics.median(here)}
    reasons = [] if is_up else ["Redis did not answer in time: this machine is too busy"]
    tails = {"fleet_p99_ms": percentile(sorted(there), 99), "memory_p99_ms": percentile(sorted(here), 99)}
    medians = {"fleet_p50_ms": statistics.median(there), "memory_p50_ms": statistics.median(here)}
    return Finding(figures, reasons, medians | tails)


def _alternate(pairs: int, *ports: int) -> tuple[list[float], ...]:
    """Milliseconds of handshakes at each of the ports."""
    rng = random.Random(1)
    taken: tuple[list[float], ...] = tuple([] for _ in ports)
    for _ in range(pairs):
        for port, mine in zip(ports, taken, strict=True):
            time.sleep(rng.uniform(*_PAUSE_S) / len(ports))
            mine.append(handshake_ms(port))
    return taken


def handshake_ms(port: int, path: str = "/echo") -> float:
    """From the request to the 101, on a connection that is reset afterwards.

    Raises:
        CrowdError: the answer was no 101.
    """
    with socket.create_connection((HOST, port), timeout=_TIMEOUT_S) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        request = _REQUEST % path.encode()
        began = time.perf_counter()
        client.sendall(request)
        head = client.recv(4_096)
        taken = time.perf_counter() - began
    if not head.startswith(b"HTTP/1.1 101"):
        raise CrowdError(f"a gateway without a crowd answered {head[9:12].decode() or 'nothing'}: run it again")
    return taken * 1e3
