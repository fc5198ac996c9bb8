"""The engine against real servers: what uvicorn's WebSocket implementations put on the wire is understood."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from herdgate_loadtest.engine import Crowd, CrowdConfig
from tests.herdgate_loadtest.engine.servers import eventually

BODY = b'{"error":"come later","reason":"rate","retry_ms":100,"ticket":"1.abc"}'
HEADERS = [
    (b"content-length", str(len(BODY)).encode()),
    (b"herdgate-retry-ms", b"100"),
    (b"herdgate-ticket", b"1.abc"),
]
REASON = '{"retry_ms":100,"ticket":"1.abc"}'


class App:
    """Turns the first arrivals away, each path in its own way; admits whoever shows the ticket."""

    def __init__(self) -> None:
        self.tickets: list[str] = []
        self.open = 0

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        assert scope["type"] == "websocket"
        await receive()
        ticket = dict(scope["headers"]).get(b"herdgate-ticket")
        if ticket is None:
            await getattr(self, scope["path"].strip("/"))(send)
        else:
            self.tickets.append(ticket.decode())
            await send({"type": "websocket.accept"})
            self.open += 1
        while (await receive())["type"] != "websocket.disconnect":
            continue
        self.open -= ticket is not None

    async def response(self, send: Any) -> None:
        await send({"type": "websocket.http.response.start", "status": 429, "headers": HEADERS})
        await send({"type": "websocket.http.response.body", "body": BODY})

    async def close(self, send: Any) -> None:
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": 1013, "reason": REASON})


@contextmanager
def uvicorn_serving(app: App, ws: str) -> Iterator[str]:
    config = uvicorn.Config(app, ws=ws, lifespan="off", log_level="critical", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield f"ws://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


@pytest.mark.parametrize("ws", ["websockets-sansio", "wsproto"])
@pytest.mark.parametrize(("path", "answer"), [("response", "429 rate"), ("close", "close 1013")])
async def test_denial_of_a_real_server_is_understood_and_obeyed(ws: str, path: str, answer: str) -> None:
    app = App()
    with uvicorn_serving(app, ws) as url:
        async with Crowd(CrowdConfig(urls=(f"{url}/{path}",), clients={"obey": 20})) as crowd:
            await crowd.bring_up(deadline_s=10)
            assert crowd.answers() == {answer: 20, "101": 20}
            assert app.tickets == ["1.abc"] * 20
            record = crowd.record(rate=20, burst=1)
            assert (record.denied, record.failed) == (20, 0)
            assert record.behaviours["obey"].wait_p50_s < 2
        await eventually(lambda: app.open == 0)
