"""The settings of a gateway, and the timer of a worker, as their container would find them."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from herdgate_gateway.deployments.readers.commands import flags, options
from herdgate_gateway.errors import SettingsError
from herdgate_gateway.settings import CONFIG_VARIABLE, Settings, load

__all__ = ["CONFIG_FILE", "Container", "settings_of", "stop_s_of"]

CONFIG_FILE = "/etc/herdgate/herdgate.toml"
"""Where the image looks for settings."""

_STOP_VARIABLE = "HERDGATE_WORKER__STOP_S"
_STOP_S = 30.0
_STAND_INS = {
    "HERDGATE_FLEET__REDIS": "redis://in-a-secret",
    "HERDGATE_DRAIN__AWS__TARGET_GROUPS": "arn:aws:elasticloadbalancing:us-east-1:000000000000:targetgroup/elsewhere/0",
}
"""For values that are elsewhere, where all that matters here is that there is one."""

_OPTIONS = {
    "--listen": "listen",
    "--processes": "processes",
    "--worker": "workers",
    "--rate": "rate",
    "--burst": "burst",
    "--admin": "admin.listen",
}


@dataclass(frozen=True, slots=True)
class Container:
    """What of one matters here.

    Attributes:
        words: of its command.
        environ: what it is told.
        hidden: names of variables whose values are elsewhere: in secrets, at the platform.
        mounted: finds the content of a file that is put into it, and where that stands; None: it is not there.
    """

    words: Sequence[str]
    environ: Mapping[str, str]
    hidden: frozenset[str]
    mounted: Callable[[str], tuple[str, str] | None]


def settings_of(container: Container, own: Path | None) -> tuple[Settings | None, tuple[str, ...]]:
    """The settings that a gateway would start with, or the lines about what is wrong with them.

    Args:
        own: settings to take where the container names none that can be seen.
    """
    asked = [*flags(container.words, "--config"), container.environ.get(CONFIG_VARIABLE), CONFIG_FILE]
    found = container.mounted(next(path for path in asked if path))
    given = options(container.words, _OPTIONS)
    environ = {name: value for name, value in container.environ.items() if name != CONFIG_VARIABLE}
    environ |= {name: value for name, value in _STAND_INS.items() if name in container.hidden}
    if found is None:
        return _loaded(given, own, environ, {})
    content, where = found
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "settings"
        file.write_text(content, encoding="utf-8")
        return _loaded(given, file, environ, {f"file {file}": where, str(file): where})


def _loaded(
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
    if _STOP_VARIABLE in container.hidden:
        return None
    told = [*flags(container.words, "--stop-s"), container.environ.get(_STOP_VARIABLE, str(_STOP_S))]
    try:
        return float(told[0])
    except ValueError:
        return None
