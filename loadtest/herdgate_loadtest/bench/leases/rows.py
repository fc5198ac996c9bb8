"""The connections that the workers act on, put into the table beforehand."""

import hashlib
import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from herdgate_loadtest.bench.leases.holder import TABLE, Place
from herdgate_loadtest.errors import CrowdError

__all__ = ["CONNECTIONS", "create_connections"]

CONNECTIONS = tuple(f"bench-{number}" for number in range(12))


def create_connections(place: Place) -> None:
    """Put them there.

    Raises:
        CrowdError: the table does not take them.
    """
    address = urlsplit(place.options[-1])
    for name in CONNECTIONS:
        shard = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) % 1_024
        item = {"pk": f"default#S#{shard:04d}", "sk": f"C#{name}", "want": "STARTED"}
        body: dict[str, Any] = {"TableName": TABLE, "Item": {key: {"S": value} for key, value in item.items()}}
        connection = HTTPConnection(address.hostname or "", address.port or 80, timeout=10)
        headers = {
            "X-Amz-Target": "DynamoDB_20120810.PutItem",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": "AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request",
        }
        connection.request("POST", "/", json.dumps(body), headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        if response.status != 200:
            raise CrowdError(f"the lease table does not take a connection ({answer[:100]!r}): run it again")
