"""Timers in the wrong order. Each function: the fault with its numbers, or None."""

import math

from herdgate_gateway.deployments.model import PreStop
from herdgate_gateway.deployments.rules.drains import (
    Drain,
    drain_of,
    drain_settings,
    rollout_s,
    trigger_of,
    within_s,
)
from herdgate_gateway.deployments.rules.rule import Case

__all__ = [
    "FOUND_WITHIN",
    "PROPAGATION_S",
    "SPARE_S",
    "balancer_cuts",
    "balancer_idle",
    "balancer_nearly_idle",
    "deregistration_outlives",
    "drain_too_slow",
    "grace",
    "grace_too_long",
    "no_early_sign",
    "no_limit",
    "no_prestop",
    "propagation",
    "relay_idle",
    "rollout_too_fast",
    "sign_too_late",
    "worker_grace",
]

SPARE_S = 5.0
"""Between the end of a drain and SIGKILL, for the process to start its commands and to end."""

PROPAGATION_S = 10.0
"""Before all nodes and balancers know that a pod is leaving."""

FOUND_WITHIN = 2.5
"""A sign is found within so many times `drain.aws.every_s`, at most."""


def grace(case: Case) -> str | None:
    """SIGKILL in the middle of a drain."""
    workload, hook = case.workload, case.workload.prestop
    if workload.settings is None or workload.grace_s is None:
        return None
    how = drain_settings(workload.settings)
    needed_s, sum_ = how.sigterm_s, f"sigterm_s {how.sigterm_s:g} s"
    if hook is not None and hook.drains:
        call_s = within_s(workload, how, "call") + hook.beside_s
        if call_s >= needed_s:  # by SIGTERM nothing is left, unless preStop failed
            needed_s, sum_ = call_s, f"preStop {_beside(hook)}drains for {call_s - hook.beside_s:g} s"
    elif hook is not None and hook.seconds is not None:
        needed_s, sum_ = needed_s + hook.seconds, f"preStop {hook.seconds:g} s + {sum_}"
    if needed_s + SPARE_S <= workload.grace_s:
        return None
    return f"{workload.grace} is {workload.grace_s:g} s: {sum_} + {SPARE_S:g} s to spare are {needed_s + SPARE_S:g} s"


def _beside(hook: PreStop) -> str:
    return f"sleeps {hook.beside_s:g} s and " if hook.beside_s else ""


def grace_too_long(case: Case) -> str | None:
    """More than the platform gives."""
    workload = case.workload
    if workload.most_grace_s is None or workload.grace_s is None or workload.grace_s <= workload.most_grace_s:
        return None
    return f"{workload.grace} is {workload.grace_s:g} s, Fargate takes {workload.most_grace_s:g} s at most"


def worker_grace(case: Case) -> str | None:
    """SIGKILL before a worker has handed its shards over."""
    workload, hook = case.workload, case.workload.prestop
    if workload.stop_s is None or workload.grace_s is None:
        return None
    slept_s = 0.0 if hook is None else hook.seconds or 0.0
    needed_s = slept_s + workload.stop_s + SPARE_S
    if needed_s <= workload.grace_s:
        return None
    sum_ = f"preStop {slept_s:g} s + " if slept_s else ""
    return f"{workload.grace} is {workload.grace_s:g} s: {sum_}stop_s {workload.stop_s:g} s needs {needed_s:g} s"


def no_prestop(case: Case) -> str | None:
    """A pod that is told by SIGTERM alone."""
    return "there is no preStop" if case.workload.is_pod and case.workload.prestop is None else None


def propagation(case: Case) -> str | None:
    """Gone before all know."""
    workload, hook = case.workload, case.workload.prestop
    if hook is None:
        return None
    if not hook.drains:
        if hook.seconds is None or hook.seconds >= PROPAGATION_S:
            return None
        return f"preStop takes {hook.seconds:g} s, {PROPAGATION_S:g} s are the least"
    settle_s = None if workload.settings is None else drain_settings(workload.settings).settle_s
    if settle_s is None or hook.beside_s + settle_s >= PROPAGATION_S:
        return None
    return f"preStop may be over after drain.settle_s, {settle_s:g} s; {PROPAGATION_S:g} s are the least"


def deregistration_outlives(case: Case) -> str | None:
    """A target that is gone while its balancer still counts on it."""
    hook, balancer_s = case.workload.prestop, case.deregistration_s
    if hook is None or hook.drains or hook.seconds is None or balancer_s is None or balancer_s < hook.seconds:
        return None
    return f"the deregistration delay is {balancer_s:g} s, preStop {hook.seconds:g} s"


