"""What an error of redis-py means: Redis gives no service, or the script is wrong.

An error reply is known by its first word. Redis before 7 puts the reply of a command inside a script into one of its
own (`ERR Error running script ...: -OOM command not allowed ...`), so the word is looked for there, too.
"""

import os
import re
import ssl

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
    r"^(?:MISCONF|NOREPLICAS|BUSY|UNKILLABLE|DENIED)\b|-(?:OOM|READONLY|MISCONF|NOREPLICAS)\b|^unknown command .EVAL"
)
CONNECTING = re.compile(r"Error .*connecting to (\S+)\.(?:\s|$)")
BROKEN = re.compile(r"Error .*while (?:reading|writing)")
ERRNO = re.compile(r"\[Errno ([0-9]+)\]")
OPENSSL = re.compile(r"^\[[^\]]*\] ?| ?\(_ssl\.c:[0-9]+\)")
FORBIDDEN = re.compile(r"executing the script can't|ACL failure in script")


def fault(error: Exception, where: str) -> LinkDown | ScriptFailed:
    """The error to raise instead of `error`, which is its cause."""
    given = LinkDown if _no_service(error) else ScriptFailed
    told = given(where, reason_of(error, where))
    told.__cause__ = error
    return told


def reason_of(error: BaseException, where: str = "") -> str:
    """One line without `where`; the first word of an error reply, which redis-py takes off, is put back."""
    if isinstance(error, TimeoutError) and not str(error):
        return "no answer"
    system = error.__cause__ or error.__context__
    if isinstance(system, OSError) and (connecting := CONNECTING.match(str(error))):
        place = "" if connecting[1] == _plain_address(where) else f" to {connecting[1]}"
        return f"cannot connect{place}: {_words(system)}"
    if isinstance(system, OSError) and BROKEN.match(str(error)):
        return f"the connection broke: {_words(system)}"
    word = getattr(error, "status_code", None)
    text = str(error).partition(", with args beginning with")[0].strip().removesuffix(".") or type(error).__name__
    return f"{word} {text}" if word and word != "ERR" else text


def _plain_address(where: str) -> str:
    """An address as redis-py writes it."""
    return where.removeprefix("unix://").replace("[", "").replace("]", "")


def _words(error: OSError) -> str:
    """What the system or OpenSSL says, without numbers and addresses."""
    if isinstance(error, ssl.SSLError):
        return OPENSSL.sub("", error.strerror or str(error)).strip().removesuffix(".")
    several = ERRNO.search(str(error))  # of a name with more than one address, all in one text
    number = error.errno or (int(several[1]) if several else 0)
    return os.strerror(number) if number > 0 else error.strerror or str(error)


def is_forbidden(error: BaseException | None) -> bool:
    """True for a refusal by access control (ACL)."""
    return isinstance(error, exceptions.NoPermissionError) or bool(FORBIDDEN.search(str(error)))


def is_read_only(error: BaseException | None) -> bool:
    """True for the refusal of a replica to write."""
    return isinstance(error, exceptions.ReadOnlyError) or "-READONLY" in str(error)


def _no_service(error: Exception) -> bool:
    return isinstance(error, NO_SERVICE) or is_forbidden(error) or bool(NO_SERVICE_WORDS.search(str(error)))
