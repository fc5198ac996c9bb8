"""The benchmarks side by side, by name; and one run of one of them."""

import os
from typing import NamedTuple, Protocol

from herdgate_loadtest.bench.descriptors import raise_descriptors
from herdgate_loadtest.bench.drain import measure as drain
from herdgate_loadtest.bench.leases import measure as leases
from herdgate_loadtest.bench.routing import measure as routing
from herdgate_loadtest.bench.sides import deciding, health, holding, proxying, refusing
from herdgate_loadtest.bench.sides.outcome import Outcome

__all__ = ["KINDS", "Kind", "run"]


class _Measure(Protocol):
    def __call__(self, *, fast: bool) -> Outcome: ...


class Kind(NamedTuple):
    """One benchmark.

    Attributes:
        measure: runs it; small numbers if `fast`: to see that it works, not what it costs.
        unit: of its results.
        about: for people.
    """

    measure: _Measure
    unit: str
    about: str


KINDS = {
    "reject": Kind(
        refusing.measure_reject,
        "refusals per CPU second",
        "Refuse handshakes over HTTP, beside stock uvicorn, Starlette, nginx and haproxy.",
    ),
    "close": Kind(
        refusing.measure_close,
        "refusals per CPU second",
        "Refuse pages by accept and close 1013, beside stock uvicorn and Starlette.",
    ),
    "proxy": Kind(
        proxying.measure, "messages per CPU second", "Relay messages, beside a naive proxy, nginx and haproxy."
    ),
    "hold": Kind(
        holding.measure,
        "sockets per CPU second, and KiB",
        "Bring up idle sockets through the proxy, beside a naive proxy, nginx and haproxy.",
    ),
    "health": Kind(health.measure, "ms", "Answer health checks while a flood of handshakes is refused."),
    "lease": Kind(leases.measure, "s, units and effects", "Lose workers that own shards; takes some minutes."),
    "routing": Kind(
        routing.measure, "s and ms", "Lose workers under a crowd whose connections they own; takes some minutes."
    ),
    "drain": Kind(
        drain.measure, "s, tries and shares", "Drain gateways under a crowd behind a balancer; takes some minutes."
    ),
    "decide": Kind(deciding.measure, "ns", "Decide, in this process, beside the plainest keyed rate limiter."),
}
"""By name, in the order of the help."""


def run(name: str, *, fast: bool) -> Outcome:
    """Run one of them.

    Raises:
        LoadtestError: it could not be run.
    """
    raise_descriptors()
    before = os.getloadavg()[0]
    outcome = KINDS[name].measure(fast=fast)
    outcome.load = (round(before, 2), round(os.getloadavg()[0], 2))
    return outcome
