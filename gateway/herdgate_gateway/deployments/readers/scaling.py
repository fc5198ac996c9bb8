"""Application Auto Scaling in CloudFormation: how many tasks of an ECS service there may be, and how they become fewer.

Source: AWS, "Target tracking scaling policies for Application Auto Scaling". Such a policy says nothing of how many it
may take away at once, so it may take all; a step policy says it.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from herdgate_gateway.deployments.model import Scaler
from herdgate_gateway.deployments.trees import Tree, flag, number, table, tables, text

__all__ = ["Scaling", "scaling_of"]

_TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
_POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
_TRACKING, _STEPS = "TargetTrackingScalingPolicyConfiguration", "StepScalingPolicyConfiguration"
_USE = ("ECSServiceAverageCPUUtilization", "ECSServiceAverageMemoryUtilization")


class Scaling(NamedTuple):
    """Of one service.

    Attributes:
        least, most: tasks; None: only AWS knows.
        scaler: None: nothing changes their number by itself.
    """

    least: float | None
    most: float | None
    scaler: Scaler | None


def scaling_of(service: str, resources: Mapping[str, Tree]) -> Scaling | None:
    """What scales a service; None: nothing does.

    Args:
        service: name of its resource.
    """
    for name, each in resources.items():
        if text(each, "Type") == _TARGET and _names(table(each, "Properties").get("ResourceId"), service):
            said = table(each, "Properties")
            most = number(said, "MaxCapacity")
            return Scaling(number(said, "MinCapacity"), most, _scaler(list(_policies(name, resources)), most))
    return None


def _names(tree: Any, service: str) -> bool:
    """Whether `!GetAtt service.Name` stands anywhere in there."""
    if isinstance(tree, Mapping):
        return tree.get("Fn::GetAtt") in (f"{service}.Name", [service, "Name"]) or _names(list(tree.values()), service)
    return any(_names(each, service) for each in tree) if isinstance(tree, list) else False


def _policies(target: str, resources: Mapping[str, Tree]) -> Iterator[Tree]:
    for each in resources.values():
        said = table(each, "Properties")
        if text(each, "Type") == _POLICY and said.get("ScalingTargetId") == {"Ref": target}:
            yield said


def _scaler(policies: list[Tree], most: float | None) -> Scaler | None:
    if not policies or most is None:
        return None
    by_use = all(_metric(each) in _USE for each in policies)
    return Scaler(max(_taken_at_once(each, int(most)) for each in policies), by_use)


def _metric(policy: Tree) -> str:
    return text(policy, _TRACKING, "PredefinedMetricSpecification", "PredefinedMetricType")


def _taken_at_once(policy: Tree, most: int) -> int:
    if _TRACKING in policy:
        return 0 if flag(policy, _TRACKING, "DisableScaleIn") else most
    kind = text(policy, _STEPS, "AdjustmentType")
    steps = [number(each, "ScalingAdjustment") or 0.0 for each in tables(policy, _STEPS, "StepAdjustments")]
    if kind == "ExactCapacity":
        return max((most - int(each) for each in steps), default=0)
    share = most / 100 if kind == "PercentChangeInCapacity" else 1
    return max((math.ceil(-each * share) for each in steps if each < 0), default=0)
