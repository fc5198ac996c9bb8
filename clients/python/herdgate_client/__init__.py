"""A reconnecting WebSocket client that obeys: it comes back when it is told to, ticket in hand, and never all at once.

async for ws in herdgate_client.connect("wss://chat.example/ws"):
    with contextlib.suppress(ConnectionClosed):
        async for message in ws:
            ...
"""

from herdgate_client.errors import (
    ClosedError,
    ConfigurationError,
    GaveUpError,
    HerdgateClientError,
    RefusedError,
    UntrustedError,
)
from herdgate_client.reconnect import connect

__all__ = [
    "ClosedError",
    "ConfigurationError",
    "GaveUpError",
    "HerdgateClientError",
    "RefusedError",
    "UntrustedError",
    "connect",
]
