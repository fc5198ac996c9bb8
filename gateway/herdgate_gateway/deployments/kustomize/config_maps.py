"""ConfigMaps that a kustomization makes of files and texts, and the hash in their names.

The hash changes the name with the content, so that a change of the settings starts a rollout. It is that of kustomize
(api/hasher): the first 10 hex digits of SHA-256 over the JSON of kind, data, and a name that is always empty, with
digits that could make words replaced.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from herdgate_gateway.deployments.documents import read_text
from herdgate_gateway.deployments.kustomize.resources import Resource, pod_specs
from herdgate_gateway.deployments.trees import Tree, flag, tables, text, texts
from herdgate_gateway.errors import HerdgateError

__all__ = ["GENERATOR_KEYS", "generate", "with_hashes"]

GENERATOR_KEYS = frozenset({"name", "behavior", "files", "literals", "options"})
_LETTERS = str.maketrans("013ae", "ghkmt")


def generate(there: list[Resource], wanted: Tree, folder: Path, options: Tree) -> list[Resource]:
    """The resources with one ConfigMap more, or with other content of one that was generated before.

    Raises:
        HerdgateError: a file cannot be read, or there is nothing to change.
    """
    name, behavior = text(wanted, "name"), text(wanted, "behavior") or "create"
    data = dict(_entries(wanted, folder))
    is_hashed = not (flag(options, "disableNameSuffixHash") or flag(wanted, "options", "disableNameSuffixHash"))
    if behavior == "create":
        tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
        return [*there, Resource(tree, is_hashed)]
    old = next((each for each in there if each.kind == "ConfigMap" and each.name == name), None)
    if old is None or behavior not in ("merge", "replace"):
        raise HerdgateError(f"{folder}: cannot {behavior} the ConfigMap {name}; it has to be generated below")
    kept = old.tree.get("data", {}) if behavior == "merge" else {}
    old.tree = {**old.tree, "data": {**kept, **data}}
    old.is_hashed = is_hashed
    return there


def _entries(wanted: Tree, folder: Path) -> Iterator[tuple[str, str]]:
    for file in texts(wanted, "files"):
        key, _, path = file.rpartition("=")
        yield key or Path(path).name, read_text(folder / path)
    for literal in texts(wanted, "literals"):
        key, _, value = literal.partition("=")
        yield key, value.strip("'\"") if value[:1] == value[-1:] else value


def with_hashes(resources: Sequence[Resource]) -> None:
    """Put the hashes into the names, and the names into what refers to them."""
    new = {}
    for each in resources:
        if each.is_hashed:
            new[each.name] = f"{each.name}-{_hash(each)}"
            each.tree["metadata"] = {**each.tree["metadata"], "name": new[each.name]}
    for each in resources:
        for spec in pod_specs(each.tree):
            for reference, key in _references(spec):
                reference[key] = new.get(text(reference, key), reference[key])


def _hash(resource: Resource) -> str:
    told = {"kind": "ConfigMap", "name": "", "data": resource.tree.get("data") or {}}
    encoded = _escaped(json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
    return hashlib.sha256(encoded.encode()).hexdigest()[:10].translate(_LETTERS)


def _escaped(encoded: str) -> str:
    """As Go writes JSON: with signs that mean something in HTML escaped."""
    for sign in "<>&\u2028\u2029":
        encoded = encoded.replace(sign, f"\\u{ord(sign):04x}")
    return encoded


def _references(spec: Any) -> Iterator[tuple[Any, str]]:
    """Where a pod names a ConfigMap."""
    for volume in tables(spec, "volumes"):
        yield from _named(volume.get("configMap"))
        for source in tables(volume, "projected", "sources"):
            yield from _named(source.get("configMap"))
    for container in (*tables(spec, "containers"), *tables(spec, "initContainers")):
        for each in tables(container, "envFrom"):
            yield from _named(each.get("configMapRef"))
        for each in tables(container, "env"):
            origin = each.get("valueFrom")
            yield from _named(origin.get("configMapKeyRef") if isinstance(origin, dict) else None)


def _named(reference: Any) -> Iterator[tuple[Any, str]]:
    if isinstance(reference, dict) and "name" in reference:
        yield reference, "name"
