"""Serves an ASGI app in this process, on the listening socket it was handed, until told to stop."""

import gc
import socket

from herdgate.asgi import ASGIApp

__all__ = ["serve"]


def serve(app: ASGIApp, descriptor: int) -> None:
    """Serve `app`; `descriptor` is the listening socket's."""
    import uvicorn  # by the process that serves only, and not by who starts it

    gc.freeze()  # as `herdgate serve` does: a full collection over thousands of sockets stops the process
    gc.set_threshold(5_000, 10, 1_000)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        backlog=4096,
        ws_ping_interval=None,  # a crowd that is late with its pongs is not what is measured
        timeout_graceful_shutdown=1,
    )
    with socket.socket(fileno=descriptor) as listener:
        uvicorn.Server(config).run(sockets=[listener])
