"""Containers of pods: command, environment, files and probes."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from herdgate_gateway.deployments.model import Probe
from herdgate_gateway.deployments.readers.containers import Container
from herdgate_gateway.deployments.trees import Tree, at, number, table, tables, text, texts

__all__ = ["container_of", "probe_of", "words_of"]


def words_of(container: Tree) -> tuple[str, ...]:
    """Entry point and arguments, as far as they are given."""
    return texts(container, "command") + texts(container, "args")


def container_of(pod: Tree, container: Tree, objects: Sequence[Tree]) -> Container:
    """What a container is told by its pod, and by ConfigMaps among the objects."""
    maps = {
        text(each, "metadata", "name"): table(each, "data") for each in objects if text(each, "kind") == "ConfigMap"
    }
    known: dict[str, str] = {}
    hidden: set[str] = set()
    for source in tables(container, "envFrom"):
        known |= {
            f"{text(source, 'prefix')}{key}": str(value) for key, value in _map(maps, source, "configMapRef").items()
        }
    for variable in tables(container, "env"):
        name, value = text(variable, "name"), _value(maps, variable)
        known.pop(name, None)
        if value is None:
            hidden.add(name)
        else:
            known[name] = value

    def mounted(path: str) -> tuple[str, str] | None:
        return _mounted(pod, container, maps, path)

    return Container(words_of(container), known, frozenset(hidden), mounted)


def _map(maps: dict[str, Tree], source: Tree, key: str) -> Tree:
    return maps.get(text(source, key, "name"), {})


def _value(maps: dict[str, Tree], variable: Tree) -> str | None:
    """Of a variable; None: it is in a secret, or in what only the cluster knows."""
    if "valueFrom" not in variable:
        return str(variable.get("value", ""))
    found = at(
        _map(maps, table(variable, "valueFrom"), "configMapKeyRef"),
        text(variable, "valueFrom", "configMapKeyRef", "key"),
    )
    return None if found is None else str(found)


def _mounted(pod: Tree, container: Tree, maps: dict[str, Tree], path: str) -> tuple[str, str] | None:
    for mount in tables(container, "volumeMounts"):
        key = _below(path, text(mount, "mountPath"), text(mount, "subPath"))
        volume = next((each for each in tables(pod, "volumes") if each.get("name") == mount.get("name")), {})
        name = text(volume, "configMap", "name")
        for item in tables(volume, "configMap", "items"):
            key = text(item, "key") if text(item, "path") == key else key
        if name and key and key in maps.get(name, {}):
            return str(maps[name][key]), f"{key} of ConfigMap {name}"
    return None


def _below(path: str, place: str, part: str) -> str | None:
    """The key of a file under a mount; None: it is not there."""
    if part:
        return part if path == place else None
    pure = PurePosixPath(path)
    return str(pure.relative_to(place)) if place and pure.is_relative_to(place) else None


def probe_of(container: Tree, name: str) -> Probe | None:
    """A probe over HTTP or TCP; None: none, or another one."""
    for kind in ("httpGet", "tcpSocket"):
        asked = table(container, name, kind)
        port = _port(container, asked)
        if port is not None:
            return Probe(port, text(asked, "path"))
    return None


def _port(container: Tree, asked: Tree) -> int | None:
    named = text(asked, "port")
    for each in tables(container, "ports"):
        if named and text(each, "name") == named:
            return _whole(number(each, "containerPort"))
    return _whole(number(asked, "port"))


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
