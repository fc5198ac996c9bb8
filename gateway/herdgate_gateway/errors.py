"""Errors of the gateway that people see.

herdgate.HerdgateError
└── herdgate.ConfigurationError    a setting that cannot be right; also a ValueError
    └── SettingsError              all that is wrong with the settings of one gateway

Every message is one clear line: the field, what was given, the way out.
"""

from collections.abc import Sequence

from herdgate.core.errors import ConfigurationError, HerdgateError

__all__ = ["ConfigurationError", "HerdgateError", "SettingsError"]


class SettingsError(ConfigurationError):
    """The settings cannot be used. Reads like its first fault, and counts the others.

    Attributes:
        faults: every fault found, at least one.
    """

    def __init__(self, faults: Sequence[ConfigurationError]) -> None:
        first, *others = faults
        self.faults = tuple(faults)
        self.field, self.way_out = first.field, first.way_out
        more = f" (and {len(others)} more: see `herdgate config check`)" if others else ""
        HerdgateError.__init__(self, f"{first}{more}")