def balancer_cuts(case: Case) -> str | None:
    """Sockets cut by a balancer that the drain has not come to."""
    balancer_s, drain = case.deregistration_s, _drain(case)
    if balancer_s is None or drain is None or drain.trigger == "sigterm":
        return None
    slept_s = 0.0 if case.workload.prestop is None else case.workload.prestop.beside_s
    needed_s = slept_s + drain.whole_s
    if needed_s <= balancer_s or drain.moving_s > drain.left_s:  # that is told as such
        return None
    return f"{drain.sockets:,} sockets need {needed_s:.4g} s, the deregistration delay is {balancer_s:g} s"


def sign_too_late(case: Case) -> str | None:
    """A deadline by an early sign that the balancer does not wait for."""
    workload, balancer_s = case.workload, case.deregistration_s
    if workload.settings is None or balancer_s is None or trigger_of(case) != "sign":
        return None
    sign_s = drain_settings(workload.settings).sign_s
    found_s = FOUND_WITHIN * workload.settings.drain.aws.every_s
    if found_s + sign_s <= balancer_s:
        return None
    return (
        f"a sign is found within {found_s:g} s, drain.sign_s is {sign_s:g} s, the deregistration delay {balancer_s:g} s"
    )


def no_early_sign(case: Case) -> str | None:
    """Told by SIGTERM alone, when its balancer has cut all that was left."""
    workload, balancer_s = case.workload, case.deregistration_s
    if workload.settings is None or workload.is_pod or balancer_s is None or trigger_of(case) != "sigterm":
        return None
    return f"the balancer cuts after {balancer_s:g} s, SIGTERM comes behind that, and drain.aws watches for no sign"


def _drain(case: Case) -> Drain | None:
    """Of one gateway; None: it cannot be told, or nobody is left for it."""
    return None if no_early_sign(case) else drain_of(case)


def no_limit(case: Case) -> str | None:
    """A drain of nobody knows how many."""
    is_open = case.workload.settings is not None and drain_of(case) is None
    return "max_open or rate is not set: nobody can say how long a drain takes" if is_open else None


def drain_too_slow(case: Case) -> str | None:
    """More sockets than can be moved in time."""
    drain = _drain(case)
    if drain is None or drain.moving_s <= drain.left_s:
        return None
    needed = f"{drain.sockets:,} sockets at {drain.per_s:g}/s need {drain.moving_s:.4g} s"
    late = math.ceil(drain.sockets - drain.left_s * drain.per_s)
    short_s = drain.moving_s - drain.left_s
    return f"{needed}, drain.{drain.trigger}_s leaves {drain.left_s:g} s: {short_s:.4g} s short, {late:,} go together"


def rollout_too_fast(case: Case) -> str | None:
    """One gateway can be moved in time, but a rollout moves several."""
    drain, copies = _drain(case), case.workload.copies
    if drain is None or copies is None or drain.moving_s > drain.left_s:
        return None
    slowest_s = rollout_s(drain, copies.most, copies.at_once, copies.apart_s)
    if slowest_s <= drain.left_s:
        return None
    lots = f"{copies.most} gateways, {copies.at_once} at once and {copies.apart_s:g} s apart"
    return f"{lots}: the slowest needs {slowest_s:.4g} s, drain.{drain.trigger}_s leaves {drain.left_s:g} s"


def relay_idle(case: Case) -> str | None:
    """Idle sockets closed before their next ping."""
    settings = case.workload.settings
    if settings is None or settings.relay.idle_s is None or settings.relay.idle_s > case.ping_s:
        return None
    return f"relay.idle_s is {settings.relay.idle_s:g} s, pings come every {case.ping_s:g} s"


def balancer_idle(case: Case) -> str | None:
    """Idle sockets cut by a balancer before their next ping."""
    for each in case.balancers:
        if each.idle_s is not None and each.idle_s <= case.ping_s:
            return f"{each.where} cuts after {each.idle_s:g} s without a byte, pings come every {case.ping_s:g} s"
    return None


def balancer_nearly_idle(case: Case) -> str | None:
    """One ping that is late, and the balancer cuts."""
    for each in case.balancers:
        if each.idle_s is not None and case.ping_s < each.idle_s < 2 * case.ping_s:
            return f"{each.where} cuts after {each.idle_s:g} s without a byte, pings come every {case.ping_s:g} s"
    return None
