"""ECS: a task definition, and the service that runs it.

Sources: Amazon ECS, "Task definition parameters" (stopTimeout: 30 s by default, on Fargate 120 s at most) and "Service
definition parameters" (minimumHealthyPercent 100, maximumPercent 200).
"""

import math
from pathlib import Path

from herdgate_gateway.deployments.model import Copies, Deployed, Workload
from herdgate_gateway.deployments.readers.commands import ping_s, role_of
from herdgate_gateway.deployments.readers.containers import Container, settings_of, stop_s_of
from herdgate_gateway.deployments.trees import Tree, at, number, table, tables, text, texts

__all__ = ["copies_of", "is_task", "read_task"]

_STOP_S = 30.0
_FARGATE_STOP_S = 120.0
_LEAST_HEALTHY, _MOST = 100.0, 200.0


def is_task(tree: object) -> bool:
    """Whether a document is a task definition, bare or as AWS tells it."""
    return bool(at(tree, "containerDefinitions") or at(tree, "taskDefinition", "containerDefinitions"))


def read_task(where: str, tree: Tree, own: Path | None, copies: Copies | None = None) -> Deployed:
    """The model of a task definition.

    Args:
        own: settings of gateways whose own cannot be seen.
        copies: of its service; None: not known.
    """
    task = table(tree, "taskDefinition") or tree
    found = Deployed()
    for container in tables(task, "containerDefinitions"):
        words = texts(container, "entryPoint") + texts(container, "command")
        found += Deployed(ping_s=ping_s(words))
        if role := role_of(text(container, "image"), words):
            name = f"{where} {text(container, 'name')}"
            inside = _container(container, words)
            settings, faults = settings_of(inside, own) if role == "gateway" else (None, ())
            is_fargate = "FARGATE" in texts(task, "requiresCompatibilities")
            workload = Workload(
                where=name,
                role=role,
                words=words if "entryPoint" in container else (),
                grace_s=number(container, "stopTimeout") if "stopTimeout" in container else _STOP_S,
                grace="stopTimeout",
                most_grace_s=_FARGATE_STOP_S if is_fargate else None,
                copies=copies,
                settings=settings,
                stop_s=stop_s_of(inside) if role == "worker" else None,
            )
            found += Deployed((workload,), faults=tuple(f"{name}: {fault}" for fault in faults))
    return found


def _container(container: Tree, words: tuple[str, ...]) -> Container:
    told = {text(each, "name"): each.get("value") for each in tables(container, "environment")}
    known = {name: str(value) for name, value in told.items() if isinstance(value, str | int | float)}
    hidden = {text(each, "name") for each in tables(container, "secrets")} | (told.keys() - known.keys())
    return Container(words, known, frozenset(hidden), lambda _: None)


def copies_of(service: Tree) -> Copies | None:
    """Of a service, keys as the API has them; None: only AWS knows."""
    wanted = number(service, "desiredCount") if "desiredCount" in service else 1.0
    if wanted is None:
        return None
    count, how = int(wanted), table(service, "deploymentConfiguration")
    healthy, most = number(how, "minimumHealthyPercent"), number(how, "maximumPercent")
    kept = math.ceil(count * (_LEAST_HEALTHY if healthy is None else healthy) / 100)
    extra = math.floor(count * (_MOST if most is None else most) / 100) - count
    away = max(0, count - kept)
    return Copies(count, count, away, max(1, min(count, away + max(0, extra))), 0.0)
