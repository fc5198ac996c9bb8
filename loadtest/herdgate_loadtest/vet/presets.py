"""What well-known libraries do when nobody sets anything, under our names. They count as said.

Read in the sources of the versions that `docs/vet.md` lists. None of them clamps a short delay. Close codes of an
application's own, 3000 to 4999, are left out: centrifuge and y-websocket end at some. A page cannot tell the answers to
a handshake apart, so it tries again after each.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["PRESETS"]

_PAGE: Mapping[str, Any] = {
    "max_retries": None,
    "min_delay_ms": 0,
    "honour_retry_after": False,
    "browser": True,
    "retry_close_codes": "all",
    "retry_statuses": "all",
}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "socket.io": {
        **_PAGE,
        "strategy": "proportional",
        "jitter": 0.5,
        "initial_interval_ms": 1000,
        "multiplier": 2,
        "max_interval_ms": 5000,
        "jitter_before_cap": True,
        "cap_before_power": False,
        "language": "js",
        "reset_on": "open",
    },
    "phoenix": {
        **_PAGE,
        "strategy": "none",
        "delays_ms": [10, 50, 100, 150, 200, 250, 500, 1000, 2000, 5000],
        "reset_on": "open",
    },
    # Each page draws its first interval once, 1 s + uniform(0, 4 s): here it is drawn anew for each attempt.
    "reconnecting-websocket": {
        **_PAGE,
        "strategy": "proportional",
        "jitter": 0.6667,
        "initial_interval_ms": 3000,
        "multiplier": 1.3,
        "max_interval_ms": 10_000,
        "jitter_before_cap": True,
        "reset_on": "stable",
        "reset_after_ms": 5000,
    },
    "reconnecting-websocket-1": {
        **_PAGE,
        "strategy": "none",
        "initial_interval_ms": 1000,
        "multiplier": 1.5,
        "max_interval_ms": 30_000,
        "reset_on": "open",
    },
    "centrifuge": {
        **_PAGE,
        "strategy": "full",
        "initial_interval_ms": 500,
        "offset_ms": 500,
        "multiplier": 2,
        "max_interval_ms": 20_000,
        "reset_on": "message",
        "fatal_close_codes": [1009],
    },
    # Its backoff ends with a document in sync, which is a message.
    "y-websocket": {
        **_PAGE,
        "strategy": "none",
        "initial_interval_ms": 200,
        "multiplier": 2,
        "max_interval_ms": 2500,
        "reset_on": "message",
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
        "retry_close_codes": "all",
        "retry_statuses": [500, 502, 503, 504],
    },
}
"""Settings by name of the library."""
