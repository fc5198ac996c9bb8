"""ECS: a task definition, and the service that runs it.

Sources: Amazon ECS, "Task definition parameters" (stopTimeout: 30 s by default, on Fargate 120 s at most) and "Service
definition parameters" (minimumHealthyPercent 100, maximumPercent 200).
"""

import math
from pathlib import Path
from typing import Any

from herdgate_gateway.deployments.model import Copies, Deployed, Scaler, Workload
from herdgate_gateway.deployments.readers.commands import is_own_image, ping_s, role_of
from herdgate_gateway.deployments.readers.containers import Container, Found, settings_of, stop_s_of
from herdgate_gateway.deployments.readers.scaling import Scaling
from herdgate_gateway.deployments.trees import Tree, at, number, table, tables, text, texts

__all__ = ["copies_of", "is_task", "read_task"]

_STOP_S = 30.0
_FARGATE_STOP_S = 120.0
_LEAST_HEALTHY, _MOST = 100.0, 200.0


def is_task(tree: object) -> bool:
    """Whether a document is a task definition, bare or as AWS tells it, or its containers alone, as of Terraform."""
    if isinstance(tree, list):
        return bool(tree) and all(text(each, "name") and text(each, "image") for each in tree)
    return bool(at(tree, "containerDefinitions") or at(tree, "taskDefinition", "containerDefinitions"))


def read_task(
    where: str, tree: Any, own: Path | None, copies: Copies | None = None, scaler: Scaler | None = None
) -> Deployed:
    """The model of a task definition.

    Args:
        own: settings of gateways whose own cannot be seen.
        copies: of its service; None: not known.
        scaler: of its service; None: there is none.
    """
    task = {"containerDefinitions": tree} if isinstance(tree, list) else table(tree, "taskDefinition") or tree
    found = Deployed()
    for container in tables(task, "containerDefinitions"):
        words = texts(container, "entryPoint") + texts(container, "command")
        found += Deployed(ping_s=ping_s(words))
        inside = _container(container, words)
        if role := role_of(text(container, "image"), words, inside.environ.keys() | inside.hidden):
            name = f"{where} {text(container, 'name')}"
            settings, unseen, faults = settings_of(inside, own) if role == "gateway" else Found()
            is_fargate = "FARGATE" in texts(task, "requiresCompatibilities")
            workload = Workload(
                where=name,
                role=role,
                words=words,
                grace_s=number(container, "stopTimeout") if "stopTimeout" in container else _STOP_S,
                grace="stopTimeout",
                most_grace_s=_FARGATE_STOP_S if is_fargate else None,
                copies=copies,
                scaler=scaler,
                settings=settings,
                unseen=unseen,
                stop_s=stop_s_of(inside) if role == "worker" else None,
            )
            found += Deployed((workload,), faults=tuple(f"{name}: {fault}" for fault in faults))
    return found


def _container(container: Tree, words: tuple[str, ...]) -> Container:
    told = {text(each, "name"): each.get("value") for each in tables(container, "environment")}
    known = {name: str(value) for name, value in told.items() if isinstance(value, str | int | float)}
    hidden = {text(each, "name") for each in tables(container, "secrets")} | (told.keys() - known.keys())
    files = tuple(f"the file {text(each, 'value')}" for each in tables(container, "environmentFiles"))
    own = is_own_image(text(container, "image"))
    return Container(words, known, frozenset(hidden), files, (), lambda _: None, own)


def copies_of(service: Tree, scaling: Scaling | None = None) -> Copies | None:
    """Of a service, keys as the API has them; None: only AWS knows.

    Args:
        scaling: what changes their number; None: nothing does.
    """
    wanted = number(service, "desiredCount") if "desiredCount" in service else 1.0
    least, most = (wanted, wanted) if scaling is None else (scaling.least, scaling.most)
    if least is None or most is None:
        return None
    how = table(service, "deploymentConfiguration")
    away, _ = _replaced(how, int(least))
    return Copies(int(least), int(most), away, max(1, min(int(most), sum(_replaced(how, int(most))))), 0.0)


def _replaced(how: Tree, count: int) -> tuple[int, int]:
    """How many may be missing of so many during a rollout, and how many may be there beyond them."""
    healthy, most = number(how, "minimumHealthyPercent"), number(how, "maximumPercent")
    kept = math.ceil(count * (_LEAST_HEALTHY if healthy is None else healthy) / 100)
    extra = math.floor(count * (_MOST if most is None else most) / 100) - count
    return max(0, count - kept), max(0, extra)
