"""Which paths are guarded: exact paths, or prefixes that end in `*`.

Frameworks match more loosely than text does: some fold slashes, or drop one at the end, or take an absolute URI or a
line break for nothing. So a path is guarded if it matches as it came *or* in its plainest form; to guard one too many
is safe, to let one past is not.
"""

import re
from collections.abc import Iterable, Sequence
from posixpath import commonpath, normpath

from herdgate.asgi import Scope
from herdgate.core.errors import ConfigurationError

_SLASHES = re.compile("/+")
_PATTERN = re.compile(r"/|\*$")
_ODD = re.compile(r"[*{}<>]")  # as in the patterns of frameworks, which would match nothing here

__all__ = ["PathPatterns", "route_path"]


def route_path(scope: Scope) -> str:
    """The request's path below the point where the app is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    if root and path == root:
        return "/"
    return path[len(root) :] if path.startswith(root + "/") else path


class PathPatterns:
    """A set of path patterns.

    Raises:
        ConfigurationError: a pattern has no leading `/` or a placeholder other than a `*` at its end; `*` alone is
            every path.
    """

    def __init__(self, field: str, patterns: Sequence[str]) -> None:
        if isinstance(patterns, (str, bytes)) or not isinstance(patterns, Iterable):
            raise ConfigurationError(field, patterns, 'write a list, as in ["/ws", "/chat/*"]')
        patterns = tuple(patterns)
        for pattern in patterns:
            if not isinstance(pattern, str) or _ODD.search(pattern[:-1]) or not _PATTERN.match(pattern):
                raise ConfigurationError(
                    field, pattern, 'write "/path", "/prefix/*" or "*"; nothing else stands for a part'
                )
        self._exact = frozenset(pattern for pattern in patterns if not pattern.endswith("*"))
        self._prefixes = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))

    def match(self, path: str) -> bool:
        """True if one of the patterns covers `path`, or what a framework may take it for."""
        if not path.startswith("/"):  # `*`, an absolute URI, or what no path is: as guarded as anything can be
            return bool(self._exact or self._prefixes)
        return self._covers(path) or self._covers(_plainest(path))

    def _covers(self, path: str) -> bool:
        return path in self._exact or path.startswith(self._prefixes)

    def cookie_path(self) -> str:
        """The longest path whose subtree holds all that is covered (RFC 6265 section 5.1.4)."""
        subtrees = [*self._exact, *(prefix.rpartition("/")[0] or "/" for prefix in self._prefixes)]
        return commonpath(subtrees) if subtrees else "/"


def _plainest(path: str) -> str:
    """Without empty and dot segments, and without a slash or line break at the end."""
    return normpath(_SLASHES.sub("/", path.rstrip("/\r\n")) or "/")
