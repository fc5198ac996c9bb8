"""A file that a report is written to: judged before anything is run, and written when it is over.

Rules: what can be seen before a run of minutes is said before it. A file that is there stays as it is until it is
replaced by the report.
"""

import os
from pathlib import Path

from herdgate.core.errors import printable
from herdgate_loadtest.errors import ConfigurationError, LoadtestError

__all__ = ["check_output", "write_output"]


def check_output(option: str, file: str) -> None:
    """See that a file can be made or replaced, without touching it.

    Raises:
        ConfigurationError: names the option.
    """
    path = Path(file)
    try:
        is_wrong = (
            path.is_dir() or not path.parent.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK)
        )
    except OSError:  # a name that is too long
        is_wrong = True
    if is_wrong:
        raise ConfigurationError(option, printable(file), "name a file in a folder that exists and may be written to")


def write_output(option: str, file: str, text: str) -> None:
    """Write it.

    Raises:
        LoadtestError: it cannot be written, as a disk that is full.
    """
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise LoadtestError(
            f"{option}: {printable(file)} cannot be written ({error.strerror}); name another file"
        ) from None
