"""How clients come back: what each kind does after it was refused.

Rules: pure; the random source is an argument; a behaviour has no state, so one object serves a whole crowd.

| name | after a denial |
|---|---|
| `obey` | waits as told, plus uniform(0.01, 0.3) s, and shows the ticket |
| `prompt` | waits as told, to the millisecond, and shows the ticket |
| `hint` | waits as told, plus uniform(0.01, 0.3) s, shows no ticket |
| `jitter` | full jitter, max(0.1, uniform(0, min(30, 2 ** tries))) s, whatever it was told; no ticket |
| `fixed` | every second, `fixed:15` every 15 s, whatever it was told; no ticket |
| `immediate` | at once, which is 50 ms here: even a busy loop in a browser takes that long; no ticket |

`obey`, `prompt` and `hint` fall back to full jitter where they were told no time (a refused connection, a foreign 403).
Full jitter is that of M. Brooker, "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015), base 1 s, cap 30 s.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from herdgate_loadtest.errors import ConfigurationError

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from herdgate_loadtest.engine.answer import Denial

__all__ = [
    "BEHAVIOURS",
    "Behaviour",
    "Comeback",
    "Fixed",
    "Hint",
    "Immediate",
    "Jitter",
    "Obey",
    "Prompt",
    "parse_behaviour",
    "parse_clients",
]

_JITTER_CAP_S = 30.0
_JITTER_FLOOR_S = 0.1
_LATENESS_S = (0.01, 0.3)  # timers, wake-ups and the network of a client that means to be punctual
_IMMEDIATE_S = 0.05
_LONGEST_FIXED_S = 3600.0


class Comeback(NamedTuple):
    """What a refused client does next: come back after `delay_s` seconds and show `ticket`, if any."""

    delay_s: float
    ticket: str | None = None


class Behaviour(Protocol):
    """A kind of client."""

    @property
    def name(self) -> str:
        """What `parse_behaviour` reads."""

    def after(self, denial: "Denial", tries: int, rng: "random.Random") -> Comeback:
        """Decide what to do after `denial`, the answer to try number `tries` (1: the first) of this absence."""


def _jitter_s(tries: int, rng: "random.Random") -> float:
    return max(_JITTER_FLOOR_S, rng.uniform(0, min(_JITTER_CAP_S, 2.0 ** min(tries, 6))))


def _told_s(denial: "Denial", tries: int, rng: "random.Random") -> float:
    if denial.delay_s is None:
        return _jitter_s(tries, rng)
    return denial.delay_s + rng.uniform(*_LATENESS_S)


@dataclass(frozen=True, slots=True)
class Obey:
    """Honours the delay and shows the ticket."""

    name: str = "obey"

    def after(self, denial: "Denial", tries: int, rng: "random.Random") -> Comeback:
        """Come when told, ticket in hand."""
        return Comeback(_told_s(denial, tries, rng), denial.ticket)


@dataclass(frozen=True, slots=True)
class Prompt:
    """As `Obey`, but never late: what it waits is what it was told, so that the server's part of a wait can be seen."""

    name: str = "prompt"

    def after(self, denial: "Denial", tries: int, rng: "random.Random") -> Comeback:
        """Come at the moment that was told, ticket in hand."""
        delay_s = _jitter_s(tries, rng) if denial.delay_s is None else denial.delay_s
        return Comeback(delay_s, denial.ticket)


@dataclass(frozen=True, slots=True)
class Hint:
    """Honours the delay, as any client that reads Retry-After; knows no tickets."""

    name: str = "hint"

    def after(self, denial: "Denial", tries: int, rng: "random.Random") -> Comeback:
        """Come when told, as a newcomer."""
        return Comeback(_told_s(denial, tries, rng))


@dataclass(frozen=True, slots=True)
class Jitter:
    """Full jitter; ignores what it is told."""

    name: str = "jitter"

    def after(self, denial: "Denial", tries: int, rng: "random.Random") -> Comeback:
        """Come at a random time within the backoff."""
        return Comeback(_jitter_s(tries, rng))


@dataclass(frozen=True, slots=True)
class Fixed:
    """Retries every `every_s` seconds; ignores what it is told."""

    every_s: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.every_s) and 0 < self.every_s <= _LONGEST_FIXED_S):
            raise ConfigurationError("fixed", self.every_s, f"write seconds, more than 0, at most {_LONGEST_FIXED_S:g}")

    @property
    def name(self) -> str:
        """`fixed`, or `fixed:15` where it is not one second."""
        return "fixed" if self.every_s == 1 else f"fixed:{self.every_s:g}"

    def after(self, denial: "Denial", tries: int, rng: "random.Random") -> Comeback:
        """Come again in `every_s`."""
        return Comeback(self.every_s)


@dataclass(frozen=True, slots=True)
class Immediate:
    """Retries at once (50 ms); ignores what it is told."""

    name: str = "immediate"

    def after(self, denial: "Denial", tries: int, rng: "random.Random") -> Comeback:
        """Come again."""
        return Comeback(_IMMEDIATE_S)


BEHAVIOURS: "Mapping[str, Callable[[], Behaviour]]" = {
    "obey": Obey,
    "prompt": Prompt,
    "hint": Hint,
    "jitter": Jitter,
    "fixed": Fixed,
    "immediate": Immediate,
}
"""Every kind of client by name."""


def parse_behaviour(text: str) -> Behaviour:
    """Read a behaviour's name; `fixed` takes its interval in seconds after a colon.

    Raises:
        ConfigurationError: there is no such behaviour, or its interval is not a number of seconds.
    """
    name, colon, interval = text.partition(":")
    if name not in BEHAVIOURS or (colon and name != "fixed"):
        raise ConfigurationError("behaviour", text, f"write one of {', '.join(BEHAVIOURS)}, or fixed:SECONDS")
    if not colon:
        return BEHAVIOURS[name]()
    try:
        every_s = float(interval)
    except ValueError:
        raise ConfigurationError("behaviour", text, "write the interval in seconds, as in fixed:15") from None
    return Fixed(every_s)


def parse_clients(text: str) -> dict[str, int]:
    """Read a crowd: `10000` (all of them obey) or `obey=9000,fixed:15=1000`.

    Raises:
        ConfigurationError: it is neither.
    """
    if text.isdecimal():
        return {"obey": int(text)}
    crowd: dict[str, int] = {}
    for part in text.split(","):
        name, _, count = part.partition("=")
        if not count.isdecimal():
            raise ConfigurationError("clients", text, "write a number, or pairs as in obey=900,fixed:15=100")
        name = parse_behaviour(name.strip()).name
        crowd[name] = crowd.get(name, 0) + int(count)
    return crowd
