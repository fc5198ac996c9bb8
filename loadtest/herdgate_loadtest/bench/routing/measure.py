"""What a fleet with leases does when a worker is lost, and what routing costs: three workers, two gateways, one rate.

crash_reachable_s   the worker is killed: until every shard of it is served again, as seen through both gateways
crash_back_s        the same: until its clients are back, less what their number and the rate ask for
graceful_p99_s      SIGTERM: seconds that a client is without a socket
routing_latency_ms  from handshake to 101, less the same at a gateway that has the worker in its settings
"""

import asyncio
from dataclasses import dataclass

import uvloop

from herdgate_loadtest.bench.figures import at_most
from herdgate_loadtest.bench.routing.latency import two_gateways
from herdgate_loadtest.bench.routing.losses import Losses
from herdgate_loadtest.bench.sides.outcome import Outcome
from herdgate_loadtest.owned.fleet import owned_fleet

__all__ = ["measure"]

_BOUNDS = {
    "crash_reachable_s": at_most(1.5, 0.7),
    "crash_back_s": at_most(2, 1),
    "graceful_p99_s": at_most(0.5, 0.15),
    "routing_latency_ms": at_most(0.3, 0.1),
}


@dataclass(frozen=True, slots=True)
class _Plan:
    clients: int
    rate: float
    slots: int
    pairs: int
    revives: bool


_FULL, _FAST = _Plan(3_000, 500.0, 3, 1_000, True), _Plan(150, 100.0, 1, 50, False)


def measure(*, fast: bool) -> Outcome:
    """Seconds and milliseconds."""
    plan, outcome = _FAST if fast else _FULL, Outcome(_BOUNDS)
    with owned_fleet(rate=plan.rate, settled=plan.revives) as fleet:
        losses = Losses(fleet, outcome, plan.clients, plan.rate, plan.slots, plan.revives)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(losses.crashes())
            runner.run(losses.stops())
    with two_gateways() as pair:
        for _ in range(plan.slots):
            added, direct = pair.added_ms(plan.pairs)
            outcome.add("routing_latency_ms", added)
            outcome.add("direct_latency_ms", direct)
    return outcome
