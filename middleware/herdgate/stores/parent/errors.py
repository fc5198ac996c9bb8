"""What can go wrong between a process and the parent that holds its calendar.

LinkError of `herdgate.stores.redis`
├── ParentDown       the call was not made, or the connection has ended
├── ParentTimeout    the call was made, and is without a reply at its deadline: it may still take effect
└── CallFailed       the parent could not make sense of the call: a defect of this package
"""

from herdgate.core.errors import HerdgateError
from herdgate.stores.redis.errors import LinkDown, LinkError, LinkTimeout, ScriptFailed

__all__ = ["CallFailed", "ParentDown", "ParentTimeout"]


class _ParentError(LinkError):
    def __init__(self, reason: str) -> None:
        self.where = "the parent process"
        self.reason = " ".join(reason.split())
        HerdgateError.__init__(self, f"{self.where}: {self.reason}")


class ParentDown(_ParentError, LinkDown):  # noqa: N818 - as LinkDown
    """The parent gives no service."""


class ParentTimeout(_ParentError, LinkTimeout):  # noqa: N818 - as LinkTimeout
    """No reply within the deadline. The reply, when it comes, goes to `ParentLink.on_late`."""


class CallFailed(_ParentError, ScriptFailed):  # noqa: N818 - as ScriptFailed
    """The parent has refused the call."""
