"""Errors of the herd kit that people see.

herdgate.HerdgateError
├── herdgate.ConfigurationError    a setting that cannot be right; also a ValueError
└── LoadtestError
    ├── PreflightError             this machine cannot carry the crowd that was asked for
    ├── CrowdError                 the crowd did not do what the run needs
    └── WireError                  the server broke the protocol

Every message is one clear line: what is wrong, the numbers, the way out.
"""

from herdgate.core.errors import ConfigurationError, HerdgateError

__all__ = ["ConfigurationError", "CrowdError", "HerdgateError", "LoadtestError", "PreflightError", "WireError"]


class LoadtestError(HerdgateError):
    """Base of every error the herd kit adds."""


class PreflightError(LoadtestError):
    """Descriptors or ports will not do. Nothing was opened; the message says how many are needed."""


class CrowdError(LoadtestError):
    """The crowd did not come up, or was asked for something in the wrong order."""


class WireError(LoadtestError):
    """The server sent what RFC 9112 or RFC 6455 does not allow here. The message becomes the reason of a failed try."""
