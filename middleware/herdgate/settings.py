"""Checks of settings that are no numbers (for those: `herdgate.core.limits`): errors name field and way out."""

from collections.abc import Collection
from inspect import iscoroutinefunction

from herdgate.core.errors import ConfigurationError

__all__ = ["check_function", "check_kind", "check_texts"]


def check_kind(name: str, value: object, kind: type | tuple[type, ...], way_out: str) -> None:
    """Check that a setting is of its kind.

    Raises:
        ConfigurationError: it is not.
    """
    if not isinstance(value, kind):
        raise ConfigurationError(name, value, way_out)


def check_function(name: str, value: object, way_out: str) -> None:
    """Check that a setting is a plain function: the result of an `async` one would never be looked at.

    Raises:
        ConfigurationError: it is not.
    """
    if not callable(value) or iscoroutinefunction(value) or iscoroutinefunction(type(value).__call__):
        raise ConfigurationError(name, value, way_out)


def check_texts(name: str, value: object, way_out: str) -> None:
    """Check that a setting is a collection of strings, and not one string, which is a collection of letters.

    Raises:
        ConfigurationError: it is not.
    """
    if isinstance(value, str) or not isinstance(value, Collection) or not all(isinstance(text, str) for text in value):
        raise ConfigurationError(name, value, way_out)
