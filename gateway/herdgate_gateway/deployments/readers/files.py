"""One file or folder, whatever it is: told by what stands in it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from herdgate_gateway.deployments.documents import read_documents
from herdgate_gateway.deployments.kustomize import is_kustomization, render
from herdgate_gateway.deployments.model import Deployed
from herdgate_gateway.deployments.names import SUFFIXES
from herdgate_gateway.deployments.readers.balancers import attributes, balancer_of
from herdgate_gateway.deployments.readers.cloudformation import is_template, read_template
from herdgate_gateway.deployments.readers.ecs import is_task, read_task
from herdgate_gateway.deployments.readers.kubernetes import is_object, read_objects
from herdgate_gateway.deployments.trees import tables
from herdgate_gateway.errors import HerdgateError

__all__ = ["read"]


def read(path: Path, own: Path | None, given: Mapping[str, object]) -> Deployed:
    """What a file or folder deploys.

    Args:
        own: settings of gateways whose own cannot be seen.
        given: values of the parameters of templates.

    Raises:
        HerdgateError: it cannot be read, or is nothing that is known here.
    """
    if not path.is_dir():
        return _read_documents(str(path), {str(path): read_documents(path)}, own, given)
    if is_kustomization(path):
        return read_objects(str(path), render(path), own)
    files = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES)
    if not files:
        raise HerdgateError(f"{path}: has neither a kustomization nor manifests in it; give a folder that has")
    return _read_documents(str(path), {str(file): read_documents(file) for file in files}, own, given)


def _read_documents(
    where: str, documents: Mapping[str, list[Any]], own: Path | None, given: Mapping[str, object]
) -> Deployed:
    """Objects of all files together; what else is in them, file by file."""
    if not any(documents.values()):
        raise HerdgateError(f"{where}: is empty; give a file that says something")
    found = read_objects(where, [each for told in documents.values() for each in told if is_object(each)], own)
    for file, told in documents.items():
        for each in told:
            if not is_object(each):
                found += _read_other(file, each, own, given)
    return found


def _read_other(where: str, tree: Any, own: Path | None, given: Mapping[str, object]) -> Deployed:
    if is_task(tree):
        return read_task(where, tree, own)
    if is_template(tree):
        return read_template(where, tree, own, given)
    if list(tables(tree, "Attributes")):
        return Deployed(balancers=(balancer_of(where, attributes(tree)),))
    raise HerdgateError(
        f"{where}: is nothing known here; give manifests of Kubernetes, an ECS task definition, "
        "a CloudFormation template, values of its parameters, or attributes of a target group or balancer"
    )
