"""Containers of pods: command, environment, files and probes."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from herdgate_gateway.deployments.model import Probe
from herdgate_gateway.deployments.readers.commands import is_own_image
from herdgate_gateway.deployments.readers.containers import Container, Mounted
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
        told = maps.get(text(source, "configMapRef", "name"), {})
        known |= {f"{text(source, 'prefix')}{key}": str(value) for key, value in told.items()}
    for variable in tables(container, "env"):
        name, value = text(variable, "name"), _value(maps, variable)
        known.pop(name, None)
        if value is None:
            hidden.add(name)
        else:
            known[name] = value

    def mounted(path: str) -> Mounted | None:
        return _mounted(pod, container, maps, path)

    names = [text(source, "configMapRef", "name") for source in tables(container, "envFrom")]
    return Container(
        words=words_of(container),
        environ=known,
        hidden=frozenset(hidden),
        sources=tuple(f"the ConfigMap {name}" for name in names if name and name not in maps),
        secrets=tuple(
            f"the Secret {name}" for each in tables(container, "envFrom") if (name := text(each, "secretRef", "name"))
        ),
        mounted=mounted,
        is_own_image=is_own_image(text(container, "image")),
    )


def _value(maps: dict[str, Tree], variable: Tree) -> str | None:
    """Of a variable; None: it is in a secret, or in what only the cluster knows."""
    if "valueFrom" not in variable:
        return str(variable.get("value", ""))
    origin = table(variable, "valueFrom", "configMapKeyRef")
    found = at(maps.get(text(origin, "name"), {}), text(origin, "key"))
    return None if found is None else str(found)


def _mounted(pod: Tree, container: Tree, maps: dict[str, Tree], path: str) -> Mounted | None:
    mounts = sorted(tables(container, "volumeMounts"), key=lambda each: len(text(each, "mountPath")), reverse=True)
    for mount in mounts:  # the one that is nearest holds
        key = _below(path, text(mount, "mountPath"), text(mount, "subPath"))
        if key is not None:
            volume = next((each for each in tables(pod, "volumes") if each.get("name") == mount.get("name")), {})
            return _inside(volume, key, maps)
    return None


def _inside(volume: Tree, key: str, maps: dict[str, Tree]) -> Mounted:
    name = text(volume, "configMap", "name")
    for item in tables(volume, "configMap", "items"):
        key = text(item, "key") if text(item, "path") == key else key
    if key in maps.get(name, {}):
        return Mounted(str(maps[name][key]), f"{key} of ConfigMap {name}")
    return Mounted(None, f"{key} of the ConfigMap {name}" if name else f"the volume {text(volume, 'name')}")


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
