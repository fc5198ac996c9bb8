"""CloudFormation: task definitions with their services and what scales these, balancers and target groups.

References to parameters are the values that are given for them, or their defaults; what only AWS can resolve is not
judged.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from herdgate_gateway.deployments.model import Deployed
from herdgate_gateway.deployments.readers.balancers import DEREGISTRATION_S, IDLE_S, attributes, balancer_of
from herdgate_gateway.deployments.readers.ecs import copies_of, read_task
from herdgate_gateway.deployments.readers.scaling import scaling_of
from herdgate_gateway.deployments.trees import Tree, at, table, text

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
    values = {name: given.get(name, at(each, "Default")) for name, each in table(tree, "Parameters").items()}
    resources = {name: _resolved(each, values) for name, each in table(tree, "Resources").items()}
    found = Deployed()
    for name, resource in resources.items():
        kind, said = text(resource, "Type"), table(resource, "Properties")
        if kind == _TASK:
            found += _read_task(f"{where} {name}", name, resources, own)
        elif kind == _GROUP:
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


def _runs(resource: Any, task: str) -> bool:
    return text(resource, "Type") == _SERVICE and table(resource, "Properties").get("TaskDefinition") == {"Ref": task}


def _resolved(tree: Any, values: Mapping[str, Any]) -> Any:
    """The tree with the values of parameters in the place of references to them."""
    if isinstance(tree, Mapping):
        if tree.keys() == {"Ref"} and values.get(tree["Ref"]) is not None:
            return values[tree["Ref"]]
        return {key: _resolved(value, values) for key, value in tree.items()}
    return [_resolved(each, values) for each in tree] if isinstance(tree, list) else tree


def _lowered(tree: Any) -> Any:
    """Keys as ECS' own API has them: `StopTimeout` is `stopTimeout` there."""
    if isinstance(tree, Mapping):
        return {key[:1].lower() + key[1:]: _lowered(value) for key, value in tree.items()}
    return [_lowered(each) for each in tree] if isinstance(tree, list) else tree
