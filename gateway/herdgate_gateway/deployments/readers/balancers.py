"""Attributes of AWS balancers and their target groups, with AWS' defaults."""

from collections.abc import Mapping

from herdgate_gateway.deployments.model import Balancer
from herdgate_gateway.deployments.trees import Tree, number, tables, text

__all__ = ["DEREGISTRATION_S", "IDLE_S", "attributes", "balancer_of"]

DEREGISTRATION_S = 300.0
"""AWS' default of `deregistration_delay.timeout_seconds`."""

IDLE_S = {"application": 60.0, "network": 350.0}
"""AWS' defaults of the idle timeout, by the kind of balancer."""

_DEREGISTRATION = "deregistration_delay.timeout_seconds"
_IDLE = ("idle_timeout.timeout_seconds", "tcp.idle_timeout.seconds")


def attributes(tree: Tree, name: str = "Attributes") -> dict[str, object]:
    """A list of keys and values, as AWS writes attributes."""
    return {text(each, "Key"): each.get("Value") for each in tables(tree, name)}


def balancer_of(
    where: str, told: Mapping[str, object], *, deregistration_s: float | None = None, idle_s: float | None = None
) -> Balancer:
    """A balancer by its attributes.

    Args:
        deregistration_s, idle_s: where they say nothing of it.
    """
    if _DEREGISTRATION in told:
        deregistration_s = number(told, _DEREGISTRATION)
    for name in _IDLE:
        if name in told:
            idle_s = number(told, name)
    return Balancer(where, deregistration_s, idle_s)
