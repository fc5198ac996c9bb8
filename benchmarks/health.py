"""How long a health check waits, idle and while refusals are driven as fast as the server can refuse.

    python -m benchmarks.health [--fast] [--json]

How it is measured. The gateway's permits are all taken by sockets that are held, so every handshake is refused (`full`,
with a ticket). A slot is a time without a flood and one with it, of each contender in turn: so whatever else the
machine does meets all of them. Meanwhile one probe after the other asks for health, on a connection each, from the
connect to the end of the answer. Values are medians over all slots, and a ratio is that of the two p99 of one slot.
CPU is the share of a core that the server took during the flood: far below 100 % it was not refusing as fast as it can,
as the generators had no time on this machine, and the slot shows too little.

The yardstick is stock uvicorn with an app that refuses by the denial extension. Its health, as that on the gateway's
data port, is in the loop that refuses: a probe there waits its turn among all the handshakes in flight.
"""

import argparse
import json
import math
import os
import socket
import statistics
import sys
import time
from collections import Counter
from typing import NamedTuple

from benchmarks.contenders import HELD, Contender, gateway, stock
from benchmarks.flood import GENERATORS, IN_FLIGHT, Flood

SLOTS, SECONDS = 7, 3.0
FAST_SLOTS, FAST_SECONDS = 5, 0.5
PAUSE_S = 0.003
TIMEOUT_S = 5.0

_REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Slot(NamedTuple):
    """One slot of one health check; times in seconds. `cpu` is what the server took of one core during the flood."""

    idle_p50: float
    idle_p99: float
    flood_p50: float
    flood_p99: float
    refusals_per_s: float
    cpu: float


class Row(NamedTuple):
    """One line of the table."""

    health: str
    refusals_per_s: float
    cpu: float
    idle_p50_ms: float
    idle_p99_ms: float
    flood_p50_ms: float
    flood_p99_ms: float
    ratio_p99: float


def ask(port: int) -> float:
    """Seconds of one health check; as long as the timeout for one that fails."""
    began = time.perf_counter()
    try:
        with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as client:
            client.sendall(_REQUEST)
            answer = b"".join(iter(lambda: client.recv(4_096), b""))
    except OSError:
        return TIMEOUT_S
    return time.perf_counter() - began if answer[9:12] == b"200" else TIMEOUT_S


def probe(contender: Contender, seconds: float) -> dict[str, list[float]]:
    """Health checks for so long, in turns; sorted times by name."""
    times: dict[str, list[float]] = {name: [] for name in contender.health}
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, port in contender.health.items():
            times[name].append(ask(port))
            time.sleep(PAUSE_S)
    return {name: sorted(values) for name, values in times.items()}


def percentile(values: list[float], share: float) -> float:
    """The smallest of sorted values that so large a share does not exceed (nearest rank)."""
    return values[math.ceil(share * len(values)) - 1]


def measure(contender: Contender, flood: Flood, seconds: float) -> dict[str, Slot]:
    """One slot, by name of the health check."""
    idle = probe(contender, seconds)
    flood.start(contender.port, seconds)
    began, cpu_s = time.monotonic(), contender.cpu_s()
    flooded = probe(contender, seconds)
    refused = check_refused(flood.finish())
    took_s = time.monotonic() - began
    rates = (refused / took_s, (contender.cpu_s() - cpu_s) / took_s)
    return {name: Slot(*middle_and_tail(idle[name]), *middle_and_tail(flooded[name]), *rates) for name in idle}


def middle_and_tail(values: list[float]) -> tuple[float, float]:
    """p50 and p99 of sorted values."""
    return percentile(values, 0.5), percentile(values, 0.99)


def check_refused(answers: Counter[int]) -> int:
    """How many were refused; ends the run if any answer was another one."""
    if set(answers) != {503}:
        sys.exit(f"not every handshake was refused with 503; answers by status: {dict(answers)}")
    return answers[503]


def summarise(name: str, slots: list[Slot]) -> Row:
    """Medians over all slots."""
    middle = Slot(*map(statistics.median, zip(*slots, strict=True)))
    return Row(
        health=name,
        refusals_per_s=middle.refusals_per_s,
        cpu=middle.cpu,
        idle_p50_ms=middle.idle_p50 * 1_000,
        idle_p99_ms=middle.idle_p99 * 1_000,
        flood_p50_ms=middle.flood_p50 * 1_000,
        flood_p99_ms=middle.flood_p99 * 1_000,
        ratio_p99=statistics.median(slot.flood_p99 / slot.idle_p99 for slot in slots),
    )


def run(slots: int, seconds: float) -> list[Row]:
    """Measure every contender, slot by slot."""
    measured: dict[str, list[Slot]] = {}
    with gateway() as ours, stock() as theirs, Flood() as flood:
        for _ in range(slots):
            for contender in (ours, theirs):
                for name, slot in measure(contender, flood, seconds).items():
                    measured.setdefault(name, []).append(slot)
    return [summarise(name, slots_of) for name, slots_of in measured.items()]


def report(rows: list[Row], slots: int, seconds: float, load: tuple[float, float]) -> None:
    """Print the table."""
    print(f"{slots} slots of 2 x {seconds:g} s; {GENERATORS} generators with {IN_FLIGHT} handshakes in flight each,")
    print(f"{HELD} sockets held; load average before {load[0]:.2f}, after {load[1]:.2f}, {os.cpu_count()} cores")
    times = f"{'idle p50':>10}{'p99':>7}{'flood p50':>11}{'p99':>7}{'x p99':>7}"
    print(f"{'GET /healthz, ms':16}{'refused/s':>10}{'CPU':>6}{times}")
    for name, rate, cpu, idle_p50, idle_p99, p50, p99, ratio in rows:
        times = f"{idle_p50:10.2f}{idle_p99:7.2f}{p50:11.2f}{p99:7.2f}{ratio:7.1f}"
        print(f"{name:16}{rate:10,.0f}{cpu:6.0%}{times}")


def main() -> None:
    """Measure, and print one table or one JSON object."""
    parser = argparse.ArgumentParser(description="Health checks beside a flood of refused handshakes.")
    parser.add_argument("--fast", action="store_true", help="shorter slots, for a quick look")
    parser.add_argument("--slots", type=int, help=f"of each contender; default {SLOTS}")
    parser.add_argument("--seconds", type=float, help=f"of either half of a slot; default {SECONDS:g}")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    slots = options.slots or (FAST_SLOTS if options.fast else SLOTS)
    seconds = options.seconds or (FAST_SECONDS if options.fast else SECONDS)
    before = os.getloadavg()[0]
    rows = run(slots, seconds)
    load = (before, os.getloadavg()[0])
    if options.json:
        told = {"slots": slots, "seconds": seconds, "held": HELD, "load_average": load}
        print(json.dumps({**told, "health": [row._asdict() for row in rows]}))
    else:
        report(rows, slots, seconds, load)


if __name__ == "__main__":
    main()
