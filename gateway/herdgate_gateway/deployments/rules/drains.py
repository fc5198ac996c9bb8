"""How long a drain of a gateway takes, by the settings alone. Seconds everywhere.

    deadline = settle_s, then sockets one by one at share x rate, then HANG_UP_S for the rest

Sockets are as many as `max_open` lets in: a drain has to fit when the gateway is full.
"""

import math
from dataclasses import dataclass

from herdgate_gateway.deployments.model import Workload
from herdgate_gateway.deployments.rules.rule import Case
from herdgate_gateway.drain.options import DrainSettings
from herdgate_gateway.drain.plan import HANG_UP_S, Trigger, needed_s
from herdgate_gateway.settings import Settings

__all__ = ["Drain", "drain_of", "drain_settings", "rollout_s"]


@dataclass(frozen=True, slots=True)
class Drain:
    """Of one full gateway.

    Attributes:
        trigger: what begins it where this workload is deployed.
        within_s: its deadline.
        settle_s: before the first socket is closed.
        sockets: that are open.
        per_s: sockets closed a second, by all drains of the fleet together.
    """

    trigger: Trigger
    within_s: float
    settle_s: float
    sockets: int
    per_s: float

    @property
    def moving_s(self) -> float:
        """That closing them one by one takes."""
        return needed_s(self.sockets, self.per_s)

    @property
    def whole_s(self) -> float:
        """From the trigger to the end."""
        return self.settle_s + self.moving_s + HANG_UP_S

    @property
    def left_s(self) -> float:
        """Of its deadline, for closing them one by one."""
        return max(0.0, self.within_s - self.settle_s - HANG_UP_S)


def drain_settings(settings: Settings) -> DrainSettings:
    """How a gateway with these settings drains."""
    return settings.drain.settings()


def most_sockets(settings: Settings) -> int | None:
    """That a gateway lets in; None: no limit, or one of its workers only."""
    if settings.max_open is not None:
        return settings.max_open
    caps = [route.max_open for route in settings.routes]
    return sum(cap for cap in caps if cap is not None) if None not in caps else None


def trigger_of(case: Case) -> Trigger:
    """What begins a drain here: preStop, an early sign of a balancer, a file, or nothing but SIGTERM."""
    hook, settings = case.workload.prestop, case.workload.settings
    if hook is not None and hook.drains:
        return "call"
    if settings is None or case.workload.is_pod or case.deregistration_s is None:
        return "sigterm"
    if settings.drain.aws.settings() is not None:
        return "sign"
    return "sigterm" if settings.drain.file is None else "file"


def within_s(workload: Workload, settings: DrainSettings, trigger: Trigger) -> float:
    """The deadline of a drain by this trigger; preStop may bring its own."""
    hook = workload.prestop
    if trigger == "call" and hook is not None and hook.seconds is not None:
        return hook.seconds
    return settings.within_s(trigger)


def drain_of(case: Case) -> Drain | None:
    """The drain of one full gateway; None: nothing limits its sockets, or its rate."""
    settings = case.workload.settings
    sockets = None if settings is None else most_sockets(settings)
    if settings is None or settings.rate is None or sockets is None:
        return None
    how, trigger = drain_settings(settings), trigger_of(case)
    return Drain(trigger, within_s(case.workload, how, trigger), how.settle_s, sockets, how.share * settings.rate)


def rollout_s(drain: Drain, copies: int, at_once: int, apart_s: float) -> float:
    """Seconds that the slowest drain of a rollout spends on closing sockets.

    Lots of `at_once` gateways begin `apart_s` seconds after each other and share one pace, first come first served. So
    the slowest is the first lot, which has only itself to wait for, or the last one, or the last full one.
    """
    full, lots = copies // at_once, max(1, math.ceil(copies / at_once))
    first_s = min(at_once, copies) * drain.moving_s
    last_full_s = full * at_once * drain.moving_s - max(0, full - 1) * apart_s
    return max(first_s, last_full_s, copies * drain.moving_s - (lots - 1) * apart_s)
