"""What a client's settings say, as numbers: seconds, counts, codes. Frozen and pure; whatever was not said is assumed.

Rules: a default here is what a careful client does. `said` names the settings that were given, by file or preset,
under the names of `Settings`; rules use it to tell a fault from a gap, the simulation does not look at it.
"""

import math
from dataclasses import dataclass, field
from typing import Literal

__all__ = [
    "FATAL_CLOSE_CODES",
    "FATAL_STATUSES",
    "Client",
    "Language",
    "Policy",
    "ResetOn",
    "Stage",
    "Strategy",
    "Trigger",
]

Strategy = Literal["none", "full", "equal", "proportional", "decorrelated"]
ResetOn = Literal["open", "stable", "message", "never"]
Language = Literal["go", "java", "js", "python"]

FATAL_CLOSE_CODES = frozenset({1002, 1003, 1007, 1008, 1009, 1010})
"""What no second try mends (RFC 6455, section 7.4.1)."""
FATAL_STATUSES = frozenset({400, 401, 403, 404, 405, 410, 426})
"""The same, of a handshake's answer (RFC 9110, section 15.5)."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Which codes are tried again: those of `retried` (None: all) that are not in `fatal`."""

    fatal: frozenset[int]
    retried: frozenset[int] | None = None

    def retries(self, code: int) -> bool:
        """Whether `code` is followed by another try."""
        return code not in self.fatal and (self.retried is None or code in self.retried)


@dataclass(frozen=True, slots=True)
class Trigger:
    """Something that dials: with the backoff, or every `every_s` seconds."""

    name: str
    every_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of an attempt (probe, handshake, login). `backoff`: whether its failure is followed by the backoff."""

    name: str
    backoff: bool = True
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """One client of the fleet.

    Attributes:
        jitter: of the strategy `proportional`: a delay x becomes uniform in [(1 - jitter) x, (1 + jitter) x].
        cap_s: longest delay; infinite: none.
        delays_s: delays one by one, the last one for all that follow; instead of initial, multiplier and cap.
        offset_s: added to every delay after jitter.
        least_s: lower clamp of a random delay.
        first_at_once: the first try after a loss comes without any delay, and the schedule begins with the second.
        first_window_s: the first delay is uniform in [0, first_window_s], and the schedule begins with the second.
        jitter_from: first attempt (1 or later) that is jittered.
        caps_first: the cap is applied before the power is computed, so that nothing overflows.
        max_retries: tries of one absence; None: no limit.
        align_s: tries fall on multiples of it by the wall clock; None: they do not.
        layers: tries that each layer makes of one try of the layer above.
    """

    client_id: str = ""
    strategy: Strategy = "full"
    jitter: float = 0.5
    initial_s: float = 1.0
    multiplier: float = 2.0
    cap_s: float = 30.0
    delays_s: tuple[float, ...] = ()
    offset_s: float = 0.0
    least_s: float = 0.1
    first_at_once: bool = False
    first_window_s: float | None = None
    jitter_from: int = 1
    jitter_before_cap: bool = False
    caps_first: bool = True
    language: Language | None = None
    max_retries: int | None = None
    reset_on: ResetOn = "stable"
    reset_after_s: float = 30.0
    honours_hints: bool = True
    hint_jitter_s: float = 0.0
    hint_cap_s: float = math.inf
    browser: bool = False
    schedule: str | None = None
    align_s: float | None = None
    schedule_spread_s: float = 0.0
    triggers: tuple[Trigger, ...] = (Trigger("close"),)
    shared_backoff: bool = True
    close_codes: Policy = field(default_factory=lambda: Policy(FATAL_CLOSE_CODES))
    statuses: Policy = field(default_factory=lambda: Policy(FATAL_STATUSES))
    stages: tuple[Stage, ...] = ()
    layers: tuple[int, ...] = ()
    said: frozenset[str] = frozenset()

    @property
    def tries_per_attempt(self) -> int:
        """What all layers together make of one attempt that fails."""
        return math.prod(self.layers)

    @property
    def is_aligned(self) -> bool:
        """Whether the wall clock says when it dials."""
        return self.schedule is not None or self.align_s is not None
