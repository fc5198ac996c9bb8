"""Messages per CPU second of a proxy: 100 connections with 64 bytes each way, and one with 64 KiB.

Each connection has one message on the way at a time. Only the proxy is counted: the worker, which echoes, and the
clients are other processes.
"""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

from herdgate_loadtest.bench.figures import at_least
from herdgate_loadtest.bench.sides.contenders import (
    PEERS,
    Contender,
    EchoWorker,
    echo_worker,
    run_contenders,
    wait_for,
)
from herdgate_loadtest.bench.sides.outcome import Outcome
from herdgate_loadtest.bench.sides.slots import Slot, available, fill, measured
from herdgate_loadtest.bench.sides.talks import open_sockets, talk

__all__ = ["measure"]

_SMALL, _CONNECTIONS = 64, 100
_LARGE = 64 * 1024
_Sockets = Mapping[str, Sequence[socket.socket]]
_NAMES = ["herdgate", "naive", *PEERS]
_BOUNDS = {
    "herdgate/naive": at_least(3, 5),
    "herdgate/nginx": at_least(0.6, 1),
    "64k:herdgate/nginx": at_least(0.8, 1.1),
}


@dataclass(frozen=True, slots=True)
class _Plan:
    slots: int
    slot_s: float


_FULL, _FAST = _Plan(7, 2.0), _Plan(1, 0.2)


def measure(*, fast: bool) -> Outcome:
    """Small messages, then large ones."""
    plan, outcome = _FAST if fast else _FULL, Outcome(_BOUNDS)
    here, outcome.absent = available(_NAMES)
    with echo_worker() as worker, run_contenders(here, "relay", worker) as contenders:
        for prefix, size, count in (("", _SMALL, _CONNECTIONS), ("64k:", _LARGE, 1)):
            with _connected(contenders, count, worker) as sockets:
                fill(outcome, contenders, plan.slots, partial(_slot, sockets, size, plan.slot_s), prefix)
    for name in _NAMES[1:]:
        outcome.compare("herdgate", name)
        outcome.compare("64k:herdgate", f"64k:{name}", f"64k:herdgate/{name}")
    return outcome


@contextmanager
def _connected(contenders: Sequence[Contender], count: int, worker: EchoWorker) -> Iterator[_Sockets]:
    """So many sockets through each, by its name."""
    with ExitStack() as stack:
        sockets = {one.name: stack.enter_context(open_sockets(one.port, count)) for one in contenders}
        wait_for(lambda: worker.open() == count * len(contenders), f"{count} sockets of each are open at the worker")
        yield sockets


def _slot(sockets: _Sockets, size: int, seconds: float, contender: Contender) -> Slot:
    return measured(contender, lambda: talk(sockets[contender.name], size, seconds))
