"""One small app for each framework, guarded the way its users write it.

Each module has `make(limits, **middleware) -> (app, gate)`, an app with these endpoints:

    GET /          a page, not guarded
    GET /started   what the start of the app left behind, not guarded
    GET /events    server-sent events until the client leaves, guarded
    WS  /ws        echo, guarded
"""

from typing import Any

from herdgate import Gate
from tests.apps import SECRET, read_limits

__all__ = ["HTTP_PATHS", "TICK_S", "WEBSOCKET_PATHS", "make_gate"]

HTTP_PATHS = ["/events"]
WEBSOCKET_PATHS = ["/ws"]
TICK_S = 0.01


def make_gate(limits: dict[str, Any]) -> Gate:
    """The gate of an app under test; `processes` may stand among the limits."""
    processes = limits.get("processes", 1)
    whole = {name: limit for name, limit in limits.items() if name != "processes"}
    return Gate(read_limits(whole), secrets=[SECRET], processes=processes)
