"""Classes of arrivals: whose hints come first, and what the others may take meanwhile.

Classes stand in order, the first one first. A hint of a class is told for after the hints of those before it, or as if
the class had its share of the rate for itself, whichever is sooner. Newcomers of a class may take a token while it is
within its share over the last second, or when nobody of a class before it has a hint outstanding. Firm slots and the
bucket are common to all, so the bound on their sum is that of one class.
"""

import re
from dataclasses import dataclass

from herdgate.core.errors import ConfigurationError
from herdgate.core.numbers import check_number

__all__ = ["NORMAL", "RESUME", "AdmissionClass", "check_classes"]

RESUME = "resume"
"""The class of those who show a session token."""

MOST_CLASSES = 16
_NAME = re.compile("[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class AdmissionClass:
    """A class of arrivals.

    Attributes:
        name: letters, digits, `-` and `_`. `resume` is for those who show a session token.
        share: of the rate, 0 to 1, that its newcomers may have while a class before it has hints outstanding.
    """

    name: str
    share: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise ConfigurationError("name", self.name, "write a name of 1 to 64 letters, digits, - and _")
        check_number("share", self.share, least=0, most=1, unit="a share of the rate")


NORMAL = AdmissionClass("normal")


def check_classes(classes: object) -> None:
    """Check the classes of one gate.

    Raises:
        ConfigurationError: they are no tuple of classes, or none, or too many; two have one name; or their shares come
            to more than the whole.
    """
    if not isinstance(classes, tuple) or not all(isinstance(klass, AdmissionClass) for klass in classes):
        way_out = 'write a tuple, as in (AdmissionClass("resume", 0.7), AdmissionClass("normal", 0.3))'
        raise ConfigurationError("classes", classes, way_out)
    if not 1 <= len(classes) <= MOST_CLASSES:
        raise ConfigurationError("classes", f"{len(classes)} of them", f"write 1 to {MOST_CLASSES}")
    names = [klass.name for klass in classes]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigurationError("classes", min(twice), "write each name once")
    total = sum(klass.share for klass in classes)
    if total > 1 + 1e-9:
        raise ConfigurationError("classes", f"shares of {total:g} together", "write shares that come to 1 at most")
