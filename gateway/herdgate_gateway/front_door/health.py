"""A plain health check on the port of clients: known by its bytes, and answered with the crowd it came in.

Whatever else asks for that path, as on a connection that is to stay open, is left to uvicorn and the app.
"""

import re
from functools import lru_cache

from herdgate_gateway.front_door.answers import http_answer

__all__ = ["HEALTHY", "is_health_check"]

HEALTHY = http_answer(200, [(b"content-type", b"text/plain"), (b"cache-control", b"no-store")], b"ok\n")

_OTHER_FIELDS = rb"upgrade|content-length|transfer-encoding|expect|connection: *+(?!close\r)"


def is_health_check(data: bytes, path: str | None) -> bool:
    """True for one whole request of this path, without a body, on a connection that ends with it.

    Args:
        data: all that a client has sent.
        path: None: there is no such path.
    """
    if path is None or _pattern(path).fullmatch(data) is None:
        return False
    return b" HTTP/1.0\r\n" in data or b"\r\nconnection: close\r\n" in data.lower()


@lru_cache(maxsize=8)
def _pattern(path: str) -> re.Pattern[bytes]:
    line, field = rb"GET %b HTTP/1\.[01]\r\n", rb"(?:(?!(?i:%b))[!-9;-~]++:[ -~]*+\r\n)*+\r\n"
    return re.compile(line % re.escape(path.encode()) + field % _OTHER_FIELDS)
