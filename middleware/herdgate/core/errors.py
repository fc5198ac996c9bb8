"""Errors people see.

HerdgateError
└── ConfigurationError    a setting that cannot be right; also a ValueError

Every message is one clear line: the field, what was given, the way out. Of a URL it shows no password and no query.
"""

import re

_MOST_SHOWN = 80  # characters of what was given

__all__ = ["ConfigurationError", "HerdgateError", "printable"]


class HerdgateError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigurationError(HerdgateError, ValueError):
    """A setting is wrong.

    Attributes:
        field: the setting's name, as the user wrote it (`max_open`).
        way_out: what to write instead.
    """

    def __init__(self, field: str, given: object, way_out: str) -> None:
        super().__init__(f"{field}: got {_shown(given)}; {way_out}")
        self.field = field
        self.way_out = way_out


def printable(text: str) -> str:
    """One line, with escapes for whatever a terminal would obey: for names and texts of others."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def _shown(given: object) -> str:
    """What was given, as one short line."""
    given = str(given) if hasattr(given, "__fspath__") else given  # a path
    if isinstance(given, str) and given and given.isprintable():
        text = given
    else:
        try:
            text = " ".join(repr(given).split())
        except ValueError:  # an int of thousands of digits
            text = f"a huge {type(given).__name__}"
    text = re.sub(r"(\w:(?://)?).*@", r"\1***@", text)
    if "://" in text:
        text = re.sub(r"\?.*", "?***", text)
    return text if len(text) <= _MOST_SHOWN else text[: _MOST_SHOWN - 3] + "..."
