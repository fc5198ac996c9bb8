"""The settings of a gateway, and the timer of a worker, as their container would find them.

Where a part of them is elsewhere, in a Secret or in a file of the image, that is told, never guessed.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from herdgate_gateway.deployments.readers.commands import flags, options
from herdgate_gateway.errors import SettingsError
from herdgate_gateway.settings import CONFIG_VARIABLE, Settings, load

__all__ = ["CONFIG_FILE", "IMAGE_SETTINGS", "Container", "Found", "Mounted", "settings_of", "stop_s_of"]

CONFIG_FILE = "/etc/herdgate/herdgate.toml"
"""Where the image looks for settings."""

IMAGE_SETTINGS = """
listen = ["0.0.0.0:8000"]
admin = { listen = "0.0.0.0:9901", socket = "/run/herdgate/control.sock" }
drain = { settle_s = 5 }
"""
"""What stands there in the image itself."""

_STOP_VARIABLE = "HERDGATE_WORKER__STOP_S"
_STOP_S = 30.0
_STAND_INS = {
    "HERDGATE_FLEET__REDIS": "redis://in-a-secret",
    "HERDGATE_DRAIN__AWS__TARGET_GROUPS": "arn:aws:elasticloadbalancing:us-east-1:000000000000:targetgroup/elsewhere/0",
    "HERDGATE_ADMIN__TOKEN": "stands-in-a-secret-stands-in-a-secret",
}
"""For values that are elsewhere, where all that matters here is that there is one."""

_IN_SECRETS = ("HERDGATE_FLEET__REDIS", "HERDGATE_ADMIN__TOKEN")
"""What is taken to be in a Secret that is not here."""

_RULED = ("ADMIN__", "DRAIN__", "LISTEN", "MAX_OPEN", "RATE", "RELAY__", "ROUTES")
_JUDGED = tuple(f"HERDGATE_{name}" for name in _RULED)
"""How variables begin that the rules go by; any other one may be elsewhere."""

_OPTIONS = {
    "--listen": "listen",
    "--processes": "processes",
    "--worker": "workers",
    "--rate": "rate",
    "--burst": "burst",
    "--admin": "admin.listen",
}


class Mounted(NamedTuple):
    """A file that is put into a container.

    Attributes:
        content: None: it cannot be seen.
    """

    content: str | None
    where: str


@dataclass(frozen=True, slots=True)
class Container:
    """What of one matters here.

    Attributes:
        words: of its command.
        environ: what it is told.
        hidden: names of variables whose values are elsewhere: in secrets, at the platform.
        sources: of variables that are not here, with whatever they hold.
        secrets: Secrets whose keys are variables; taken to hold what is secret, and no timers.
        mounted: finds a file that is put into it; None: none is.
        is_own_image: ours, by its name.
    """

    words: Sequence[str]
    environ: Mapping[str, str]
    hidden: frozenset[str]
    sources: tuple[str, ...]
    secrets: tuple[str, ...]
    mounted: Callable[[str], Mounted | None]
    is_own_image: bool


class Found(NamedTuple):
    """The settings of a gateway.

    Attributes:
        settings: None: nothing can be said of them.
        unseen: where more of them are.
        faults: lines about what is wrong with them.
    """

    settings: Settings | None = None
    unseen: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def settings_of(container: Container, own: Path | None) -> Found:
    """The settings that a gateway would start with, as far as they are here.

    Args:
        own: settings to take where the container names none that can be seen.
    """
    file, unseen = _file(container, own), [*container.sources, *_judged(container.hidden)]
    if isinstance(file, Mounted) and file.content is None:
        unseen.insert(0, file.where)
    if unseen:
        return Found(None, (*unseen, *container.secrets))
    given = options(container.words, _OPTIONS)
    environ = {name: value for name, value in container.environ.items() if name != CONFIG_VARIABLE}
    named = container.hidden | (set(_IN_SECRETS) - environ.keys() if container.secrets else set())
    environ |= {name: value for name, value in _STAND_INS.items() if name in named}
    settings, faults = _loaded(given, file, environ)
    return Found(settings, container.secrets, faults)


def _file(container: Container, own: Path | None) -> Mounted | Path | None:
    asked = [*flags(container.words, "--config"), container.environ.get(CONFIG_VARIABLE), CONFIG_FILE]
    path = next(each for each in asked if each)
    found = container.mounted(path)
    if found is not None and found.content is not None:
        return found
    if own is not None:
        return own
    if found is None and path == CONFIG_FILE:
        return Mounted(IMAGE_SETTINGS, "the image") if container.is_own_image else None
    return found or Mounted(None, f"the file {path}")


def _judged(hidden: AbstractSet[str]) -> list[str]:
    return sorted(name for name in hidden - _STAND_INS.keys() if name.startswith(_JUDGED))


def _loaded(
    given: Mapping[str, object], file: Mounted | Path | None, environ: Mapping[str, str]
) -> tuple[Settings | None, tuple[str, ...]]:
    if not isinstance(file, Mounted):
        return _read(given, file, environ, {})
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "settings"
        copy.write_text(file.content or "", encoding="utf-8")
        return _read(given, copy, environ, {f"file {copy}": file.where, str(copy): file.where})


def _read(
    given: Mapping[str, object], file: Path | None, environ: Mapping[str, str], names: Mapping[str, str]
) -> tuple[Settings | None, tuple[str, ...]]:
    try:
        return load(given, file, environ), ()
    except SettingsError as error:
        faults = [str(fault) for fault in error.faults]
    for name, place in names.items():
        faults = [fault.replace(name, place) for fault in faults]
    return None, tuple(faults)


def stop_s_of(container: Container) -> float | None:
    """Longest time of a worker's good end; None: not to be seen."""
    told = [*flags(container.words, "--stop-s"), container.environ.get(_STOP_VARIABLE)]
    found = next((each for each in told if each), None)
    if found is None and (_STOP_VARIABLE in container.hidden or container.sources or container.secrets):
        return None
    try:
        return float(found or _STOP_S)
    except ValueError:
        return None
