"""Balancers by what an Ingress or a Service of Kubernetes says of them: AWS' controller, and nginx'.

Sources: AWS Load Balancer Controller and ingress-nginx, their pages on annotations.
"""

from collections.abc import Iterator, Sequence

from herdgate_gateway.deployments.model import Balancer
from herdgate_gateway.deployments.readers.balancers import DEREGISTRATION_S, IDLE_S, balancer_of
from herdgate_gateway.deployments.readers.selectors import beside
from herdgate_gateway.deployments.trees import Tree, number, table, tables, text

__all__ = ["balancers", "leads_to"]

_ALB = "alb.ingress.kubernetes.io/"
_NLB = "service.beta.kubernetes.io/aws-load-balancer-"
_NGINX = "nginx.ingress.kubernetes.io/"
_NGINX_READ_S = 60.0


def balancers(where: str, tree: Tree) -> Iterator[Balancer]:
    """Those of an object."""
    notes, kind = table(tree, "metadata", "annotations"), text(tree, "kind")
    name = f"{where} {kind}/{text(tree, 'metadata', 'name')}"
    wanted = text(tree, "spec", "ingressClassName") or text(notes, "kubernetes.io/ingress.class")
    if kind == "Ingress" and (wanted == "alb" or any(key.startswith(_ALB) for key in notes)):
        yield _of_aws(name, notes, f"{_ALB}target-group-attributes", f"{_ALB}load-balancer-attributes", "application")
    elif kind == "Ingress" and (wanted == "nginx" or any(key.startswith(_NGINX) for key in notes)):
        told = f"{_NGINX}proxy-read-timeout"
        yield Balancer(name, None, number(notes, told) if told in notes else _NGINX_READ_S)
    elif kind == "Service" and (f"{_NLB}type" in notes or f"{_NLB}target-group-attributes" in notes):
        yield _of_aws(name, notes, f"{_NLB}target-group-attributes", f"{_NLB}attributes", "network")


def leads_to(tree: Tree, objects: Sequence[Tree], gateways: Sequence[Tree]) -> bool:
    """Whether what stands behind an Ingress or a Service may be gateways: not if it is seen to be something else.

    Args:
        gateways: the workloads of them, that are known.
    """
    near = list(beside(tree, objects))
    names = set(_services_behind(tree))
    services = [each for each in near if text(each, "kind") == "Service" and text(each, "metadata", "name") in names]
    wanted = [table(each, "spec", "selector") for each in services]
    if not gateways or len(wanted) < len(names) or not all(wanted) or not names:
        return True
    pods = [table(each, "spec", "template", "metadata", "labels") for each in beside(tree, gateways)]
    return any(each.items() <= labels.items() for each in wanted for labels in pods)


def _services_behind(tree: Tree) -> Iterator[str]:
    if text(tree, "kind") == "Service":
        yield text(tree, "metadata", "name")
    ways = [way for rule in tables(tree, "spec", "rules") for way in tables(rule, "http", "paths")]
    for backend in [table(tree, "spec", "defaultBackend"), *(table(way, "backend") for way in ways)]:
        if name := text(backend, "service", "name"):
            yield name


def _of_aws(name: str, notes: Tree, group: str, balancer: str, kind: str) -> Balancer:
    told = {**_pairs(text(notes, group)), **_pairs(text(notes, balancer))}
    return balancer_of(name, told, deregistration_s=DEREGISTRATION_S, idle_s=IDLE_S[kind])


def _pairs(written: str) -> dict[str, str]:
    """`a=1,b=2` as a table."""
    return {key.strip(): value.strip() for key, _, value in (each.partition("=") for each in written.split(","))}
