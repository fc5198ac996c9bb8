"""Makes the settings: file, then environment, then flags, checked as one."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from herdgate_gateway.errors import SettingsError
from herdgate_gateway.settings.agreement import disagreements
from herdgate_gateway.settings.faults import read_faults, source_of, with_source
from herdgate_gateway.settings.model import Settings
from herdgate_gateway.settings.sources import gather, nested
from herdgate_gateway.settings.table import dotted, leaves

__all__ = ["load"]


def load(argv_overrides: Mapping[str, object], file: Path | None, environ: Mapping[str, str]) -> Settings:
    """The settings in force.

    Args:
        argv_overrides: flags by dotted field (`admin.listen`); None is a flag not given, a text is read as from the
            environment where the field is none.
        file: TOML.
        environ: of it, HERDGATE_* counts.

    Raises:
        SettingsError: something is wrong; it holds every fault.
    """
    written, unread = gather(Settings, argv_overrides, file, environ)
    try:
        settings = Settings.model_validate(nested(written))
    except ValidationError as error:
        raise SettingsError([*unread, *read_faults(Settings, error, written)]) from None
    sources = {dotted(path): source_of(path, written) if is_given else "default" for path, is_given in leaves(settings)}
    settings._sources = MappingProxyType(sources)
    faults = [with_source(fault, sources.get(fault.field, "default")) for fault in disagreements(settings)]
    if unread or faults:
        raise SettingsError([*unread, *faults])
    return settings
