"""Do simulated and real herds agree? `python -m tests.herdgate_loadtest.simulate.agreement [CLIENTS RATE [NAME...]]`

The real side is a gateway of the benchmark, a process (uvicorn, the middleware with its defaults, an echo app), and a
crowd of the engine whose sockets were elsewhere, so that the gateway is not busy with their ends. How fast this machine
answers is no matter of the simulation, and changes with all that runs beside it: it is measured in the same run, as
answers over the time in which somebody waits for one, and told to the simulation as `answers_per_s`.
"""

import asyncio
import sys
from typing import NamedTuple

from herdgate.core.limits import Limits
from herdgate_loadtest.bench.echo import Settings
from herdgate_loadtest.bench.gateways import run_gateways
from herdgate_loadtest.engine import Crowd, CrowdConfig, Record, loopback_sources
from herdgate_loadtest.simulate.herd import simulate
from herdgate_loadtest.simulate.scenario import Scenario

__all__ = ["BEHAVIOURS", "MOST_APART", "SPREAD_S", "Pair", "compare"]

BEHAVIOURS = ("obey", "hint", "jitter", "fixed", "immediate")
MOST_APART = 0.1
SPREAD_S = 0.3
_LOOK_S, _IN_LINE = 0.005, 10
_LATEST_S = 90.0  # beyond the ideal time: full jitter has a tail of its own


class Pair(NamedTuple):
    """The same crowd, real and simulated, where a gateway has so many answers a second."""

    behaviour: str
    answers_per_s: float
    real: Record
    simulated: Record

    @property
    def t95_apart(self) -> float:
        """How far the simulation is off, as a share of what was measured."""
        return self.simulated.t95_s / self.real.t95_s - 1

    @property
    def tries_apart(self) -> float:
        """The same of tries per client."""
        return self.simulated.attempts_per_client / self.real.attempts_per_client - 1

    @property
    def agrees(self) -> bool:
        """Both are within the bound."""
        return max(abs(self.t95_apart), abs(self.tries_apart)) <= MOST_APART

    def __str__(self) -> str:
        real, simulated = self.real, self.simulated
        return (
            f"{self.behaviour:10s} t95 {real.t95_s:6.2f} s, simulated {simulated.t95_s:6.2f} ({self.t95_apart:+.1%}); "
            f"tries {real.attempts_per_client:6.2f}, simulated {simulated.attempts_per_client:6.2f} "
            f"({self.tries_apart:+.1%}); {self.answers_per_s:,.0f} answers/s{'' if self.agrees else '  APART'}"
            + "".join(f"; {reason}" for reason in real.reasons)
        )


def compare(behaviour: str, clients: int, rate: float) -> Pair:
    """Have a crowd come back, and simulate the same."""
    with run_gateways(1, Settings(rate, redis=None)) as (gateway,):
        asyncio.run(gateway.ask())  # it is up
        real, answers_per_s = asyncio.run(_come_back(gateway.url, behaviour, clients, rate))
    scenario = Scenario(clients, Limits(rate=rate), {behaviour: 1.0}, spread_s=SPREAD_S, answers_per_s=answers_per_s)
    return Pair(behaviour, answers_per_s, real, simulate(scenario).record)


async def _come_back(url: str, behaviour: str, clients: int, rate: float) -> tuple[Record, float]:
    async with _crowd(url, behaviour, clients) as crowd:
        coming = asyncio.create_task(crowd.bring_up(rate=clients / SPREAD_S, deadline_s=clients / rate + _LATEST_S))
        answers_per_s = await _answers_per_s(crowd, coming)
        await coming
        return crowd.record(rate=rate, burst=rate), answers_per_s


async def _answers_per_s(crowd: Crowd, coming: "asyncio.Task[None]") -> float:
    """Answers over the time in which `_IN_LINE` tries at least wait for one."""
    await asyncio.sleep(0)  # it is up when this returns
    answers, busy_s, before = 0, 0.0, crowd.snapshot()
    while not coming.done():
        await asyncio.sleep(_LOOK_S)
        now = crowd.snapshot()
        if min(before.dialling, now.dialling) >= _IN_LINE:
            answers += (now.tries - now.dialling) - (before.tries - before.dialling)
            busy_s += now.elapsed_s - before.elapsed_s
        before = now
    return answers / busy_s


def _crowd(url: str, behaviour: str, clients: int) -> Crowd:
    sources = loopback_sources(1 + clients // 5_000)
    return Crowd(CrowdConfig(urls=(url,), clients={behaviour: clients}, sources=sources))


def main() -> None:
    """Print one line a behaviour; exit with 1 if any is apart."""
    clients, rate = (int(sys.argv[1]), float(sys.argv[2])) if len(sys.argv) > 2 else (2_000, 200.0)
    print(f"{clients:,} clients at {rate:g}/s", flush=True)
    apart = False
    for behaviour in sys.argv[3:] or BEHAVIOURS:
        pair = compare(behaviour, clients, rate)
        apart |= not pair.agrees
        print(pair, flush=True)
    sys.exit(apart)


if __name__ == "__main__":
    main()
