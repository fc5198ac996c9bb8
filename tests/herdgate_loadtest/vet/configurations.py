"""Random settings of clients, for rules and simulation to agree on, and for nothing to crash on.

What is drawn: the settings that most clients have (strategy or jitter, initial, multiplier, cap, retries) with a
chance of 0.7 each, all the others with 0.06. Times are log-uniform over two to four decades around what people use;
switches are fair coins; lists of codes are drawn code by code. Nothing is drawn because of a threshold of rules or
bounds.
"""

import math
import random
from typing import Any

__all__ = ["configuration"]

COMMON, RARE = 0.7, 0.06
CODES = [1001, 1002, 1003, 1006, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014, 4000]
STATUSES = [400, 401, 403, 404, 408, 410, 425, 429, 500, 502, 503, 504]


def configuration(rng: random.Random) -> dict[str, Any]:
    """One client's settings; valid, and not empty."""
    settings: dict[str, Any] = {"client_id": f"c{rng.randrange(10**6)}"}
    draw = _Draw(rng, settings)
    draw.one_of(COMMON, rng.choice([_strategies, _switches, _shares]))
    draw.put(COMMON, "initial_interval_ms", _log(rng, 50, 30_000))
    draw.put(COMMON, "multiplier", rng.choice([1.0, 1.5, 2.0, 3.0, round(rng.uniform(1, 4), 2)]))
    draw.put(COMMON, "max_interval_ms", rng.choice([None, *[_log(rng, 1_000, 600_000) for _ in range(9)]]))
    draw.put(COMMON, "max_retries", rng.choice([None, rng.randrange(1, 10), int(_log(rng, 1, 10_000))]))
    draw.put(RARE, "min_delay_ms", rng.choice([0.0, _log(rng, 10, 5_000)]))
    listed = RARE * (settings.get("strategy") != "decorrelated")
    draw.put(listed, "delays_ms", sorted(_log(rng, 10, 60_000) for _ in range(rng.randrange(1, 9))))
    draw.put(RARE, "offset_ms", _log(rng, 10, 5_000))
    draw.put(RARE, "first_at_once", rng.random() < 0.5)
    draw.put(RARE, "first_window_ms", _log(rng, 100, 60_000))
    draw.put(RARE, "jitter_from_attempt", rng.randrange(1, 4))
    draw.put(RARE, "jitter_before_cap", rng.random() < 0.5)
    draw.put(RARE, "cap_before_power", rng.random() < 0.5)
    draw.put(RARE, "language", rng.choice(["go", "java", "js", "python"]))
    draw.one_of(RARE, _resets)
    draw.put(RARE * (settings.get("strategy") != "hints"), "honour_retry_after", rng.random() < 0.5)
    draw.put(RARE, "hint_jitter_ms", _log(rng, 10, 5_000))
    draw.put(RARE, "hint_cap_ms", rng.choice([None, _log(rng, 1_000, 3_600_000)]))
    draw.put(RARE, "browser", rng.random() < 0.5)
    draw.put(RARE / 2, "schedule", rng.choice(["0 * * * *", "@hourly", "*/5 * * * *"]))
    draw.put(RARE / 2, "align_ms", _log(rng, 1_000, 3_600_000))
    draw.put(RARE, "schedule_spread_ms", _log(rng, 10, 600_000))
    draw.put(
        RARE, "triggers", rng.sample(["close", "send", {"name": "watchdog", "every_ms": _log(rng, 500, 60_000)}], 2)
    )
    draw.put(RARE, "shared_backoff", rng.random() < 0.5)
    draw.put(RARE, "fatal_close_codes", _some(rng, CODES))
    draw.put(RARE / 2, "retry_close_codes", rng.choice(["all", _some(rng, CODES)]))
    draw.put(RARE, "fatal_statuses", _some(rng, STATUSES))
    draw.put(RARE / 2, "retry_statuses", rng.choice(["all", _some(rng, STATUSES)]))
    draw.put(RARE, "stages", [{"name": "probe", "backoff": rng.random() < 0.8}, {"name": "ws", "timeout_ms": 5_000}])
    draw.put(RARE, "layers", [rng.randrange(1, 5) for _ in range(rng.randrange(1, 4))])
    return settings


class _Draw:
    def __init__(self, rng: random.Random, settings: dict[str, Any]) -> None:
        self.rng = rng
        self.settings = settings

    def put(self, chance: float, key: str, value: Any) -> None:
        if self.rng.random() < chance:
            self.settings[key] = value

    def one_of(self, chance: float, make: Any) -> None:
        if self.rng.random() < chance:
            self.settings.update(make(self.rng))


def _strategies(rng: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"strategy": rng.choice(["none", "full", "equal", "decorrelated", "hints", "proportional"])}
    if found["strategy"] == "proportional":
        found["jitter"] = round(rng.random(), 2)
    return found


def _switches(rng: random.Random) -> dict[str, Any]:
    return {"use_jitter": rng.random() < 0.5}


def _shares(rng: random.Random) -> dict[str, Any]:
    return {"jitter": rng.choice([0.0, round(rng.random(), 2)])}


def _resets(rng: random.Random) -> dict[str, Any]:
    on = rng.choice(["open", "stable", "message", "never"])
    return {"reset_on": on, **({"reset_after_ms": _log(rng, 500, 120_000)} if on == "stable" else {})}


def _log(rng: random.Random, least: float, most: float) -> float:
    return round(math.exp(rng.uniform(math.log(least), math.log(most))), 1)


def _some(rng: random.Random, codes: list[int]) -> list[int]:
    return [code for code in codes if rng.random() < 0.5]
