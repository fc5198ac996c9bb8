"""Objects of Kubernetes: workloads with their budgets and autoscalers, and balancers by their annotations."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from herdgate_gateway.deployments.model import Deployed, PreStop, Workload
from herdgate_gateway.deployments.readers import ingresses
from herdgate_gateway.deployments.readers.commands import ping_s, prestop_of, role_of
from herdgate_gateway.deployments.readers.containers import Found, settings_of, stop_s_of
from herdgate_gateway.deployments.readers.copies import budget_of, copies_of, scaler_of
from herdgate_gateway.deployments.readers.pods import container_of, probe_of, words_of
from herdgate_gateway.deployments.readers.selectors import beside
from herdgate_gateway.deployments.trees import Tree, number, table, tables, text, texts

__all__ = ["is_object", "read_objects"]

_GRACE_S = 30.0
"""Kubernetes' default of terminationGracePeriodSeconds."""

_TOLD = ("HERDGATE_",)
"""As if it were told variables of ours: whoever is nothing of herdgate's then is none."""


def is_object(tree: Any) -> bool:
    """Whether a document is an object of Kubernetes."""
    return bool(text(tree, "apiVersion") and text(tree, "kind"))


def read_objects(where: str, objects: Sequence[Tree], own: Path | None) -> Deployed:
    """The model of objects.

    Args:
        where: file or folder.
        own: settings of gateways whose own cannot be seen.
    """
    flat = [each for tree in objects for each in _flat(tree)]
    found, gateways = Deployed(), []
    for tree in flat:
        read = _read_workload(where, tree, flat, own)
        gateways += [tree] if any(each.role == "gateway" for each in read.workloads) else []
        found += read
    for tree in flat:
        told = tuple(ingresses.balancers(where, tree))
        if told and ingresses.leads_to(tree, flat, gateways):
            found += Deployed(balancers=told)
    return found


def _flat(tree: Tree) -> Iterator[Tree]:
    """What is in a List, or a DeploymentList."""
    if text(tree, "kind").endswith("List") and isinstance(tree.get("items"), list):
        kind = text(tree, "kind").removesuffix("List")
        yield from ({"kind": kind, **each} for each in tables(tree, "items"))
    else:
        yield tree


def _is_made_of_another(tree: Tree, objects: Iterable[Tree]) -> bool:
    """A ReplicaSet of a Deployment that is here, or a pod of such a one."""
    owners = {(text(each, "kind"), text(each, "name")) for each in tables(tree, "metadata", "ownerReferences")}
    return any((text(each, "kind"), text(each, "metadata", "name")) in owners for each in objects)


def _read_workload(where: str, tree: Tree, all_: Sequence[Tree], own: Path | None) -> Deployed:
    pod = table(tree, "spec") if text(tree, "kind") == "Pod" else table(tree, "spec", "template", "spec")
    found, candidates = Deployed(), []
    for container in tables(pod, "containers"):
        words = words_of(container)
        found += Deployed(ping_s=ping_s(words))
        candidates += [container] if role_of(text(container, "image"), words, _TOLD) else []
    if not candidates:  # as nearly all objects of a cluster
        return found
    objects = list(beside(tree, all_))
    if not _is_made_of_another(tree, objects):
        name = f"{where} {text(tree, 'kind')}/{text(tree, 'metadata', 'name')}"
        for container in candidates:
            found += _read_container(name, tree, pod, container, objects=objects, own=own)
    return found


def _read_container(
    name: str, tree: Tree, pod: Tree, container: Tree, *, objects: Sequence[Tree], own: Path | None
) -> Deployed:
    inside = container_of(pod, container, objects)
    role = role_of(text(container, "image"), inside.words, inside.environ.keys() | inside.hidden)
    if role is None:
        return Deployed()
    settings, unseen, faults = settings_of(inside, own) if role == "gateway" else Found()
    copies = copies_of(tree, objects)
    workload = Workload(
        where=name,
        role=role,
        words=tuple(inside.words),
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
        unseen=unseen,
        stop_s=stop_s_of(inside) if role == "worker" else None,
    )
    return Deployed((workload,), faults=tuple(f"{name}: {fault}" for fault in faults))


def _grace_s(pod: Tree) -> float | None:
    return number(pod, "terminationGracePeriodSeconds") if "terminationGracePeriodSeconds" in pod else _GRACE_S


def _prestop(container: Tree) -> PreStop | None:
    hook = table(container, "lifecycle", "preStop")
    if not hook:
        return None
    if "sleep" in hook:
        return PreStop(seconds=number(hook, "sleep", "seconds"))
    return prestop_of(texts(hook, "exec", "command"))
