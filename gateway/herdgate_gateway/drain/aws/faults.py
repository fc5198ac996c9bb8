"""What errors of AWS, and of the metadata of a task, mean for people. Pure.

Every message is one clear line: what was asked, what is wrong, the way out. None of them is a sign to drain.
"""

from typing import NamedTuple

from herdgate_gateway.aws_errors import MOST_SHOWN, code_of, words_of

__all__ = ["Fault", "fault_of"]

_DENIED = ("AccessDenied", "AccessDeniedException", "UnauthorizedOperation")
_BUSY = ("RequestLimitExceeded", "Throttling", "ThrottlingException", "TooManyRequestsException")
_GONE = ("ClusterNotFoundException", "TargetGroupNotFound")
_REFUSED = (
    *(
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
    ),
    *("MissingAuthenticationToken", "SignatureDoesNotMatch", "UnrecognizedClientException"),
)
_WAYS_OUT = {
    **dict.fromkeys(_DENIED, "docs/drain.md lists the permissions"),
    **dict.fromkeys(_BUSY, "asked less often for a while; raise drain.aws.every_s if it stays"),
    **dict.fromkeys(_GONE, "is it the right ARN, account and endpoint?"),
    **dict.fromkeys(_REFUSED, "renew the credentials, and check the clock of this machine"),
    "NoCredentialsError": "give this task or machine a role, or set AWS_PROFILE or AWS_ACCESS_KEY_ID",
    "EndpointConnectionError": "is there a way to it, or a VPC endpoint?",
    "ConnectTimeoutError": "is there a way to it, or a VPC endpoint?",
}


class Fault(NamedTuple):
    """Why there was no answer.

    Attributes:
        kind: one of few; said once.
        line: for people.
    """

    kind: str
    line: str


def fault_of(what: str, error: Exception) -> Fault:
    """The fault of asking for something.

    Args:
        what: was asked for, in the words of AWS.
    """
    kind = code_of(error) or type(error).__name__
    way_out = _WAYS_OUT.get(kind)
    return Fault(f"{what} {kind}", f"{what}: {_told(error)}" + (f"; {way_out}" if way_out else ""))


def _told(error: Exception) -> str:
    """What an error says, on one short line."""
    if isinstance(error, (AttributeError, LookupError, TypeError)):  # of whoever has read it
        return f"the answer makes no sense ({error!r})"[:MOST_SHOWN]
    return words_of(error)
