"""Idle sockets through a proxy: what bringing them up costs, and how much memory each takes.

In each round every contender is started anew, as a process keeps memory that it once had. A few sockets come and go
first, so that what is loaded at the first use is not counted. Memory is the growth of resident memory of the proxy's
tree once it does not change any more, and every socket is seen to be open at the worker then.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass

from herdgate_loadtest.bench.figures import at_least, at_most
from herdgate_loadtest.bench.sides.accounts import resident_bytes
from herdgate_loadtest.bench.sides.contenders import (
    PEERS,
    Contender,
    EchoWorker,
    echo_worker,
    run_contenders,
    wait_for,
)
from herdgate_loadtest.bench.sides.outcome import Outcome
from herdgate_loadtest.bench.sides.slots import available, measured
from herdgate_loadtest.bench.sides.talks import open_sockets
from herdgate_loadtest.errors import CrowdError

__all__ = ["measure"]

_NAMES = ["herdgate", "naive", *PEERS]
_WARM = 50
_SETTLED_S, _LOOK_S = 5.0, 0.2
_SETTLED_BYTES = 64 * 1024
_BOUNDS = {"herdgate_kib_per_socket": at_most(6, 3.5), "herdgate/naive": at_least(3, 5)}


@dataclass(frozen=True, slots=True)
class _Plan:
    rounds: int
    sockets: int


_FULL, _FAST = _Plan(3, 5_000), _Plan(1, 300)


def measure(*, fast: bool) -> Outcome:
    """Sockets brought up per CPU second, and KiB of each."""
    plan, outcome = _FAST if fast else _FULL, Outcome(_BOUNDS)
    here, outcome.absent = available(_NAMES)
    with echo_worker() as worker:
        for _ in range(plan.rounds):
            for name in here:
                with run_contenders([name], "relay", worker) as (contender,):
                    _hold(outcome, contender, worker, plan.sockets)
    for name in _NAMES[1:]:
        outcome.compare("herdgate", name)
    return outcome


def _hold(outcome: Outcome, contender: Contender, worker: EchoWorker, count: int) -> None:
    with open_sockets(contender.port, _WARM):
        wait_for(lambda: worker.open() == _WARM, f"{_WARM} sockets are open at the worker")
    wait_for(lambda: worker.open() == 0, "no socket is open at the worker")
    before = _settled(contender)

    with ExitStack() as stack:

        def bring_up() -> tuple[int, list[str]]:
            stack.enter_context(open_sockets(contender.port, count))
            return count, []

        slot = measured(contender, bring_up)
        wait_for(lambda: worker.open() == count, f"{count} sockets are open at the worker")
        grown = _settled(contender) - before
        if (held := worker.open()) != count:
            raise CrowdError(f"{contender.name} kept {held} of {count} idle sockets: run it again")
    wait_for(lambda: worker.open() == 0, "no socket is open at the worker")
    outcome.spoiled(slot.reasons(contender.name))
    outcome.add(contender.name, slot.done / max(slot.cpu_s, 1e-9))
    outcome.add(f"{contender.name}_kib_per_socket", grown / count / 1024)


def _settled(contender: Contender) -> int:
    """Resident memory once it does not change, or after a few seconds."""
    end, last = time.monotonic() + _SETTLED_S, resident_bytes(contender.pid)
    while time.monotonic() < end:
        time.sleep(_LOOK_S)
        now = resident_bytes(contender.pid)
        if abs(now - last) < _SETTLED_BYTES:
            return now
        last = now
    return last
