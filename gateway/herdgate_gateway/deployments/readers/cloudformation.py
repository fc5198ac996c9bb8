"""CloudFormation: task definitions with their services and what scales these, balancers and target groups.

What only AWS can resolve is not judged. A target group that belongs to services of something else is left out.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

from herdgate_gateway.deployments.model import Deployed
from herdgate_gateway.deployments.readers.balancers import DEREGISTRATION_S, IDLE_S, attributes, balancer_of
from herdgate_gateway.deployments.readers.ecs import copies_of, read_task
from herdgate_gateway.deployments.readers.intrinsics import resources_of
from herdgate_gateway.deployments.readers.scaling import scaling_of
from herdgate_gateway.deployments.trees import Tree, at, table, tables, text

__all__ = ["is_template", "read_template"]

_TASK = "AWS::ECS::TaskDefinition"
_SERVICE = "AWS::ECS::Service"
_GROUP = "AWS::ElasticLoadBalancingV2::TargetGroup"
_BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"


def is_template(tree: object) -> bool:
    """Whether a document is a template."""
    resources = at(tree, "Resources")
    return isinstance(resources, Mapping) and any(text(each, "Type").startswith("AWS::") for each in resources.values())


def read_template(where: str, tree: Tree, own: Path | None, given: Mapping[str, object]) -> Deployed:
    """The model of a template.

    Args:
        own: settings of gateways whose own cannot be seen.
        given: values of its parameters; those of others are left out.
    """
    resources = resources_of(tree, given)
    found, gateways = Deployed(), set()
    for name, resource in resources.items():
        if text(resource, "Type") == _TASK:
            read = _read_task(f"{where} {name}", name, resources, own)
            gateways |= {name} if any(each.role == "gateway" for each in read.workloads) else set()
            found += read
    elsewhere = _groups_of_others(resources, gateways)
    for name, resource in resources.items():
        kind, said = text(resource, "Type"), table(resource, "Properties")
        if kind == _GROUP and name not in elsewhere:
            told = attributes(said, "TargetGroupAttributes")
            found += Deployed(balancers=(balancer_of(f"{where} {name}", told, deregistration_s=DEREGISTRATION_S),))
        elif kind == _BALANCER:
            told, idle_s = attributes(said, "LoadBalancerAttributes"), IDLE_S.get(text(said, "Type") or "application")
            found += Deployed(balancers=(balancer_of(f"{where} {name}", told, idle_s=idle_s),))
    return found


def _read_task(where: str, task: str, resources: Mapping[str, Tree], own: Path | None) -> Deployed:
    said = _lowered(table(resources[task], "Properties"))
    service = next((name for name, each in resources.items() if _runs(each, task)), None)
    if service is None:
        return read_task(where, said, own)
    scaling = scaling_of(service, resources)
    copies = copies_of(_lowered(table(resources[service], "Properties")), scaling)
    return read_task(where, said, own, copies, None if scaling is None else scaling.scaler)


def _runs(resource: Tree, task: str) -> bool:
    return text(resource, "Type") == _SERVICE and _named(at(resource, "Properties", "TaskDefinition")) == task


def _groups_of_others(resources: Mapping[str, Tree], gateways: AbstractSet[str]) -> set[str]:
    """Target groups that services register with, none of which runs gateways of this template."""
    ours, others = set[str](), set[str]()
    for each in resources.values():
        if text(each, "Type") == _SERVICE:
            runs = _named(at(each, "Properties", "TaskDefinition"))
            groups = {_named(way.get("TargetGroupArn")) for way in tables(each, "Properties", "LoadBalancers")}
            (others if runs in resources and runs not in gateways else ours).update(groups)
    return others - ours


def _named(reference: Any) -> str:
    """The resource that a reference means, by its id or one of its attributes; empty: none."""
    attribute = at(reference, "Fn::GetAtt")
    parts = attribute.split(".") if isinstance(attribute, str) else attribute
    return text(reference, "Ref") or (str(parts[0]) if isinstance(parts, list) and parts else "")


def _lowered(tree: Any) -> Any:
    """Keys as ECS' own API has them: `StopTimeout` is `stopTimeout` there."""
    if isinstance(tree, Mapping):
        return {str(key)[:1].lower() + str(key)[1:]: _lowered(value) for key, value in tree.items()}
    return [_lowered(each) for each in tree] if isinstance(tree, list) else tree
