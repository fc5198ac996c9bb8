"""Objects of Kubernetes: workloads with their budgets and autoscalers, and balancers by their annotations."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from herdgate_gateway.deployments.model import Deployed, PreStop, Workload
from herdgate_gateway.deployments.readers import ingresses
from herdgate_gateway.deployments.readers.commands import ping_s, prestop_of, role_of
from herdgate_gateway.deployments.readers.containers import settings_of, stop_s_of
from herdgate_gateway.deployments.readers.copies import budget_of, copies_of, scaler_of
from herdgate_gateway.deployments.readers.pods import container_of, probe_of, words_of
from herdgate_gateway.deployments.trees import Tree, number, table, tables, text, texts

__all__ = ["is_object", "read_objects"]

_GRACE_S = 30.0
"""Kubernetes' default of terminationGracePeriodSeconds."""

_KINDS = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")


def is_object(tree: Any) -> bool:
    """Whether a document is an object of Kubernetes."""
    return bool(text(tree, "apiVersion") and text(tree, "kind"))


def read_objects(where: str, objects: Sequence[Tree], own: Path | None) -> Deployed:
    """The model of objects.

    Args:
        where: file or folder.
        own: settings of gateways whose own cannot be seen.
    """
    flat = [each for tree in objects for each in (tables(tree, "items") if text(tree, "kind") == "List" else [tree])]
    found = Deployed()
    for tree in flat:
        if text(tree, "kind") in _KINDS:
            found += _read_workload(where, tree, flat, own)
        else:
            found += Deployed(balancers=tuple(ingresses.balancers(where, tree)))
    return found


def _read_workload(where: str, tree: Tree, objects: Sequence[Tree], own: Path | None) -> Deployed:
    found = Deployed()
    pod = table(tree, "spec", "template", "spec")
    for container in tables(pod, "containers"):
        words = words_of(container)
        found += Deployed(ping_s=ping_s(words))
        if role := role_of(text(container, "image"), words):
            name = f"{where} {text(tree, 'kind')}/{text(tree, 'metadata', 'name')}"
            inside = container_of(pod, container, objects)
            settings, faults = settings_of(inside, own) if role == "gateway" else (None, ())
            found += Deployed(faults=tuple(f"{name}: {fault}" for fault in faults))
            copies = copies_of(tree, objects)
            workload = Workload(
                where=name,
                role=role,
                words=words if "command" in container else (),
                grace_s=_grace_s(pod),
                grace="terminationGracePeriodSeconds",
                is_pod=True,
                prestop=_prestop(container),
                readiness=probe_of(container, "readinessProbe"),
                liveness=probe_of(container, "livenessProbe"),
                has_readiness=bool(table(container, "readinessProbe")),
                copies=copies,
                budget=budget_of(tree, objects, copies),
                scaler=scaler_of(tree, objects),
                settings=settings,
                stop_s=stop_s_of(inside) if role == "worker" else None,
            )
            found += Deployed((workload,))
    return found


def _grace_s(pod: Tree) -> float | None:
    return number(pod, "terminationGracePeriodSeconds") if "terminationGracePeriodSeconds" in pod else _GRACE_S


def _prestop(container: Tree) -> PreStop | None:
    hook = table(container, "lifecycle", "preStop")
    if not hook:
        return None
    if "sleep" in hook:
        return PreStop(seconds=number(hook, "sleep", "seconds"))
    return prestop_of(texts(hook, "exec", "command"))
