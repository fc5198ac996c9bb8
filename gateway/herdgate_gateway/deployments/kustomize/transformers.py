"""What a kustomization does to all its objects: namespace, labels, replicas, images."""

import re
from collections.abc import Iterable
from typing import Any

from herdgate_gateway.deployments.kustomize.resources import Resource, pod_specs, templates
from herdgate_gateway.deployments.trees import Tree, at, flag, table, tables, text

__all__ = ["IMAGE_KEYS", "LABEL_KEYS", "put_images", "put_labels", "put_namespace", "put_replicas"]

LABEL_KEYS = frozenset({"pairs", "includeTemplates"})
IMAGE_KEYS = frozenset({"name", "newName", "newTag", "digest"})

_OF_THE_CLUSTER = frozenset(
    {"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Namespace", "PersistentVolume", "PriorityClass"}
    | {"StorageClass"}
)
_IMAGE = re.compile(r"(?P<name>[^@]+?)(?P<tag>:[^/:@]+)?(?P<digest>@.+)?")


def put_namespace(resources: Iterable[Resource], namespace: str) -> None:
    """All but those of the whole cluster are in it."""
    for each in resources:
        if each.kind not in _OF_THE_CLUSTER:
            each.tree["metadata"] = {**table(each.tree, "metadata"), "namespace": namespace}
        for subject in tables(each.tree, "subjects"):
            if isinstance(subject, dict) and text(subject, "kind") == "ServiceAccount":
                subject["namespace"] = namespace


def put_labels(resources: Iterable[Resource], labels: Tree) -> None:
    """All have them, and pods where templates are included."""
    pairs = table(labels, "pairs")
    for each in resources:
        places = [each.tree, *(templates(each.tree) if flag(labels, "includeTemplates") else ())]
        for place in places:
            metadata = table(place, "metadata")
            place["metadata"] = {**metadata, "labels": {**table(metadata, "labels"), **pairs}}


def put_replicas(resources: Iterable[Resource], wanted: Tree) -> None:
    """Those of the name have so many pods."""
    for each in resources:
        if each.name == text(wanted, "name") and each.kind in ("Deployment", "StatefulSet", "ReplicaSet"):
            each.tree["spec"] = {**table(each.tree, "spec"), "replicas": at(wanted, "count")}


def put_images(resources: Iterable[Resource], wanted: Tree) -> None:
    """Containers of the image have the other one."""
    for each in resources:
        for spec in pod_specs(each.tree):
            for container in (*tables(spec, "containers"), *tables(spec, "initContainers")):
                _put_image(container, wanted)


def _put_image(container: Any, wanted: Tree) -> None:
    found = _IMAGE.fullmatch(text(container, "image"))
    if found is None or found["name"] != text(wanted, "name"):
        return
    tag, digest = found["tag"] or "", found["digest"] or ""
    if text(wanted, "digest"):
        tag, digest = "", f"@{wanted['digest']}"
    elif "newTag" in wanted:
        tag, digest = f":{wanted['newTag']}", ""
    container["image"] = (text(wanted, "newName") or found["name"]) + tag + digest
