"""The worker behind the gateways of a compliance run: uvicorn with `websockets-sansio`, which echoes every message.

    python -m compliance.echo_worker FD     # a TCP socket that listens, inherited

It takes messages up to 32 MiB, and agrees to permessage-deflate. A plain request is answered with 204.
"""

import socket
import sys

from uvicorn import Config, Server

from herdgate.asgi import Receive, Scope, Send

__all__ = ["MAX_MESSAGE_BYTES", "app"]

MAX_MESSAGE_BYTES = 32 << 20
"""The longest message; cases of section 9 send 16 MiB."""


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """The app."""
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 204})
        await send({"type": "http.response.body"})
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        kind = "bytes" if message.get("text") is None else "text"
        await send({"type": "websocket.send", kind: message[kind]})


def _serve(descriptor: int) -> None:
    config = Config(
        app,
        ws="websockets-sansio",
        ws_max_size=MAX_MESSAGE_BYTES,
        ws_per_message_deflate=True,
        ws_ping_interval=None,
        lifespan="off",
        log_level="critical",
        timeout_graceful_shutdown=1,
    )
    with socket.socket(fileno=descriptor) as listener:
        Server(config).run([listener])


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
