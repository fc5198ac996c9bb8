"""What a rule is: a question about a workload, with the reason for it and the way out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from herdgate_gateway.deployments.model import Balancer, Role, Workload

__all__ = ["PING_S", "Case", "Finding", "Rule", "Severity"]

Severity = Literal["error", "warning"]

PING_S = 20.0
"""Seconds between the pings of `herdgate worker`, as of any uvicorn."""


@dataclass(frozen=True, slots=True)
class Case:
    """A workload and what stands around it.

    Attributes:
        balancers: before it.
        ping_s: seconds between pings on its sockets.
    """

    workload: Workload
    balancers: tuple[Balancer, ...] = ()
    ping_s: float = PING_S

    @property
    def deregistration_s(self) -> float | None:
        """When the first of its balancers cuts what is left; None: none does, as far as can be seen."""
        return min(
            (each.deregistration_s for each in self.balancers if each.deregistration_s is not None), default=None
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        id: its name, for reports.
        reason: what happens.
        fix: what to do.
        fault: what is wrong, with its numbers; None: nothing.
        role: of workloads that are asked; None: all.
    """

    id: str
    reason: str
    fix: str
    fault: Callable[[Case], str | None]
    role: Role | None = "gateway"
    severity: Severity = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found; `detail` has the numbers."""

    where: str
    rule: str
    severity: Severity
    detail: str
    reason: str
    fix: str
