"""Errors of the herd kit that people see.

herdgate.HerdgateError
├── herdgate.ConfigurationError    a setting that cannot be right; also a ValueError
└── LoadtestError
    ├── PreflightError             this machine cannot carry the crowd that was asked for
    ├── CrowdError                 the crowd did not do what the run needs
    ├── UnreadableError            a file that cannot be read, with every fault in it
    └── WireError                  the server broke the protocol

Every message is one clear line: what is wrong, the numbers, the way out.
"""

from collections.abc import Sequence

from herdgate.core.errors import ConfigurationError, HerdgateError, printable

__all__ = [
    "ConfigurationError",
    "CrowdError",
    "HerdgateError",
    "LoadtestError",
    "PreflightError",
    "UnreadableError",
    "WireError",
]


class LoadtestError(HerdgateError):
    """Base of every error the herd kit adds."""


class PreflightError(LoadtestError):
    """Descriptors or ports will not do. Nothing was opened; the message says how many are needed."""


class CrowdError(LoadtestError):
    """The crowd did not come up, or was asked for something in the wrong order."""


class UnreadableError(LoadtestError):
    """A file that cannot be read.

    Attributes:
        faults: one line each, without the file's name.
    """

    def __init__(self, faults: Sequence[str | ConfigurationError]) -> None:
        self.faults = tuple(printable(str(fault)) for fault in faults)
        super().__init__("; ".join(self.faults))


class WireError(LoadtestError):
    """The server sent what RFC 9112 or RFC 6455 does not allow here. The message becomes the reason of a failed try."""
