"""Which paths are guarded: exact paths, or prefixes that end in `*`."""

from collections.abc import Iterable, Sequence
from posixpath import commonpath

from herdgate.asgi import Scope
from herdgate.core.errors import ConfigurationError

__all__ = ["PathPatterns", "route_path"]


def route_path(scope: Scope) -> str:
    """The request's path below the point where the app is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    if path == root:
        return "/"
    return path[len(root) :] if path.startswith(root + "/") else path


class PathPatterns:
    """A set of path patterns.

    Raises:
        ConfigurationError: a pattern has no leading `/` or a `*` elsewhere than at its end; `*` alone is every path.
    """

    def __init__(self, field: str, patterns: Sequence[str]) -> None:
        if isinstance(patterns, (str, bytes)) or not isinstance(patterns, Iterable):
            raise ConfigurationError(field, patterns, 'write a list, as in ["/ws", "/chat/*"]')
        patterns = tuple(patterns)
        for pattern in patterns:
            if not isinstance(pattern, str) or "*" in pattern[:-1] or not (pattern == "*" or pattern.startswith("/")):
                raise ConfigurationError(field, pattern, 'write "/path", "/prefix/*" or "*"')
        self._exact = frozenset(pattern for pattern in patterns if not pattern.endswith("*"))
        self._prefixes = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))

    def match(self, path: str) -> bool:
        """True if one of the patterns covers `path`."""
        return path in self._exact or path.startswith(self._prefixes)

    def cookie_path(self) -> str:
        """The longest path whose subtree holds all that is covered (RFC 6265 section 5.1.4)."""
        subtrees = [*self._exact, *(prefix.rpartition("/")[0] or "/" for prefix in self._prefixes)]
        return commonpath(subtrees) if subtrees else "/"
