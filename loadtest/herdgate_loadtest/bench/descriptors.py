"""File descriptors of this process, and so of those that it starts."""

import resource

__all__ = ["raise_descriptors"]


def raise_descriptors() -> None:
    """As many as are allowed, for the servers too: they inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
