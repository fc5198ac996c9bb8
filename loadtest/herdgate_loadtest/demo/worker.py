"""A worker of the demo: the chat app in a process of its own, which knows nothing of the gateway.

Run as `python -m herdgate_loadtest.demo.worker FD`, it serves on the listening socket it was handed.
"""

import gc
import socket
import sys

from herdgate_loadtest.demo.process import Process, listening

__all__ = ["admissions", "start_worker"]

GC_THRESHOLDS = 50_000, 10, 1_000
"""With Python's own, a worker that loses thousands of sockets at once spends most of a second looking at the others."""


def start_worker(number: int) -> Process:
    """Start worker `number`."""
    with listening() as listener:
        arguments = ["herdgate_loadtest.demo.worker", str(listener.fileno())]
        return Process(f"worker {number}", arguments, [listener])


async def admissions(worker: Process, since: float) -> list[float]:
    """The moments of its admissions since `since`, monotonic seconds.

    Raises:
        CrowdError: it does not answer.
    """
    moments: list[float] = (await worker.ask(f"/stats?since={since!r}"))["admitted_at"]
    return moments


def main() -> None:
    """Serve until told to stop."""
    import uvicorn  # by the worker only, and not by who starts it

    from herdgate_loadtest.demo.chat import build

    config = uvicorn.Config(
        build(),
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        backlog=4096,
        timeout_graceful_shutdown=1,
    )
    gc.set_threshold(*GC_THRESHOLDS)
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
