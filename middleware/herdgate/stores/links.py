"""How a process reaches the calendar it shares: by the scheme of the URL, in Redis or in its parent."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from herdgate.stores.parent.link import ParentLink
    from herdgate.stores.redis.link import Link

__all__ = ["PARENT_SCHEME", "open_link"]

PARENT_SCHEME = "herdgate+unix://"
"""Before the path of a parent's socket; see `herdgate.stores.parent`."""


def open_link(url: str) -> "Link | ParentLink":
    """The link for a URL, not connected yet.

    Raises:
        ConfigurationError: it is no URL of a Redis either, or redis-py is missing.
    """
    if url.startswith(PARENT_SCHEME):
        from herdgate.stores.parent.link import ParentLink

        return ParentLink(url.removeprefix(PARENT_SCHEME))
    from herdgate.stores.redis.link import Link

    return Link(url)
