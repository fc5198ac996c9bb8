"""What is wrong with how a workload is put up. Each function: the fault with its numbers, or None."""

from herdgate_gateway.deployments.model import Probe
from herdgate_gateway.deployments.readers.commands import shell_of
from herdgate_gateway.deployments.rules.rule import Case
from herdgate_gateway.listeners import Tcp, read_listen
from herdgate_gateway.settings import Settings

__all__ = [
    "budget_of_no_use",
    "liveness",
    "no_budget",
    "no_control",
    "no_fleet",
    "readiness",
    "rollout_of_all",
    "scaler_by_use",
    "scaler_drops",
    "shell",
    "single",
    "unreachable",
    "unseen",
]

_LOOPBACK = ("127.", "::1", "localhost")


def shell(case: Case) -> str | None:
    """A shell between the platform and the process."""
    found = shell_of(case.workload.words)
    return None if found is None else f"PID 1 is `{found}`"


def unseen(case: Case) -> str | None:
    """Settings that are elsewhere."""
    where = ", ".join(case.workload.unseen)
    return f"settings of it are in {where}, which cannot be seen here" if where else None


def single(case: Case) -> str | None:
    """Nobody to go to."""
    copies = case.workload.copies
    is_one = copies is not None and copies.least < 2 and copies.most > 0  # of none nobody ends
    return f"there may be {copies.least} of them" if copies is not None and is_one else None


def rollout_of_all(case: Case) -> str | None:
    """A rollout that leaves none."""
    copies = case.workload.copies
    if copies is None or copies.least < 2 or copies.away < copies.least:
        return None
    return f"a rollout may take {copies.away} of {copies.least} away at once"


def no_budget(case: Case) -> str | None:
    """Nothing that holds back who empties nodes."""
    workload = case.workload
    is_missing = workload.is_pod and workload.budget is None and workload.copies is not None
    return "no PodDisruptionBudget selects its pods" if is_missing else None


def budget_of_no_use(case: Case) -> str | None:
    """A budget for all, or for none."""
    budget, copies = case.workload.budget, case.workload.copies
    if budget is None or copies is None or copies.least < 2:
        return None
    if budget.away >= copies.least:
        return f"its PodDisruptionBudget lets all {copies.least} go at once"
    return "its PodDisruptionBudget lets none go, so that no node can be emptied" if budget.away < 1 else None


def readiness(case: Case) -> str | None:
    """Asking who cannot say that a drain has begun."""
    workload = case.workload
    if not workload.is_pod:
        return None
    if not workload.has_readiness:
        return "there is no readinessProbe"
    probe = workload.readiness
    if probe is None or workload.settings is None:
        return None
    if probe.port in _data_ports(workload.settings):
        return f"readinessProbe asks port {probe.port}, where clients come"
    is_told = probe.path.partition("?")[0].rstrip("/").endswith("/readyz")
    return None if is_told else f"readinessProbe asks {probe.path or 'for an open port'}, which answers all the same"


def liveness(case: Case) -> str | None:
    """Ending who ends."""
    probe = case.workload.liveness
    return f"livenessProbe asks {probe.path}" if probe and probe.path.rstrip("/").endswith("/readyz") else None


def unreachable(case: Case) -> str | None:
    """A probe that nobody answers."""
    settings = case.workload.settings
    if settings is None:
        return None
    for name, probe in (("readinessProbe", case.workload.readiness), ("livenessProbe", case.workload.liveness)):
        if probe is not None and not _answers(settings, probe):
            told = settings.admin.listen or "off"
            return f"{name} asks port {probe.port}, listen is {', '.join(settings.listen)}, admin.listen {told}"
    return None


def _answers(settings: Settings, probe: Probe) -> bool:
    if probe.port in _data_ports(settings):
        return True
    admin = None if settings.admin.listen is None else read_listen(settings.admin.listen)
    return isinstance(admin, Tcp) and admin.port == probe.port and not admin.host.startswith(_LOOPBACK)


def _data_ports(settings: Settings) -> set[int]:
    return {listen.port for spec in settings.listen if isinstance(listen := read_listen(spec), Tcp)}


def no_control(case: Case) -> str | None:
    """A call that nobody may make."""
    hook, settings = case.workload.prestop, case.workload.settings
    if hook is None or not hook.drains or settings is None:
        return None
    is_closed = settings.admin.socket is None and settings.admin.token is None
    return "preStop calls, and neither admin.socket nor admin.token is set" if is_closed else None


def no_fleet(case: Case) -> str | None:
    """Each admits the whole rate."""
    copies, settings = case.workload.copies, case.workload.settings
    if copies is None or copies.most < 2 or settings is None or settings.fleet.redis or settings.rate is None:
        return None
    return f"{copies.most} gateways without fleet.redis admit {copies.most} x {settings.rate:g} a second"


def scaler_by_use(case: Case) -> str | None:
    """More and fewer by what says nothing of sockets."""
    scaler = case.workload.scaler
    return "its autoscaler goes by CPU or memory alone" if scaler and scaler.by_use else None


def scaler_drops(case: Case) -> str | None:
    """Many that end because few are needed."""
    scaler = case.workload.scaler
    return f"its autoscaler may take {scaler.at_once} away at once" if scaler and scaler.at_once > 1 else None
