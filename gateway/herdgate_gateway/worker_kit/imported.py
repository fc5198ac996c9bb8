"""What an import string names: `module:attribute`."""

import importlib
from typing import Any

from herdgate_gateway.errors import ConfigurationError, HerdgateError

__all__ = ["import_named"]


def import_named(option: str, named: str) -> Any:
    """The object; it can be called.

    Args:
        option: that it was given with, for errors.

    Raises:
        HerdgateError: it cannot be had; one line.
    """
    module, _, attribute = named.partition(":")
    if not module or not attribute:
        raise ConfigurationError(option, named, "write module:attribute, as in myapp:app")
    try:
        found: Any = importlib.import_module(module)
    except Exception as error:
        raise HerdgateError(f"{option}: cannot import {module}: {_told(error)}") from error
    try:
        for name in attribute.split("."):
            found = getattr(found, name)
    except AttributeError:
        raise HerdgateError(f"{option}: module {module} has no {attribute}; write module:attribute") from None
    if not callable(found):
        raise HerdgateError(f"{option}: {named} cannot be called")
    return found


def _told(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, ImportError) else f"{type(error).__name__}: {text}"
