"""What can go wrong between a gateway and the Redis of its fleet.

HerdgateError
└── LinkError
    ├── LinkDown       the call was not made, or Redis refused it: unreachable, LOADING, READONLY, OOM, no permission
    ├── LinkTimeout    the call was made, and is without a reply at its deadline: it may still take effect
    └── ScriptFailed   the script itself raised: a defect of this package

Every message is one line that names the server, never a password. What redis-py or the system said is the cause.
"""

from herdgate.core.errors import HerdgateError

__all__ = ["LinkDown", "LinkError", "LinkTimeout", "ScriptFailed"]


class LinkError(HerdgateError):
    """Base of all errors of a call.

    Attributes:
        where: the server, as a person would name it, without a password.
        reason: what is wrong, in one line.
    """

    def __init__(self, where: str, reason: str) -> None:
        self.where = where
        self.reason = " ".join(reason.split())
        super().__init__(f"Redis at {where}: {self.reason}")


class LinkDown(LinkError):  # noqa: N818 - a state more than an error
    """Redis gives no service; the link tries to get it back by itself."""


class LinkTimeout(LinkError):  # noqa: N818 - as TimeoutError has it, and no longer
    """No reply within the deadline. The reply, when it comes, goes to `Link.on_late`."""


class ScriptFailed(LinkError):  # noqa: N818 - says what happened
    """The script raised an error of its own."""
