"""A server that answers every connection with the bytes it is told, so that wrong answers can be counted."""

import base64
import hashlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

__all__ = ["answering", "upgraded"]

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY = re.compile(rb"Sec-WebSocket-Key: (\S+)\r\n")


def upgraded(request: bytes) -> bytes:
    """The right 101 to a handshake."""
    found = _KEY.search(request)
    assert found
    accept = base64.b64encode(hashlib.sha1(found[1] + _GUID).digest())
    head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    return head + b"Sec-WebSocket-Accept: %b\r\n\r\n" % accept


@contextmanager
def answering(answer: Callable[[bytes], bytes], echo: Callable[[bytes], bytes] | None = None) -> Iterator[int]:
    """Serve a port of 127.0.0.1 while the block runs.

    Args:
        answer: the answer to a request; this side of the connection ends then, unless there is an `echo`.
        echo: what comes back for each chunk of bytes after it.
    """
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        thread = threading.Thread(target=_serve, args=(listener, answer, echo), daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def _serve(listener: socket.socket, answer: Callable[[bytes], bytes], echo: Callable[[bytes], bytes] | None) -> None:
    with suppress(OSError):  # shut down
        while True:
            client, _ = listener.accept()
            with client, suppress(OSError):
                client.settimeout(5)
                client.sendall(answer(client.recv(4096)))
                if echo is None:
                    client.shutdown(socket.SHUT_WR)
                while data := client.recv(1 << 20):  # what is closed with bytes unread is reset
                    if echo:
                        client.sendall(echo(data))
