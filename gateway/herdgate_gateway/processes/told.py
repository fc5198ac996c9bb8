"""What a parent tells a child: first its job, then whatever changes.

Settings go as a whole, secrets included: the lifeline is between the two alone. So all children have the same, and one
that is started again has those in force, whatever the file holds by then.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from herdgate_gateway.settings import Settings
from herdgate_gateway.settings.table import Table, entries

__all__ = ["Job", "pack_settings", "read_settings"]


@dataclass(frozen=True, slots=True)
class Job:
    """What a child needs to serve.

    Attributes:
        number: of the child, from 1.
        listeners: file descriptors of the sockets to accept from.
        calendar: URL of the parent's calendar; None: the settings say where it is.
        settings: of the gateway.
        group: what the children call themselves together, in a fleet.
        drain: what they were told to drain by, and its seconds; None: they were not.
    """

    number: int
    listeners: list[int]
    calendar: str | None
    settings: Settings
    group: str
    drain: list[Any] | None = None

    def pack(self) -> dict[str, Any]:
        """For the lifeline."""
        others = {"number": self.number, "listeners": self.listeners, "calendar": self.calendar}
        others |= {"group": self.group, "drain": self.drain}
        return others | {"settings": pack_settings(self.settings)}

    @classmethod
    def read(cls, told: dict[str, Any]) -> "Job":
        """The same on the other side."""
        return cls(**(told | {"settings": read_settings(told["settings"])}))


def pack_settings(settings: Settings) -> Any:
    """Settings as JSON has them, secrets in the clear."""
    return _plain(settings)


def read_settings(told: Any) -> Settings:
    """The same on the other side; where each value was from is not told."""
    return Settings.model_validate(told)


def _plain(value: Any) -> Any:
    if isinstance(value, Table):
        return {entry.key: _plain(entry.value) for entry in entries(value)}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    return str(value) if isinstance(value, Path) else value
