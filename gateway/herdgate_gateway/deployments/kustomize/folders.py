"""A kustomization folder as objects."""

import copy
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from herdgate_gateway.deployments.documents import parsed, read_documents
from herdgate_gateway.deployments.kustomize.config_maps import GENERATOR_KEYS, generate, with_hashes
from herdgate_gateway.deployments.kustomize.patches import PATCH_KEYS, TARGET_KEYS, apply_patch
from herdgate_gateway.deployments.kustomize.resources import Resource
from herdgate_gateway.deployments.kustomize.transformers import (
    IMAGE_KEYS,
    LABEL_KEYS,
    put_images,
    put_labels,
    put_namespace,
    put_replicas,
)
from herdgate_gateway.deployments.trees import Tree, table, tables, text, texts
from herdgate_gateway.errors import HerdgateError

__all__ = ["is_kustomization", "render"]

_FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_KEYS = frozenset({"apiVersion", "kind", "metadata", "resources", "namespace", "generatorOptions"})
_LISTS = {
    "patches": PATCH_KEYS,
    "configMapGenerator": GENERATOR_KEYS,
    "labels": LABEL_KEYS,
    "images": IMAGE_KEYS,
    "replicas": frozenset({"name", "count"}),
}
"""Lists of tables, and the keys that these may have."""


def is_kustomization(folder: Path) -> bool:
    """Whether a folder is one."""
    return any((folder / name).is_file() for name in _FILES)


def render(folder: Path) -> list[dict[str, Any]]:
    """All objects of a kustomization.

    Raises:
        HerdgateError: a file cannot be read, or says something that is not known here.
    """
    resources = _resources(folder, ())
    with_hashes(resources)
    return [each.tree for each in resources]


def _resources(folder: Path, inside: tuple[Path, ...]) -> list[Resource]:
    file = next((folder / name for name in _FILES if (folder / name).is_file()), None)
    if file is None:
        raise HerdgateError(f"{folder}: is no kustomization; it has no file {_FILES[0]}")
    place = folder.resolve()
    if place in inside:
        raise HerdgateError(f"{file}: is a resource of itself; take it out of resources")
    wanted = _read(file)
    resources = [each for name in texts(wanted, "resources") for each in _named(folder, name, (*inside, place))]
    for each in tables(wanted, "configMapGenerator"):
        resources = generate(resources, each, folder, table(wanted, "generatorOptions"))
    for each in tables(wanted, "patches"):
        resources = apply_patch(resources, each, _patches(each, folder), str(file))
    return _transformed(resources, wanted)


def _read(file: Path) -> Tree:
    documents = read_documents(file)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise HerdgateError(f"{file}: holds {len(documents)} documents; write one table of a kustomization")
    for unknown in _unknown(documents[0]):
        raise HerdgateError(
            f"{file}: {unknown} is not known here; render it with `kubectl kustomize {file.parent}` and give that file"
        )
    return documents[0]


def _unknown(wanted: Tree) -> Iterator[str]:
    yield from (key for key in wanted if key not in _KEYS and key not in _LISTS)
    yield from (
        f"generatorOptions.{key}" for key in table(wanted, "generatorOptions") if key != "disableNameSuffixHash"
    )
    for name, keys in _LISTS.items():
        for each in tables(wanted, name):
            yield from (f"{name}.{key}" for key in each if key not in keys)
            yield from (f"{name}.target.{key}" for key in table(each, "target") if key not in TARGET_KEYS)


def _named(folder: Path, name: str, inside: tuple[Path, ...]) -> Iterable[Resource]:
    path = folder / name
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except OSError:  # its name is too long
        is_folder = is_there = False
    if not is_there:
        raise HerdgateError(f"{folder}: the resource {name[:300]} is not on this machine; give resources that are")
    if is_folder:
        return _resources(path, inside)
    return [Resource(copy.deepcopy(each)) for each in read_documents(path) if isinstance(each, dict)]


def _patches(patch: Tree, folder: Path) -> list[Any]:
    if path := text(patch, "path"):
        return read_documents(folder / path)
    return parsed(text(patch, "patch"), str(folder))


def _transformed(resources: list[Resource], wanted: Tree) -> list[Resource]:
    if namespace := text(wanted, "namespace"):
        put_namespace(resources, namespace)
    for each in tables(wanted, "labels"):
        put_labels(resources, each)
    for each in tables(wanted, "replicas"):
        put_replicas(resources, each)
    for each in tables(wanted, "images"):
        put_images(resources, each)
    return resources
