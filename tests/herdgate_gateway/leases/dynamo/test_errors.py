"""What errors of the SDK mean."""

import asyncio

import pytest
from botocore import exceptions as sdk

from herdgate import HerdgateError
from herdgate_gateway.leases.dynamo import Place, SetupError
from herdgate_gateway.leases.dynamo.errors import outcome_of, table_error
from herdgate_gateway.leases.table import Lost, TableError, Unknown

PLACE = Place("herd", "eu-west-1")


def client_error(code: str, message: str = "Told.", **more: object) -> sdk.ClientError:
    return sdk.ClientError({"Error": {"Code": code, "Message": message}, **more}, "UpdateItem")


def test_condition_that_failed_is_lost_with_the_row_as_it_was() -> None:
    error = client_error("ConditionalCheckFailedException", Item={"pk": {"S": "p"}, "hb": {"N": "3"}})
    assert outcome_of(error, PLACE) == Lost({"pk": "p", "hb": 3})
    assert outcome_of(client_error("ConditionalCheckFailedException"), PLACE) == Lost(None)


SETUP = [
    (
        client_error("ResourceNotFoundException"),
        "(or is it in another region?); create it: herdgate leases init --table herd --region eu-west-1",
    ),
    (
        client_error("AccessDeniedException", "User: a\nis"),
        "access denied (AccessDeniedException: User: a is); docs/leases.md",
    ),
    (client_error("UnrecognizedClientException"), "the credentials are refused (UnrecognizedClientException: Told.)"),
    (client_error("ExpiredTokenException"), "renew them, and check the clock"),
    (client_error("InvalidSignatureException"), "check the clock of this machine"),
    (client_error("ValidationException", "The provided key element does not match the schema"), "is it the table that"),
    (ModuleNotFoundError("No module named 'aioboto3'"), "pip install 'herdgate[worker]'"),
    (sdk.NoCredentialsError(), "no AWS credentials (Unable to locate credentials); set AWS_PROFILE"),
    (sdk.PartialCredentialsError(provider="env", cred_var="AWS_SECRET_ACCESS_KEY"), "no AWS credentials (Partial"),
    (sdk.NoRegionError(), "give one, or set AWS_DEFAULT_REGION"),
    (sdk.InvalidRegionError(region_name="x y"), "no usable region"),
    (sdk.ProfileNotFound(profile="nobody"), "mend AWS_PROFILE"),
    (sdk.ParamValidationError(report="bad"), "the request is refused as invalid"),
]


@pytest.mark.parametrize(("error", "told"), SETUP, ids=lambda value: str(value)[:50])
def test_wrong_set_up_is_one_line_with_the_way_out(error: Exception, told: str) -> None:
    raised = table_error(error, PLACE)
    assert isinstance(raised, SetupError)
    assert isinstance(raised, HerdgateError)
    assert str(raised).startswith("table herd at eu-west-1: ")
    assert told in str(raised)
    assert str(raised).isprintable()
    assert outcome_of(error, PLACE) == Unknown(str(raised))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (client_error("ThrottlingException", "Rate exceeded"), "ThrottlingException: Rate exceeded"),
        (client_error("InternalServerError"), "InternalServerError: Told."),
        (client_error("RequestLimitExceeded"), "RequestLimitExceeded"),
        (sdk.ClientError({}, "UpdateItem"), "An error occurred"),
        (sdk.ReadTimeoutError(endpoint_url="http://h"), "Read timeout"),
        (
            sdk.EndpointConnectionError(endpoint_url="http://h"),
            'Could not connect to the endpoint URL: "http://h"; is the endpoint right, and the region, and is it up?',
        ),
        (sdk.ConnectTimeoutError(endpoint_url="http://h"), "; is the endpoint right, and the region, and is it up?"),
        (sdk.ConnectionClosedError(endpoint_url="http://h"), "Connection was closed"),
        (TimeoutError(), "no answer in time"),
        (asyncio.IncompleteReadError(b"", 3), "bytes read"),
        (KeyError("Attributes"), "Attributes"),
        (RuntimeError(), "RuntimeError"),
        (RuntimeError("x" * 999), "x" * 300),
        (RuntimeError("\x1b[2Jred"), "[2Jred"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_anything_else_says_nothing_of_the_write(error: Exception, told: str) -> None:
    raised = table_error(error, PLACE)
    assert type(raised) is TableError
    assert told in str(raised)
    assert str(raised).isprintable()
    assert len(str(raised)) < 350
    assert outcome_of(error, PLACE) == Unknown(str(raised))


@pytest.mark.parametrize(
    ("place", "shown", "init"),
    [
        (Place("herd"), "table herd", "--table herd"),
        (Place("herd", "eu-west-1"), "table herd at eu-west-1", "--table herd --region eu-west-1"),
        (Place("herd", None, "http://h"), "table herd at http://h", "--table herd --endpoint-url http://h"),
        (
            Place("herd", "eu-west-1", "http://h/?a&b"),
            "table herd in eu-west-1 at http://h/?a&b",
            "--table herd --region eu-west-1 --endpoint-url 'http://h/?a&b'",
        ),
    ],
    ids=str,
)
def test_missing_table_is_named_with_all_that_was_given_and_so_is_what_makes_it(
    place: Place, shown: str, init: str
) -> None:
    told = str(table_error(client_error("ResourceNotFoundException"), place))
    what = "there is no such table (or is it in another region?); create it: herdgate leases init"
    assert told == f"{shown}: {what} {init}"


def test_error_that_says_it_all_stays_as_it_is() -> None:
    error = TableError("too busy")
    assert table_error(error, PLACE) is error
