"""A table of a TOML file, read value by value. What is wrong is collected, and what it is by default taken instead."""

import datetime as dt
import difflib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeVar

from herdgate.core.numbers import check_number
from herdgate_loadtest.errors import ConfigurationError

__all__ = ["Fault", "Table"]

Fault = str | ConfigurationError
T = TypeVar("T", None, float)
N = TypeVar("N", None, int)


class Table:
    """One table.

    Args:
        values: as read.
        keys: those that may be in it; None: any.
        name: where it is in the file; empty: at the top.
        faults: found so far, to be added to.

    Attributes:
        values, name, faults: as given.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        keys: Collection[str] | None,
        name: str = "",
        faults: list[Fault] | None = None,
    ) -> None:
        self.values = values
        self.name = name
        self.faults: list[Fault] = [] if faults is None else faults
        if keys is not None:
            self.refuse_unknown(keys)

    def number(self, key: str, unit: str, absent: T, *, least: float, most: float, needed: bool = False) -> T | float:
        """A number; `absent` where it is not there, or wrong.

        Args:
            unit: what it is a number of.
        """
        return float(self.values[key]) if self._is_right(key, unit, least, most, needed) else absent

    def whole(self, key: str, unit: str, absent: N, *, least: int, most: int, needed: bool = False) -> N | int:
        """As `number`, a whole one."""
        return int(self.values[key]) if self._is_right(key, unit, least, most, needed, whole=True) else absent

    def sub(self, key: str, way_out: str) -> "Table | None":
        """The table under `key`, whose keys are anybody's; None: there is none."""
        if key not in self.values:
            return None
        value = self.values[key]
        if isinstance(value, Mapping):
            return Table(value, None, self._path(key), self.faults)
        self.faults.append(ConfigurationError(self._path(key), _shown(value), way_out))
        return None

    def several(self, key: str, keys: Collection[str] | None = None, *, most: int) -> Iterator["Table"]:
        """The tables under `key`, in which `keys` may be; None: any."""
        values = self.values.get(key, [])
        if not isinstance(values, list) or not all(isinstance(value, Mapping) for value in values):
            self.faults.append(ConfigurationError(self._path(key), _shown(values), f"write tables, each as [[{key}]]"))
        elif len(values) > most:
            found = f"{len(values):,} of them"
            self.faults.append(ConfigurationError(self._path(key), found, f"write {most:,} at most"))
        else:
            for place, value in enumerate(values):
                yield Table(value, keys, f"{self._path(key)}[{place}]", self.faults)

    def refuse_unknown(self, keys: Collection[str]) -> None:
        """Only these may be in it."""
        for key in self.values:
            if key not in keys:
                near = difflib.get_close_matches(key.lower(), keys, n=1)
                way_out = f"did you mean {near[0]}?" if near else f"leave it out; known are {', '.join(sorted(keys))}"
                self.faults.append(f"{self._path(key)}: nobody knows this key here; {way_out}")

    def _is_right(self, key: str, unit: str, least: float, most: float, needed: bool, *, whole: bool = False) -> bool:
        value = self.values.get(key)  # TOML has no null
        if value is None and not needed:
            return False
        try:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                given = "nothing" if value is None else _shown(value)
                raise ConfigurationError(self._path(key), given, f"write {unit}, from {least:_} to {most:_}")
            check_number(self._path(key), value, unit=unit, least=least, most=most, whole=whole)
        except ConfigurationError as error:
            self.faults.append(error)
            return False
        return True

    def _path(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key


def _shown(value: object) -> object:
    """A value as TOML has it; tables, lists and dates are not written out."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return repr(value)  # "5" is not 5
    if isinstance(value, (dt.date, dt.time)):
        return "a date or a time"
    return "a table" if isinstance(value, Mapping) else "a list" if isinstance(value, list) else value
