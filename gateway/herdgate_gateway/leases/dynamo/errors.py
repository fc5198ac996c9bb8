"""What the SDK's errors mean for a write or a read. Pure.

TableError                no answer, or one that says nothing
└── SetupError            something has to be mended before any answer can come; also a HerdgateError

Every message is one clear line: the table, what is wrong, the way out.
"""

import shlex

from herdgate_gateway.aws_errors import code_of, words_of
from herdgate_gateway.errors import HerdgateError
from herdgate_gateway.leases.dynamo.client import Place
from herdgate_gateway.leases.dynamo.items import item_of
from herdgate_gateway.leases.table import Lost, TableError, Unknown

__all__ = ["SetupError", "named", "outcome_of", "table_error"]

_CREDENTIALS_REFUSED = {
    "ExpiredTokenException",
    "IncompleteSignatureException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "UnrecognizedClientException",
}


class SetupError(HerdgateError, TableError):
    """The table, the credentials or their permissions are not as they have to be."""


def outcome_of(error: Exception, place: Place) -> Lost | Unknown:
    """What became of a write that ended with `error`. One the set-up is to blame for is unknown too, and says so."""
    if code_of(error) == "ConditionalCheckFailedException":
        before = error.response.get("Item")  # type: ignore[attr-defined]
        return Lost(item_of(before) if before else None)
    return Unknown(str(table_error(error, place)))


def table_error(error: Exception, place: Place) -> TableError:
    """What to raise for a read that ended with `error`."""
    if isinstance(error, TableError):
        return error
    if fault := _fault(error, place):
        return SetupError(f"{named(place)}: {fault}")
    return TableError(f"{place}: {words_of(error)}{_way_out(error)}")


def named(place: Place) -> str:
    """The table for people who have to mend something, with its region where an endpoint alone would hide it."""
    if place.region and place.endpoint_url:
        return f"table {place.table} in {place.region} at {place.endpoint_url}"
    return str(place)


def _fault(error: Exception, place: Place) -> str | None:
    """What has to be mended, and how; None: nothing that is known of."""
    if isinstance(error, ModuleNotFoundError):
        return f"it needs more packages ({error}): pip install 'herdgate[worker]'"

    from botocore import exceptions as sdk

    match error:
        case sdk.ClientError():
            return _refusal(code_of(error), words_of(error), place)
        case sdk.NoCredentialsError() | sdk.CredentialRetrievalError() | sdk.PartialCredentialsError():
            way_out = "set AWS_PROFILE, AWS_ACCESS_KEY_ID, or give this machine a role"
            return f"no AWS credentials ({words_of(error)}); {way_out}"
        case sdk.NoRegionError() | sdk.InvalidRegionError():
            return f"no usable region ({words_of(error)}); give one, or set AWS_DEFAULT_REGION"
        case sdk.ProfileNotFound() | sdk.ConfigParseError():
            return f"{words_of(error)}; mend AWS_PROFILE or the file it is in"
        case sdk.ParamValidationError():
            return _invalid(words_of(error))
        case _:
            return None


def _refusal(code: str, told: str, place: Place) -> str | None:
    if code in {"ResourceNotFoundException", "TableNotFoundException"}:
        return f"there is no such table (or is it in another region?); create it: {_init(place)}"
    if code == "AccessDeniedException":
        return f"access denied ({told}); docs/leases.md lists the permissions"
    if code in _CREDENTIALS_REFUSED:
        return f"the credentials are refused ({told}); renew them, and check the clock of this machine"
    if code == "ValidationException":
        return _invalid(told)
    return None


def _init(place: Place) -> str:
    """The command that makes it just there."""
    command = ["herdgate", "leases", "init", "--table", place.table]
    if place.region:
        command += ["--region", place.region]
    if place.endpoint_url:
        command += ["--endpoint-url", place.endpoint_url]
    return shlex.join(command)


def _way_out(error: Exception) -> str:
    """Of what may be a wrong address as well as a moment without a network."""
    from botocore import exceptions as sdk

    nobody = (sdk.EndpointConnectionError, sdk.ConnectTimeoutError)
    return "; is the endpoint right, and the region, and is it up?" if isinstance(error, nobody) else ""


def _invalid(told: str) -> str:
    return f"the request is refused as invalid ({told}); is it the table that `herdgate leases init` makes?"
