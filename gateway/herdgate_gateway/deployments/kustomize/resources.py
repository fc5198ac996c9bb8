"""The objects that are rendered, and where they are found."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from herdgate_gateway.deployments.trees import Tree, table, text

__all__ = ["Resource", "Target", "pod_specs", "templates"]


@dataclass
class Resource:
    """One object.

    Attributes:
        tree: as it is by now.
        is_hashed: a ConfigMap that gets a hash of its content into its name.
    """

    tree: dict[str, Any]
    is_hashed: bool = False

    @property
    def kind(self) -> str:
        """Its kind."""
        return text(self.tree, "kind")

    @property
    def name(self) -> str:
        """Its name."""
        return text(self.tree, "metadata", "name")


@dataclass(frozen=True, slots=True)
class Target:
    """Which objects a patch is for. Kind and name are regular expressions that match the whole; empty: any."""

    kind: str = ""
    name: str = ""
    group: str = ""
    version: str = ""

    def matches(self, resource: Resource) -> bool:
        """Whether an object is meant."""
        group, _, version = text(resource.tree, "apiVersion").rpartition("/")
        asked = ((self.kind, resource.kind), (self.name, resource.name), (self.group, group), (self.version, version))
        return all(not wanted or re.fullmatch(wanted, value) for wanted, value in asked)


def templates(tree: Tree) -> Iterator[Any]:
    """The pod templates of an object: its own, and that of a CronJob's jobs."""
    for path in (("spec", "template"), ("spec", "jobTemplate", "spec", "template")):
        if found := table(tree, *path):
            yield found


def pod_specs(tree: Tree) -> Iterator[Any]:
    """What pods of an object are made of."""
    if text(tree, "kind") == "Pod":
        yield table(tree, "spec")
    for template in templates(tree):
        yield table(template, "spec")
