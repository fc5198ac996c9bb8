"""Strategic merge patches: what a table says holds over what is there, null removes, lists merge by their key.

Source: Kubernetes, "Update API Objects in Place Using kubectl patch". Lists that have no key are replaced whole; in
others what the patch names comes first, as kustomize has it.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["merged"]

_KEYS = {
    "containers": ("name",),
    "env": ("name",),
    "ephemeralContainers": ("name",),
    "hostAliases": ("ip",),
    "imagePullSecrets": ("name",),
    "initContainers": ("name",),
    "ports": ("containerPort", "port"),
    "secrets": ("name",),
    "topologySpreadConstraints": ("topologyKey",),
    "volumeDevices": ("devicePath",),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
"""By the name of the list: what tells its entries apart; of several the first that they have."""

_DIRECTIVE = "$patch"


def merged(there: Mapping[str, Any], patch: Mapping[str, Any], *, is_known: bool = True) -> dict[str, Any]:
    """The table with the patch.

    Args:
        is_known: an object of Kubernetes' own; lists of others are replaced whole.
    """
    if patch.get(_DIRECTIVE) == "replace":
        return _plain(patch)
    result = dict(there)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping):
            old = result.get(key)
            if value.get(_DIRECTIVE) == "delete":
                result.pop(key, None)
            else:
                result[key] = merged(old if isinstance(old, Mapping) else {}, value, is_known=is_known)
        elif isinstance(value, list) and isinstance(result.get(key), list) and is_known:
            result[key] = _merged_list(key, result[key], value)
        else:
            result[key] = value
    return result


def _plain(patch: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in patch.items() if key != _DIRECTIVE}


def _merged_list(name: str, there: list[Any], patch: list[Any]) -> list[Any]:
    key = next((key for key in _KEYS.get(name, ()) if all(_has(each, key) for each in (*there, *patch))), None)
    if key is None:
        return patch
    old = {each[key]: each for each in there}
    changed = [merged(old.pop(each[key], {}), each) for each in patch if each.get(_DIRECTIVE) != "delete"]
    gone = {each[key] for each in patch if each.get(_DIRECTIVE) == "delete"}
    return [*changed, *(each for name, each in old.items() if name not in gone)]


def _has(entry: Any, key: str) -> bool:
    return isinstance(entry, Mapping) and key in entry
