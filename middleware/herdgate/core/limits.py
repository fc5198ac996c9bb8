"""Settings of the decision core: frozen, validated once, errors that name the field.

Limits mean what they say: a cap of N admits exactly N, 0 admits nobody, None is no limit. Negative, NaN and
infinite values are a `ConfigurationError`.
"""

from dataclasses import dataclass, field, fields, replace
from typing import Literal, get_args

from herdgate.core.classes import NORMAL, AdmissionClass, check_classes
from herdgate.core.errors import ConfigurationError
from herdgate.core.numbers import LEAST_RATE, check_number, check_rate

__all__ = ["ClientLimits", "Limits", "Scope"]

Scope = Literal["process", "fleet"]
"""Where a limit per client holds: in each process on its own, or over all processes of a fleet together."""

MOST_BURST = 1_000_000_000
MOST_CLIENTS = 100_000_000
MOST_PROCESSES = 10_000
MAX_HORIZON_S = 3_600
"""Longest horizon, hold and grace, seconds: what is remembered of promises grows with them."""

MOST_SESSION_S = 30 * 24 * 3_600


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """What one client key may do.

    Attributes:
        rate: arrivals per second, sustained (keyed GCRA). None: no limit; 0: nobody.
        burst: arrivals at once, at least 1. None: one second of `rate`, at least 1.
        open: sockets held at the same time. None: no limit; 0: nobody.
        scope: `fleet`: both hold over all processes of the gate's fleet together; `process`: in each on its own.
    """

    rate: float | None = None
    burst: float | None = None
    open: int | None = None
    scope: Scope = "process"

    def __post_init__(self) -> None:
        check_rate("rate", self.rate, unit="a number of arrivals per second")
        none = "one second of the rate"
        check_number("burst", self.burst, least=1, most=MOST_BURST, unit="a number of arrivals", none=none)
        if self.burst is not None and self.rate is None:
            raise ConfigurationError("burst", self.burst, "write a rate as well: a burst is nothing without one")
        check_number("open", self.open, least=0, unit="a whole number of sockets", none="no limit", whole=True)
        if self.scope not in get_args(Scope):
            raise ConfigurationError("scope", self.scope, 'write "process" or "fleet"')

    def _divided(self, tier: str, processes: int) -> "ClientLimits":
        return ClientLimits(
            rate=_divide_rate(f"{tier}.rate", self.rate, processes),
            burst=_divide_burst(self.burst, processes),
            open=_divide_cap(f"{tier}.open", self.open, processes),
            scope=self.scope,
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """What one gate admits.

    Attributes:
        rate: admissions per second, R. None: no limit; 0: nobody until it is raised.
        burst: admissions at once after a quiet time, at least 1. None: one second of the rate, at least 1.
        max_pending: set-ups in progress (admitted, not yet accepted by the app). None: no limit.
        max_open: sockets held at the same time, set-ups included. None: no limit.
        max_memory_bytes: resident memory of the process above which nobody new is taken. None: no limit.
        client: limits per client key: the identity where there is one, else the address.
        anonymous: limits per address for arrivals without an identity. None: as `client`.
        address: a cap over everybody at one address, identities included.
        network: a cap over everybody in one wider IPv6 network (/48).
        max_clients: client keys remembered per table; see `herdgate.core.table` for what happens beyond.
        admit_fraction: share of client keys let past, 0 to 1; the same keys on every gateway.
        classes: of arrivals, the first one first; see `AdmissionClass`. Whoever is in none of them is in the last.
        session_ttl_s: seconds for which a client that was admitted is in the class `resume`, where there is one.
        hold_s: seconds after its time in which a firm slot is admitted without asking.
        grace_s: seconds after its time in which a ticket still counts for something.
        hint_cap_s: longest hint, seconds; beyond it hints are drawn from its upper half.
        horizon_s: seconds beyond which nothing is promised.
    """

    rate: float | None
    burst: float | None = None
    max_pending: int | None = None
    max_open: int | None = None
    max_memory_bytes: int | None = None
    client: ClientLimits = field(default_factory=ClientLimits)
    anonymous: ClientLimits | None = None
    address: ClientLimits = field(default_factory=ClientLimits)
    network: ClientLimits = field(default_factory=ClientLimits)
    max_clients: int = 100_000
    admit_fraction: float = 1.0
    classes: tuple[AdmissionClass, ...] = (NORMAL,)
    session_ttl_s: float = 3_600.0
    hold_s: float = 1.5
    grace_s: float = 60.0
    hint_cap_s: float = 30.0
    horizon_s: float = 600.0

    def __post_init__(self) -> None:
        check_rate("rate", self.rate, unit="a number of admissions per second")
        none = "one second of the rate"
        check_number("burst", self.burst, least=1, most=MOST_BURST, unit="a number of admissions", none=none)
        for name in ("max_pending", "max_open"):
            check_number(
                name, getattr(self, name), least=0, unit="a whole number of permits", none="no limit", whole=True
            )
        check_number(
            "max_memory_bytes",
            self.max_memory_bytes,
            least=0,
            unit="a whole number of bytes",
            none="no limit",
            whole=True,
        )
        unit = "a whole number of client keys"
        check_number("max_clients", self.max_clients, least=1, most=MOST_CLIENTS, unit=unit, whole=True)
        check_number("admit_fraction", self.admit_fraction, least=0, most=1, unit="a share")
        check_classes(self.classes)
        check_number("session_ttl_s", self.session_ttl_s, least=1, most=MOST_SESSION_S, unit="seconds")
        check_number("hold_s", self.hold_s, least=0, most=MAX_HORIZON_S, unit="seconds")
        check_number("grace_s", self.grace_s, least=self.hold_s, most=MAX_HORIZON_S, unit="seconds, hold_s at least")
        check_number("hint_cap_s", self.hint_cap_s, least=1, most=MAX_HORIZON_S, unit="seconds")
        unit = "seconds, hint_cap_s at least"
        check_number("horizon_s", self.horizon_s, least=self.hint_cap_s, most=MAX_HORIZON_S, unit=unit)
        for name in ("client", "anonymous", "address", "network"):
            self._check_tier(name)

    def divided(self, processes: int) -> "Limits":
        """The share of one of several processes that decide each on its own.

        Rates and bursts are divided, caps as well and then rounded down: over all processes together none comes to
        more than the whole. Only a burst is never below 1, as nobody would ever come in, so that together they come
        to `processes` at least. What holds for a process or a client key as it stands stays as it is:
        `max_memory_bytes`, `max_clients`, `admit_fraction` and all times.

        Args:
            processes: how many there are, 1 to 10,000.

        Raises:
            ConfigurationError: no such number; or a limit is too small to have a share for each of them.
        """
        unit = "a whole number of processes"
        check_number("processes", processes, least=1, most=MOST_PROCESSES, unit=unit, whole=True)
        if processes == 1:
            return self
        tiers = {name: getattr(self, name) for name in ("client", "anonymous", "address", "network")}
        return replace(
            self,
            rate=_divide_rate("rate", self.rate, processes),
            burst=_divide_burst(self.burst, processes),
            max_pending=_divide_cap("max_pending", self.max_pending, processes),
            max_open=_divide_cap("max_open", self.max_open, processes),
            **{name: tier and tier._divided(name, processes) for name, tier in tiers.items()},
        )

    def _check_tier(self, name: str) -> None:
        value = getattr(self, name)
        if not isinstance(value, ClientLimits) and not (value is None and name == "anonymous"):
            settings = ", ".join(f"{setting.name}=..." for setting in fields(ClientLimits))
            raise ConfigurationError(name, value, f"write ClientLimits({settings}); ClientLimits() is no limit")


def _divide_rate(name: str, rate: float | None, processes: int) -> float | None:
    if rate and rate / processes < LEAST_RATE:
        raise ConfigurationError(name, rate, f"write {LEAST_RATE * processes} or more for {processes} processes")
    return rate and rate / processes


def _divide_burst(burst: float | None, processes: int) -> float | None:
    return burst and max(1.0, burst / processes)


def _divide_cap(name: str, cap: int | None, processes: int) -> int | None:
    """Rounded down; no share may become 0, which would turn few into nobody."""
    if cap and cap < processes:
        way_out = f"write {processes} or more for {processes} processes, 0 for nobody, or None for no limit"
        raise ConfigurationError(name, cap, way_out)
    return cap and cap // processes
