"""From a table of settings to a client: keys by their meaning, the preset below them, validation.

Rules: every fault of a table is found, not only the first. What a preset says about a matter gives way, as a whole,
to whatever the table says about it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from herdgate_loadtest.errors import ConfigurationError, UnreadableError
from herdgate_loadtest.vet.faults import read_faults, short
from herdgate_loadtest.vet.model import Client, Policy
from herdgate_loadtest.vet.names import lacks_unit, meaning_of, nearest
from herdgate_loadtest.vet.numbers import client_of
from herdgate_loadtest.vet.presets import PRESETS
from herdgate_loadtest.vet.settings import Settings

__all__ = ["Effective", "Known", "client_in", "section_of"]

_MATTERS = (
    frozenset({"strategy", "use_jitter", "jitter"}),
    frozenset({"reset_on", "reset_after_ms"}),
    frozenset({"delays_ms", "initial_interval_ms", "multiplier", "max_interval_ms"}),
    frozenset({"retry_statuses", "fatal_statuses"}),
    frozenset({"retry_close_codes", "fatal_close_codes"}),
)
_MOST_KEYS = 200  # there are not even forty settings
_MOST_FAULTS = 50


@dataclass(frozen=True, slots=True)
class Effective:
    """A setting in force, and whether the file says it, a preset does, or it is assumed."""

    name: str
    value: Any
    source: Literal["file", "preset", "default"]


@dataclass(frozen=True, slots=True)
class Known:
    """A client, and where its settings are from."""

    client: Client
    effective: tuple[Effective, ...]


def section_of(table: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The table at `path.to.section`.

    Raises:
        UnreadableError: there is none.
    """
    found: Any = table
    for part in key.split(".") if key else ():
        found = found.get(part) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping):
        raise UnreadableError([f"has no table at {key}"])
    return found


def client_in(written: Mapping[str, tuple[str, Any]], preset: str | None = None) -> Known:
    """The client of settings: their keys without a prefix, and values, by the names they were written under.

    Raises:
        UnreadableError: with every fault that they have, or the first 50.
    """
    if len(written) > _MOST_KEYS:
        raise UnreadableError([f"has {len(written):,} keys, which no settings have; name their section with --key"])
    faults: list[str] = []
    values, names = _by_setting(written, faults)
    below = _preset(preset or values.pop("preset", None), faults)
    values.pop("preset", None)
    if not values and not below and not faults:
        faults.append("holds no reconnect setting")
    try:
        settings = Settings.model_validate(_merged(values, below))
    except ValidationError as error:
        faults.extend(read_faults(error, names))
        raise UnreadableError(_first(faults)) from None
    if faults:
        raise UnreadableError(_first(faults))
    client = client_of(settings)
    return Known(client, tuple(_effective(settings, client, values)))


def _by_setting(written: Mapping[str, tuple[str, Any]], faults: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    values: dict[str, Any] = {}
    names: dict[str, str] = {}
    for whole, (key, value) in written.items():
        name, meaning = short(whole), meaning_of(key)
        if meaning is None:
            faults.append(_unknown(name, key))
        elif meaning.setting in names:
            faults.append(f"{names[meaning.setting]} and {name} are the same setting; leave one of them out")
        elif meaning.setting is not None:
            values[meaning.setting], names[meaning.setting] = meaning.of(value), name
    return values, names


def _first(faults: list[str]) -> list[str]:
    more = len(faults) - _MOST_FAULTS
    return faults if more <= 0 else [*faults[:_MOST_FAULTS], f"and {more:,} more"]


def _unknown(name: str, key: str) -> str:
    if lacks_unit(key):
        return f"{name}: says no unit; end its name in _ms or _s"
    likely = nearest(short(key))
    return f"{name}: nobody knows this setting; " + (f"is it {likely}?" if likely else "leave it out")


def _preset(name: Any, faults: list[str]) -> Mapping[str, Any]:
    if name is None:
        return {}
    if not isinstance(name, str) or name not in PRESETS:
        given = name if isinstance(name, (str, int, float)) else f"a {type(name).__name__}"
        faults.append(str(ConfigurationError("preset", given, f"write one of {', '.join(PRESETS)}")))
        return {}
    return PRESETS[name]


def _merged(values: Mapping[str, Any], below: Mapping[str, Any]) -> dict[str, Any]:
    decided = {name for matter in _MATTERS if not matter.isdisjoint(values) for name in matter}
    decided -= {"initial_interval_ms", "multiplier", "max_interval_ms"}  # each of them alone
    return {**{name: value for name, value in below.items() if name not in decided}, **values}


def _effective(settings: Settings, client: Client, values: Mapping[str, Any]) -> Iterator[Effective]:
    """Every setting as it holds; what follows from another one as that one has it."""
    follows = {
        "strategy": client.strategy,
        "use_jitter": client.strategy != "none",
        "jitter": client.jitter if client.strategy == "proportional" else None,
        "min_delay_ms": 1e3 * client.least_s,
        "honour_retry_after": client.honours_hints,
        "retry_close_codes": _retried(client.close_codes),
        "fatal_close_codes": sorted(client.close_codes.fatal),
        "retry_statuses": _retried(client.statuses),
        "fatal_statuses": sorted(client.statuses.fatal),
    }
    for name, value in settings.model_dump(mode="json").items():
        source: Literal["file", "preset", "default"] = "default"
        if name in settings.model_fields_set:
            source = "file" if name in values else "preset"
        yield Effective(name, follows.get(name, value), source)


def _retried(policy: Policy) -> list[int] | Literal["all"]:
    """All, of course, but the fatal ones."""
    return "all" if policy.retried is None else sorted(policy.retried)
