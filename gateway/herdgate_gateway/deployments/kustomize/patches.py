"""Patches of a kustomization: tables merge, lists are JSON patches."""

import re
from collections.abc import Sequence
from typing import Any

from herdgate_gateway.deployments.kustomize.merging import merged
from herdgate_gateway.deployments.kustomize.pointers import patched
from herdgate_gateway.deployments.kustomize.resources import Resource, Target
from herdgate_gateway.deployments.trees import Tree, table, text
from herdgate_gateway.errors import HerdgateError

__all__ = ["PATCH_KEYS", "TARGET_KEYS", "apply_patch"]

PATCH_KEYS = frozenset({"path", "patch", "target"})
TARGET_KEYS = frozenset({"group", "version", "kind", "name"})

_OWN_GROUPS = ("", "apps", "autoscaling", "batch", "policy")
_OWN = ".k8s.io"


def apply_patch(there: Sequence[Resource], patch: Tree, contents: Sequence[Any], where: str) -> list[Resource]:
    """The resources with a patch.

    Args:
        contents: the documents of the patch.

    Raises:
        HerdgateError: it is for nothing that is there, or cannot be applied.
    """
    resources = list(there)
    for content in contents:
        if not isinstance(content, dict | list):
            raise HerdgateError(f"{where}: a patch is {type(content).__name__}; write a table, or a list of operations")
        target = _target(patch, content)
        try:
            meant = [each for each in resources if target.matches(each)]
        except re.error as error:
            raise HerdgateError(f"{where}: the target {target.kind} {target.name} is no pattern ({error})") from None
        if not meant:
            raise HerdgateError(f"{where}: the patch of {target.kind} {target.name} is for nothing that is there")
        gone = [each for each in meant if not _changed(each, content, where)]
        resources = [each for each in resources if each not in gone]
    return resources


def _target(patch: Tree, content: Any) -> Target:
    if asked := table(patch, "target"):
        return Target(**{key: text(asked, key) for key in asked})
    return Target(text(content, "kind"), text(content, "metadata", "name"))


def _changed(resource: Resource, content: Any, where: str) -> bool:
    """Change it; False: it shall be gone."""
    if isinstance(content, list):
        resource.tree = patched(resource.tree, content, where)
    elif content.get("$patch") == "delete":
        return False
    else:
        kind, name = resource.tree.get("kind"), table(resource.tree, "metadata").get("name")
        resource.tree = merged(resource.tree, content, is_known=_is_known(resource))
        resource.tree |= {"kind": kind, "metadata": {**table(resource.tree, "metadata"), "name": name}}
    return True


def _is_known(resource: Resource) -> bool:
    """An object of Kubernetes' own kinds, whose lists have keys."""
    group = text(resource.tree, "apiVersion").rpartition("/")[0]
    return group in _OWN_GROUPS or group.endswith(_OWN)
