"""What can go wrong between a gateway and the Redis of its fleet.

HerdgateError
└── LinkError
    ├── LinkDown       the call was not made, or Redis refused it: unreachable, LOADING, READONLY, OOM, no permission
    ├── LinkTimeout    the call was made, and is without a reply at its deadline: it may still take effect
    ├── ScriptFailed   the script itself raised: keys that others wrote, or a defect of this package
    └── NoReply        what came back is no reply of the script

Every message is one line that names the server, never a password. What redis-py or the system said is the cause.
"""

from typing import NamedTuple

from herdgate.core.errors import HerdgateError

__all__ = ["Cure", "LinkDown", "LinkError", "LinkTimeout", "NoReply", "ScriptFailed"]


class Cure(NamedTuple):
    """Where no waiting helps: what was met instead of a Redis that serves us, and what people can do about it."""

    met: str
    way_out: str


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
    """Redis gives no service; the link tries to get it back by itself.

    Attributes:
        cure: None: it may come back by itself.
    """

    cure: Cure | None = None


class LinkTimeout(LinkError):  # noqa: N818 - as TimeoutError has it, and no longer
    """No reply within the deadline. The reply, when it comes, goes to `Link.on_late`."""


class ScriptFailed(LinkError):  # noqa: N818 - says what happened
    """The script raised an error of its own."""


class NoReply(LinkError):  # noqa: N818 - says what happened
    """What answers is no Redis, or runs another script."""
