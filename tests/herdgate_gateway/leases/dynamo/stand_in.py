"""A stand-in for DynamoDB that gives the replies it is told to, for what an emulator never does."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Reply", "StandIn", "refusal", "stand_in"]


@dataclass(frozen=True)
class Reply:
    """Status and body; a body that is no text goes out as JSON."""

    status: int
    body: Any


def refusal(code: str, message: str = "told", status: int = 400) -> Reply:
    """An error as DynamoDB tells it."""
    return Reply(status, {"__type": f"com.amazonaws.dynamodb.v20120810#{code}", "message": message})


@dataclass
class StandIn:
    """Where it is, and what it was asked: operation and request, in order."""

    url: str = ""
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


@contextmanager
def stand_in(reply: Callable[[str, dict[str, Any]], Reply]) -> Iterator[StandIn]:
    """Serve what `reply` says to an operation and its request."""
    told = StandIn()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            operation = self.headers["X-Amz-Target"].partition(".")[2]
            told.asked.append((operation, request))
            given = reply(operation, request)
            body = (given.body if isinstance(given.body, str) else json.dumps(given.body)).encode()
            self.send_response(given.status)
            self.send_header("Content-Type", "application/x-amz-json-1.0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    with Server(("127.0.0.1", 0), Handler) as server:
        told.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield told
        finally:
            server.shutdown()
            thread.join(5)
