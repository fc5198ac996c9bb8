"""Lua scripts: the `.lua` files beside this module, read once. A long one is several files, joined."""

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources

__all__ = ["Script"]


@dataclass(frozen=True)
class Script:
    """A script that Redis runs as one atomic step.

    Attributes:
        name: what it is called here.
        text: its source.
        sha: the SHA-1 of the source in hex, by which Redis knows it (EVALSHA).
    """

    name: str
    text: str
    sha: str

    @classmethod
    def of(cls, name: str, text: str) -> "Script":
        """A script with this source."""
        return cls(name, text, hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest())

    @classmethod
    @cache
    def load(cls, *names: str) -> "Script":
        """The script in `<name>.lua`; of several files, joined in this order, the last one names it.

        Raises:
            FileNotFoundError: there is no such file.
        """
        folder = resources.files(__package__)
        return cls.of(names[-1], "\n".join(folder.joinpath(f"{name}.lua").read_text("utf-8") for name in names))
