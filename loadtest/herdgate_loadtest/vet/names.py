"""What a key in the wild means: which of our settings, in which unit.

Rules: a key is looked up as it is written, then in snake case with its unit taken off. Durations become milliseconds.
Keys that say nothing about coming back are known too, so that they are no fault.
"""

import difflib
import re
from dataclasses import dataclass
from typing import Any

__all__ = ["SETTINGS", "Meaning", "lacks_unit", "meaning_of", "nearest"]

_DURATIONS = frozenset(
    {
        *("initial_interval", "max_interval", "min_delay", "offset", "first_window", "reset_after", "hint_jitter"),
        *("hint_cap", "align", "schedule_spread", "delays"),
    }
)
"""Settings in milliseconds, without the `_ms` that ends their names."""

_PLAIN = (
    *("client_id", "preset", "strategy", "use_jitter", "jitter", "multiplier", "max_retries"),
    *(
        "jitter_from_attempt",
        "first_at_once",
        "jitter_before_cap",
        "cap_before_power",
        "language",
        "reset_on",
        "honour_retry_after",
        "browser",
        "schedule",
    ),
    *(
        "triggers",
        "shared_backoff",
        "retry_close_codes",
        "fatal_close_codes",
        "retry_statuses",
        "fatal_statuses",
        "stages",
        "layers",
    ),
)
SETTINGS = frozenset(_PLAIN) | {f"{name}_ms" for name in _DURATIONS}
"""Every setting under our name."""

_UNITS_MS = {"ms": 1.0, "millis": 1.0, "s": 1e3, "sec": 1e3, "seconds": 1e3}

_LIBRARIES = {
    # socket.io
    "reconnectionDelay": ("initial_interval_ms", 1.0),
    "reconnectionDelayMax": ("max_interval_ms", 1.0),
    "randomizationFactor": ("jitter", 1.0),
    "reconnectionAttempts": ("max_retries", 1.0),
    # phoenix
    "reconnectAfterMs": ("delays_ms", 1.0),
    # reconnecting-websocket, of P. Ladaria and of J. Walnes
    "minReconnectionDelay": ("initial_interval_ms", 1.0),
    "maxReconnectionDelay": ("max_interval_ms", 1.0),
    "reconnectionDelayGrowFactor": ("multiplier", 1.0),
    "minUptime": ("reset_after_ms", 1.0),
    "reconnectInterval": ("initial_interval_ms", 1.0),
    "maxReconnectInterval": ("max_interval_ms", 1.0),
    "reconnectDecay": ("multiplier", 1.0),
    "maxReconnectAttempts": ("max_retries", 1.0),
    # centrifuge
    "minReconnectDelay": ("initial_interval_ms", 1.0),
    "maxReconnectDelay": ("max_interval_ms", 1.0),
    # y-websocket
    "maxBackoffTime": ("max_interval_ms", 1.0),
    # websockets, whose variables are in seconds
    "websockets_backoff_initial_delay": ("first_window_ms", 1e3),
    "websockets_backoff_min_delay": ("initial_interval_ms", 1e3),
    "websockets_backoff_max_delay": ("max_interval_ms", 1e3),
    "websockets_backoff_factor": ("multiplier", 1.0),
}
_OTHER_WORDS = {
    "initial_delay": "initial_interval",
    "base_delay": "initial_interval",
    "max_delay": "max_interval",
    "cap": "max_interval",
    "factor": "multiplier",
    "backoff_factor": "multiplier",
    "backoff_multiplier": "multiplier",
    "max_attempts": "max_retries",
    "honor_retry_after": "honour_retry_after",
    "respect_retry_after": "honour_retry_after",
}
_SILENT = frozenset(
    {
        *("url", "uri", "path", "protocols", "transports", "debug", "timeout", "timeout_interval", "connect_timeout"),
        *("connection_timeout", "rejoin_after", "heartbeat_interval", "ping_interval", "ping_timeout", "reconnection"),
        *("max_enqueued_messages", "start_closed", "automatic_open", "binary_type", "auto_connect", "force_new"),
        *("multiplex", "resync_interval", "max_server_ping_delay", "heartbeat_timeout"),
    }
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """`setting`: ours, None if the key says nothing about coming back; `scale`: values times this are in our unit."""

    setting: str | None
    scale: float = 1.0

    def of(self, value: Any) -> Any:
        """The value in our unit, or each value of a list; what is no number is left for validation to judge."""
        return [self._scaled(each) for each in value] if isinstance(value, list) else self._scaled(value)

    def _scaled(self, value: Any) -> Any:
        if self.scale == 1 or isinstance(value, bool) or not isinstance(value, (int, float)):
            return value
        try:
            return float(value) * self.scale
        except OverflowError:
            return value


def meaning_of(key: str) -> Meaning | None:
    """What `key` means; None: nobody knows."""
    if key in _LIBRARIES:
        return Meaning(*_LIBRARIES[key])
    snake = _snake(key)
    if snake in _LIBRARIES:
        return Meaning(*_LIBRARIES[snake])
    stem, scale = _without_unit(snake)
    name = _OTHER_WORDS.get(stem, stem)
    if name in _DURATIONS:
        return Meaning(f"{name}_ms", scale) if scale else None
    if snake in _SILENT or stem in _SILENT:
        return Meaning(None)
    name = _OTHER_WORDS.get(snake, snake)
    return Meaning(name) if name in _PLAIN else None


def lacks_unit(key: str) -> bool:
    """Whether `key` would be a duration if its name ended in a unit."""
    snake = _snake(key)
    return _OTHER_WORDS.get(snake, snake) in _DURATIONS


def nearest(key: str) -> str:
    """The name that `key` looks like, or an empty text."""
    known = [*sorted(SETTINGS), *_LIBRARIES]
    found = [match for name in (_snake(key), key) for match in difflib.get_close_matches(name, known, n=1)]
    return max(found, key=lambda name: difflib.SequenceMatcher(None, name, key).ratio(), default="")


def _snake(key: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).replace("-", "_").lower()


def _without_unit(snake: str) -> tuple[str, float]:
    """The name without its unit, and the unit in milliseconds; 0: it has none."""
    stem, _, unit = snake.rpartition("_")
    return (stem, _UNITS_MS[unit]) if unit in _UNITS_MS else (snake, 0.0)
