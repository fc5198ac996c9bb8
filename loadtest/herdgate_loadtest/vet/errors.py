"""What makes a file unreadable: faults, each one clear line."""

from collections.abc import Sequence

from herdgate_loadtest.errors import ConfigurationError, LoadtestError

__all__ = ["UnreadableError"]


class UnreadableError(LoadtestError):
    """Settings that cannot be read.

    Attributes:
        faults: one line each, without the file's name.
    """

    def __init__(self, faults: Sequence[str | ConfigurationError]) -> None:
        self.faults = tuple(_printable(str(fault)) for fault in faults)
        super().__init__("; ".join(self.faults))


def _printable(text: str) -> str:
    """One line, whatever a key of the file holds."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
