"""What well-known libraries do when nobody sets anything, under our names. They count as said.

Delays as in the sources of socket.io-client (`contrib/backo2.ts`), phoenix.js (`socket.js`), reconnecting-websocket of
P. Ladaria, centrifuge-js (`backoff`), y-websocket, and Python's `websockets` 17 (`client.py`, `asyncio/client.py`).
Not checked against sources: reconnecting-websocket 1 of J. Walnes, when socket.io, phoenix and centrifuge reset, and
that none of those for browsers takes a hint.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["PRESETS"]

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "socket.io": {
        "strategy": "proportional",
        "jitter": 0.5,
        "initial_interval_ms": 1000,
        "multiplier": 2,
        "max_interval_ms": 5000,
        "max_retries": None,
        "jitter_before_cap": True,
        "cap_before_power": False,
        "language": "js",
        "reset_on": "open",
        "honour_retry_after": False,
        "browser": True,
    },
    "phoenix": {
        "strategy": "none",
        "delays_ms": [10, 50, 100, 150, 200, 250, 500, 1000, 2000, 5000],
        "max_retries": None,
        "reset_on": "open",
        "honour_retry_after": False,
        "browser": True,
    },
    # Each page draws its first interval once, 1 s + uniform(0, 4 s): here it is drawn anew for each attempt.
    "reconnecting-websocket": {
        "strategy": "proportional",
        "jitter": 0.6667,
        "initial_interval_ms": 3000,
        "multiplier": 1.3,
        "max_interval_ms": 10_000,
        "max_retries": None,
        "jitter_before_cap": True,
        "reset_on": "stable",
        "reset_after_ms": 5000,
        "honour_retry_after": False,
        "browser": True,
    },
    "reconnecting-websocket-1": {
        "strategy": "none",
        "initial_interval_ms": 1000,
        "multiplier": 1.5,
        "max_interval_ms": 30_000,
        "max_retries": None,
        "reset_on": "open",
        "honour_retry_after": False,
        "browser": True,
    },
    "centrifuge": {
        "strategy": "full",
        "initial_interval_ms": 500,
        "offset_ms": 500,
        "multiplier": 2,
        "max_interval_ms": 20_000,
        "min_delay_ms": 500,
        "max_retries": None,
        "reset_on": "message",
        "honour_retry_after": False,
        "browser": True,
    },
    "y-websocket": {
        "strategy": "none",
        "initial_interval_ms": 100,
        "multiplier": 2,
        "max_interval_ms": 2500,
        "max_retries": None,
        "reset_on": "open",
        "honour_retry_after": False,
        "browser": True,
    },
    "websockets": {
        "strategy": "none",
        "first_at_once": True,  # `async for`: only what failed is followed by a delay
        "first_window_ms": 5000,
        "min_delay_ms": 0,
        "initial_interval_ms": 3100,
        "multiplier": 1.618,
        "max_interval_ms": 90_000,
        "max_retries": None,
        "reset_on": "open",
        "honour_retry_after": False,
        "retry_statuses": [500, 502, 503, 504],
    },
}
"""Settings by name of the library."""
