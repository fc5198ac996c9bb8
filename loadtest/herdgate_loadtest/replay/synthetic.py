"""The traces that are shipped: `python -m herdgate_loadtest.replay.synthetic FOLDER` writes them.

`alb_cut`: three targets of an AWS application load balancer are deregistered at the same time. Their sockets live on
for the deregistration delay, 300 s, while some clients leave; then the balancer cuts all that are left, in a moment.
`rolling_restart`: six workers are restarted, one every 20 s; each closes its sockets, and clients move to the others.

Rules: the same lines every time. Ascending moments, rounded to the millisecond.
"""

import json
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["SYNTHETIC", "alb_cut", "main", "rolling_restart"]

_DELAY_S = 300.0
_TARGETS, _PER_TARGET = 3, 700
_LEAVING = 0.1
_CUT_S = 0.25
_WORKERS, _PER_WORKER, _EVERY_S, _CLOSING_S = 6, 150, 20.0, 0.5


def alb_cut(seed: int = 1) -> Iterator[dict[str, Any]]:
    """Three targets at once, after the deregistration delay."""
    rng = random.Random(seed)
    yield {"herdgate_trace": 1, "about": "synthetic: an ALB cuts three targets at once, 300 s after deregistration"}
    yield {"t": 0.0, "event": "note", "text": "three targets are deregistered"}
    ends = []
    for number in range(_TARGETS * _PER_TARGET):
        leaves = rng.random() < _LEAVING
        t = rng.uniform(0, _DELAY_S) if leaves else _DELAY_S + rng.uniform(0, _CUT_S)
        ends.append((round(t, 3), number, {"how": "close"} if leaves else {"how": "reset", "returns": True}))
    for t, number, how in sorted(ends, key=lambda end: end[:2]):
        yield {"t": t, "event": "close", "socket": number, "client": f"c{number}", **how}


def rolling_restart(seed: int = 1) -> Iterator[dict[str, Any]]:
    """One worker after the other, and clients that move to those that are there."""
    rng = random.Random(seed)
    yield {"herdgate_trace": 1, "about": "synthetic: six workers restart, one every 20 s"}
    workers = [[f"c{worker * _PER_WORKER + number}" for number in range(_PER_WORKER)] for worker in range(_WORKERS)]
    sockets = {client: f"{client}.0" for worker in workers for client in worker}
    for worker in range(_WORKERS):
        begins = 10.0 + worker * _EVERY_S
        moved, workers[worker] = workers[worker], []
        others = [place for place in range(_WORKERS) if place != worker]
        events: list[tuple[float, dict[str, Any]]] = [
            (begins, {"event": "note", "text": f"worker {worker + 1} restarts"})
        ]
        for client in moved:
            ended = round(begins + rng.uniform(0, _CLOSING_S), 3)
            again = round(ended + rng.uniform(0.1, 8.0), 3)
            old, new = sockets[client], f"{client}.{worker + 1}"
            events += [
                (ended, {"event": "close", "socket": old, "client": client, "how": "close", "returns": True}),
                (again, {"event": "open", "socket": new, "client": client}),
            ]
            sockets[client] = new
            workers[rng.choice(others)].append(client)
        for t, event in sorted(events, key=lambda pair: pair[0]):
            yield {"t": t, **event}


SYNTHETIC: Mapping[str, Callable[[], Iterator[dict[str, Any]]]] = {
    "alb-cut.jsonl": alb_cut,
    "rolling-restart.jsonl": rolling_restart,
}
"""The traces by file name."""


def main(folder: str) -> None:
    """Write them all."""
    for name, lines in SYNTHETIC.items():
        Path(folder, name).write_text("".join(json.dumps(line) + "\n" for line in lines()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
