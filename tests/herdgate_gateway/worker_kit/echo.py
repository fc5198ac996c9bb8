"""An app that workers of tests serve: it echoes, and checkpoints the numbers that it is sent."""

from herdgate.asgi import Receive, Scope, Send

__all__ = ["app"]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve one socket."""
    if scope["type"] == "lifespan":
        for what in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{what}.complete"})
        return
    if scope["type"] != "websocket":
        return
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        if message["text"].isdigit():
            await scope["state"]["checkpoint"](int(message["text"]))
        await send({"type": "websocket.send", "text": message["text"]})
