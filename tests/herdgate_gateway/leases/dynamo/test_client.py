"""Where a table is."""

import subprocess
import sys

import pytest

from herdgate_gateway.errors import ConfigurationError
from herdgate_gateway.leases.dynamo import Place


@pytest.mark.parametrize("table", ["", "ab", "a b c", "tâble", "a" * 256, "arn:aws:dynamodb:eu-west-1:1:table/herd"])
def test_name_that_no_table_has_is_refused(table: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^table: got .*; write 3 to 255 letters"):
        Place(table)


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host", "http://", "http://host:port", "http://[::1"])
def test_endpoint_that_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^endpoint_url: got .*; write http://host:port"):
        Place("herd", endpoint_url=url)


@pytest.mark.parametrize(
    ("place", "told"),
    [
        (Place("herd"), "table herd"),
        (Place("herd", "eu-west-1"), "table herd at eu-west-1"),
        (Place("herd", "eu-west-1", "http://127.0.0.1:8000"), "table herd at http://127.0.0.1:8000"),
        (Place("herd", endpoint_url="https://[::1]"), "table herd at https://[::1]"),
    ],
    ids=str,
)
def test_place_is_told_in_short(place: Place, told: str) -> None:
    assert str(place) == told


def test_sdk_is_not_loaded_before_it_is_needed() -> None:
    code = (
        "import sys; from herdgate_gateway.leases.dynamo import DynamoLeases, Place; DynamoLeases(Place('herd'))\n"
        "print([name for name in ('aioboto3', 'aiobotocore', 'boto3', 'botocore', 'aiohttp') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"
