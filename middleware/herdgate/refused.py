"""Refusing an arrival after it was admitted: what code behind the gate raises before it has answered a handshake."""

import re

from herdgate.core.answers import STATUS, LateReason
from herdgate.core.errors import ConfigurationError, HerdgateError

__all__ = ["Refused"]

_CHALLENGE = re.compile(r"[\t\x20-\x7e\x80-\xff]+")  # RFC 9110 section 5.5


class Refused(HerdgateError):  # noqa: N818 - an answer, as Denied is
    """This arrival may not come in after all; the middleware answers it as it answers every denial.

    Raised by whatever runs behind `AdmissionMiddleware`, before its first answer; later it is an error like any other.
    The permit is released, and the calendar says when to come back: never after `auth`, at a firm slot after
    `auth_busy`, by a hint after the others.

    Args:
        reason: `auth`: not allowed. `auth_busy`: nobody has time to find out. `upstream`: whoever should take it does
            not. `no_owner`: nobody owns it at the moment. `full`: there is no room for it after all. `draining`:
            this server goes away before it could be taken.
        status: HTTP status, 400 to 599. None: the usual one of the reason.
        challenge: `WWW-Authenticate` of a 401. None: `Bearer`.

    Raises:
        ConfigurationError: an unknown reason, a status that is no refusal, or a challenge that is no header's value.
    """

    def __init__(self, reason: LateReason, status: int | None = None, *, challenge: str | None = None) -> None:
        if reason not in ("auth", "auth_busy", "draining", "full", "no_owner", "upstream"):
            raise ConfigurationError("reason", reason, "write auth, auth_busy, draining, full, no_owner or upstream")
        if status is not None and not 400 <= status <= 599:
            raise ConfigurationError("status", status, "write an HTTP status from 400 to 599")
        if challenge is not None and not _CHALLENGE.fullmatch(challenge):
            raise ConfigurationError("challenge", challenge, "write the value of a header, as in 'Basic realm=\"x\"'")
        super().__init__(f"{reason} ({status or STATUS[reason]})")
        self.reason: LateReason = reason
        self.status = status
        self.challenge = challenge
