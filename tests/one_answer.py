"""A server that gives one answer to whatever it is asked, for clients that expect another program there."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

__all__ = ["answering_once"]


@contextmanager
def answering_once(body: bytes) -> Iterator[str]:
    """Answer one GET with 200 and these bytes, in a thread; its URL."""

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        server.timeout = 20
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            thread.join()
