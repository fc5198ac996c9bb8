"""How long a health check waits, idle and while handshakes come at 2.5 times what stock uvicorn can refuse.

What stock uvicorn refuses in a CPU second is measured first. The flood comes at its pace whatever the gateway does with
it; every handshake is refused with a ticket. A slot is a time without the flood and one with it. Meanwhile one check
after the other asks both ports in turn, on a connection each, from the connect to the end of the answer. Values are
p99 by slot; `flood/idle` is the worse one of the ratios of both ports.
"""

import socket
import time
from dataclasses import dataclass

from herdgate_loadtest.bench.figures import at_most
from herdgate_loadtest.bench.sides.contenders import Contender, echo_worker, run_contenders
from herdgate_loadtest.bench.sides.flood import Flood
from herdgate_loadtest.bench.sides.outcome import Outcome
from herdgate_loadtest.bench.sides.slots import measured
from herdgate_loadtest.bench.sides.visits import Visits
from herdgate_loadtest.demo.process import HOST
from herdgate_loadtest.engine.record import percentile
from herdgate_loadtest.errors import CrowdError

__all__ = ["ask", "measure"]

_TIMES_STOCK = 2.5
_PAUSE_S = 0.003
_TIMEOUT_S = 5.0
_LEAST_KEPT = 0.9
_LEAST_CHECKS = 20
_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
_BOUNDS = {"flood/idle": at_most(3, 1.5)}


@dataclass(frozen=True, slots=True)
class _Plan:
    slots: int
    slot_s: float  # each half


_FULL, _FAST = _Plan(5, 3.0), _Plan(1, 0.6)


def measure(*, fast: bool) -> Outcome:
    """p99 in milliseconds, of the admin listener and of `health_path` on the port of clients."""
    plan, outcome = _FAST if fast else _FULL, Outcome(_BOUNDS)
    with echo_worker() as worker:
        with run_contenders(["uvicorn"], "refuse", worker) as (stock,):
            pace = _TIMES_STOCK * _capacity(outcome, stock, plan.slot_s)
        with run_contenders(["herdgate"], "refuse", worker) as (ours,), Flood() as flood:
            for _ in range(plan.slots):
                _slot(outcome, ours, flood, pace, plan.slot_s)
    outcome.details["flood_per_s"] = pace
    for port in ("admin", "data"):
        outcome.compare(f"{port}_flood_p99_ms", f"{port}_idle_p99_ms", f"{port}:flood/idle")
    outcome.ratios["flood/idle"] = max(outcome.ratios.values())
    return outcome


def _capacity(outcome: Outcome, stock: Contender, seconds: float) -> float:
    """Refusals per CPU second."""
    visits = Visits("http", with_ticket=False)

    def work() -> tuple[int, list[str]]:
        tally = visits.run(stock.port, seconds)
        return tally.done, tally.faults(0)

    slot = measured(stock, work)
    outcome.spoiled(slot.reasons("uvicorn"))
    outcome.details["uvicorn_refusals_per_cpu_s"] = slot.done / slot.cpu_s
    return slot.done / slot.cpu_s


def _slot(outcome: Outcome, ours: Contender, flood: Flood, pace: float, seconds: float) -> None:
    ports = {"admin": ours.admin or 0, "data": ours.port}
    for name, times in _check(ports, seconds).items():
        _add(outcome, f"{name}_idle", times)
    flood.start(ours.port, seconds, pace=pace)
    flooded = _check(ports, seconds)
    tally = flood.finish()
    for name, times in flooded.items():
        _add(outcome, f"{name}_flood", times)
    outcome.spoiled(f"herdgate: {fault}" for fault in tally.faults(0))
    if tally.kept < _LEAST_KEPT:
        late = f"{tally.kept:.0%} of its pace, {tally.most_open:,} handshakes open at once"
        outcome.spoiled([f"the flood came late ({late}): this machine has no time for it"])


def _add(outcome: Outcome, name: str, times: list[float]) -> None:
    if len(times) < _LEAST_CHECKS:
        outcome.spoiled([f"{name}: only {len(times)} health checks in a slot"])
    outcome.add(f"{name}_p99_ms", percentile(sorted(times), 99) * 1_000)
    outcome.add(f"{name}_p50_ms", percentile(sorted(times), 50) * 1_000)


def _check(ports: dict[str, int], seconds: float) -> dict[str, list[float]]:
    """Health checks for so long, in turns; seconds of each."""
    times: dict[str, list[float]] = {name: [] for name in ports}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, port in ports.items():
            times[name].append(ask(port))
            time.sleep(_PAUSE_S)
    return times


def ask(port: int) -> float:
    """Seconds of one health check; as long as the timeout for one that fails.

    Raises:
        CrowdError: the answer is not a 200.
    """
    began, answer = time.perf_counter(), b""
    try:
        with socket.create_connection((HOST, port), _TIMEOUT_S) as client:
            client.sendall(_REQUEST)
            while more := client.recv(4_096):
                answer += more
    except OSError:
        return _TIMEOUT_S
    if answer[9:12] != b"200":
        raise CrowdError(f"a health check was answered with {answer[:40]!r}: run it again")
    return time.perf_counter() - began
