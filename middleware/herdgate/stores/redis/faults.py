"""What an error of redis-py means: Redis gives no service, or the script is wrong.

An error reply is known by its first word. Redis before 7 puts the reply of a command inside a script into one of its
own (`ERR Error running script ...: -OOM command not allowed ...`), so the word is looked for there, too.
"""

import re

from herdgate.stores.redis.driver import exceptions
from herdgate.stores.redis.errors import LinkDown, ScriptFailed

__all__ = ["fault", "is_forbidden", "is_read_only", "reason_of"]

NO_SERVICE = (
    exceptions.ConnectionError,  # LOADING, NOAUTH, WRONGPASS, too many clients; a broken connection
    exceptions.TimeoutError,
    exceptions.InvalidResponse,
    exceptions.OutOfMemoryError,
    exceptions.ReadOnlyError,
    exceptions.NoPermissionError,
    exceptions.ClusterDownError,  # MASTERDOWN, too
    exceptions.TryAgainError,
    exceptions.AskError,  # MOVED, too
    OSError,
)
NO_SERVICE_WORDS = re.compile(
    r"^(?:MISCONF|NOREPLICAS|BUSY|UNKILLABLE|DENIED)\b|-(?:OOM|READONLY|MISCONF|NOREPLICAS)\b"
)
FORBIDDEN = re.compile(r"executing the script can't|ACL failure in script")


def fault(error: Exception, where: str) -> LinkDown | ScriptFailed:
    """The error to raise instead of `error`, which is its cause."""
    given = LinkDown if _no_service(error) else ScriptFailed
    told = given(where, reason_of(error))
    told.__cause__ = error
    return told


def reason_of(error: BaseException) -> str:
    """One line; the first word of an error reply, which redis-py takes off, is put back."""
    if isinstance(error, TimeoutError) and not str(error):
        return "no answer"
    word = getattr(error, "status_code", None)
    text = str(error) or type(error).__name__
    return f"{word} {text}" if word and word != "ERR" else text


def is_forbidden(error: BaseException | None) -> bool:
    """True for a refusal by access control (ACL)."""
    return isinstance(error, exceptions.NoPermissionError) or bool(FORBIDDEN.search(str(error)))


def is_read_only(error: BaseException | None) -> bool:
    """True for the refusal of a replica to write."""
    return isinstance(error, exceptions.ReadOnlyError) or "-READONLY" in str(error)


def _no_service(error: Exception) -> bool:
    return isinstance(error, NO_SERVICE) or is_forbidden(error) or bool(NO_SERVICE_WORDS.search(str(error)))
