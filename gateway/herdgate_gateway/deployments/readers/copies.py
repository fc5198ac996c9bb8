"""How many copies of a workload of Kubernetes there are, how they are replaced, and who may take some away.

Sources: Kubernetes' API reference for defaults (replicas 1, maxSurge and maxUnavailable 25 %, an autoscaler takes all
within 15 s); a percentage of surge is rounded up, of unavailable pods down, of a budget up.
"""

import math
from collections.abc import Sequence
from typing import Any

from herdgate_gateway.deployments.model import Budget, Copies, Scaler
from herdgate_gateway.deployments.readers.selectors import selects
from herdgate_gateway.deployments.trees import Tree, at, number, table, tables, text

__all__ = ["budget_of", "copies_of", "part_of", "scaler_of"]

_DEFAULT_PART = "25%"
_COUNTED = ("Deployment", "ReplicaSet", "Rollout", "StatefulSet")


def copies_of(tree: Tree, objects: Sequence[Tree]) -> Copies | None:
    """Of a workload; None: one for each node."""
    kind, spec = text(tree, "kind"), table(tree, "spec")
    if kind not in _COUNTED:
        return None
    set_to = number(spec, "replicas") if "replicas" in spec else 1.0
    scaler = _scaler(tree, objects)
    least = number(scaler, "minReplicas") if "minReplicas" in scaler else (1.0 if scaler else set_to)
    most = number(scaler, "maxReplicas") if scaler else set_to
    if least is None or most is None:
        return None
    away, surge = _replaced(kind, table(spec, "strategy"), int(least), int(most))
    apart_s = number(spec, "minReadySeconds") or 0.0
    return Copies(int(least), int(most), min(int(least), away), max(1, min(int(most), surge)), apart_s)


def _replaced(kind: str, strategy: Tree, least: int, most: int) -> tuple[int, int]:
    """How many may be missing of the least number, and how many may be told to end together of the most."""
    if kind == "StatefulSet":
        return 1, 1
    if text(strategy, "type") == "Recreate":
        return least, most
    if "blueGreen" in strategy:  # of Argo: all others are there before, then all go
        return 0, most
    update = table(strategy, "canary" if kind == "Rollout" else "rollingUpdate")
    surge, missing = update.get("maxSurge", _DEFAULT_PART), update.get("maxUnavailable", _DEFAULT_PART)
    away = part_of(missing, least, up=False)
    if part_of(surge, least, up=True) == 0:
        away = max(1, away)
    return away, part_of(surge, most, up=True) + part_of(missing, most, up=False)


def part_of(value: Any, whole: int, *, up: bool) -> int:
    """A number, or a percentage of the whole."""
    share = number({"share": str(value).removesuffix("%")}, "share") or 0.0
    if share < 0 or not str(value).endswith("%"):
        return max(0, int(share))
    exact = share * whole / 100
    return math.ceil(exact) if up else math.floor(exact)


def budget_of(tree: Tree, objects: Sequence[Tree], copies: Copies | None) -> Budget | None:
    """The disruption budget of a workload's pods."""
    labels = table(tree, "spec", "template", "metadata", "labels")
    for each in objects:
        selector = at(each, "spec", "selector")
        if text(each, "kind") != "PodDisruptionBudget" or selector is None or not selects(selector, labels):
            continue
        spec, least = table(each, "spec"), copies.least if copies else 2
        if "maxUnavailable" in spec:
            return Budget(part_of(spec["maxUnavailable"], least, up=True))
        return Budget(least - part_of(spec.get("minAvailable", 1), least, up=True))
    return None


def _scaler(tree: Tree, objects: Sequence[Tree]) -> Tree:
    asked = (text(tree, "kind"), text(tree, "metadata", "name"))
    for each in objects:
        kind, target = text(each, "kind"), table(each, "spec", "scaleTargetRef")
        if (text(target, "kind") or "Deployment", text(target, "name")) == asked:
            if kind == "HorizontalPodAutoscaler":
                return table(each, "spec")
            if kind == "ScaledObject":
                return _of_keda(table(each, "spec"))
    return {}


def _of_keda(spec: Tree) -> Tree:
    """A ScaledObject as the autoscaler that KEDA makes of it."""
    kinds = {"cpu": "Resource", "memory": "Resource"}
    return {
        "minReplicas": spec.get("minReplicaCount", 0),
        "maxReplicas": spec.get("maxReplicaCount", 100),
        "metrics": [{"type": kinds.get(text(each, "type"), "External")} for each in tables(spec, "triggers")],
        "behavior": table(spec, "advanced", "horizontalPodAutoscalerConfig", "behavior"),
    }


def scaler_of(tree: Tree, objects: Sequence[Tree]) -> Scaler | None:
    """The autoscaler of a workload."""
    spec = _scaler(tree, objects)
    if not spec:
        return None
    kinds = {text(each, "type") for each in tables(spec, "metrics")}
    by_use = "targetCPUUtilizationPercentage" in spec or kinds <= {"Resource", "ContainerResource"}
    return Scaler(_taken_at_once(spec), by_use)


def _taken_at_once(spec: Tree) -> int:
    most = int(number(spec, "maxReplicas") or 1)
    down = table(spec, "behavior", "scaleDown")
    if text(down, "selectPolicy") == "Disabled":
        return 0
    policies = list(tables(down, "policies"))
    sizes = [_taken(each, most) for each in policies] or [most]
    return min(sizes) if text(down, "selectPolicy") == "Min" else max(sizes)


def _taken(policy: Tree, most: int) -> int:
    size = number(policy, "value") or 0.0
    return math.ceil(size * most / 100) if text(policy, "type") == "Percent" else int(size)
