"""A real uvicorn in a thread of the test process, on sockets that the test chooses: for apps that a test looks into."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from uvicorn import Config, Server

from herdgate.asgi import ASGIApp
from tests.servers import poll

__all__ = ["free_listener", "serving"]

END_S = 10.0


def free_listener(family: int = socket.AF_INET) -> socket.socket:
    """A TCP socket bound to a free port of the loopback address."""
    listener = socket.socket(family)
    listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
    return listener


@contextmanager
def serving(app: ASGIApp, *listeners: socket.socket, **options: Any) -> Iterator[int]:
    """Serve while the block runs; gives the port of the first listener (0 for a Unix socket).

    Args:
        app: what to serve.
        listeners: None: one on a free port. They are closed at the end.
        options: of `uvicorn.Config`.
    """
    sockets = list(listeners) or [free_listener()]
    address = sockets[0].getsockname()
    settings = {"proxy_headers": False, "log_level": "warning", "lifespan": "off", "timeout_graceful_shutdown": 1}
    server = Server(Config(app, **{**settings, **options}))
    thread = threading.Thread(target=server.run, args=(sockets,), daemon=True)
    thread.start()
    try:
        poll(lambda: server.started or not thread.is_alive(), "the server starts")
        assert server.started, "the server did not start"
        yield address[1] if isinstance(address, tuple) else 0
    finally:
        server.should_exit = True
        thread.join(END_S)
        for listener in sockets:
            listener.close()
    assert not thread.is_alive(), "the server did not end"
