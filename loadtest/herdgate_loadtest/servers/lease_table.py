"""The table of leases in an emulator: made by `herdgate leases init`, read and written without a client of AWS's.

Rules: rows are those of docs/leases.md, and what is read here is for looking at only.
"""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.servers.emulator import REGION, aws_environment

__all__ = ["FLEET", "SHARDS", "TABLE", "Place", "leases_command", "shard_of"]

FLEET = "default"
SHARDS = 1_024
TABLE = "herdgate-leases"

_ANSWER_S = 10.0
_OK = 200


class Place:
    """Where workers and gateways meet.

    Attributes:
        endpoint: of the emulator.
        redis: URL of the fleet's Redis.
        options: that name the table, for a command.
    """

    def __init__(self, endpoint: str, redis: str) -> None:
        self.endpoint = endpoint
        self.redis = redis
        self.options = ["--table", TABLE, "--region", REGION, "--endpoint-url", endpoint]

    def make_table(self) -> None:
        """Make it.

        Raises:
            CrowdError: it could not be made.
        """
        command = leases_command("init", *self.options)
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=aws_environment())  # noqa: S603
        if done.returncode:
            said = done.stderr.strip().split("\n")[-1].removeprefix("herdgate: ")
            raise CrowdError(f"the lease table cannot be made: {said}")

    def put(self, **row: str | int) -> None:
        """Write a row, whatever is there.

        Raises:
            CrowdError: the table does not take it.
        """
        item = {name: {"N" if isinstance(value, int) else "S": str(value)} for name, value in row.items()}
        self._ask("PutItem", {"TableName": TABLE, "Item": item})

    def owners(self) -> dict[str, frozenset[int]]:
        """The shards of each worker that lives.

        Raises:
            CrowdError: the table does not answer.
        """
        rows = list(self._rows())
        living = {row["inc"]: row["sk"] for row in rows if "#W#" in row["pk"] and row["st"] != "DEAD"}
        owned: dict[str, set[int]] = {name: set() for name in living.values()}
        for row in rows:
            if row["sk"] == "@" and row["inc"] in living:
                owned[living[row["inc"]]].add(int(row["pk"].rpartition("#")[2]))
        return {name: frozenset(shards) for name, shards in owned.items()}

    def _rows(self) -> Iterator[Mapping[str, str]]:
        """All there are, values by name, whatever their type."""
        request: dict[str, Any] = {"TableName": TABLE, "ConsistentRead": True}
        while True:
            answer = self._ask("Scan", request)
            for item in answer["Items"]:
                yield {name: next(iter(value.values())) for name, value in item.items()}
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _ask(self, operation: str, request: Mapping[str, Any]) -> Any:
        """One operation of DynamoDB's, with no true signature."""
        address = urlsplit(self.endpoint)
        connection = HTTPConnection(address.hostname or "", address.port, timeout=_ANSWER_S)
        headers = {
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
            "Content-Type": "application/x-amz-json-1.0",
            "Authorization": f"AWS4-HMAC-SHA256 Credential=bench/20260101/{REGION}/dynamodb/aws4_request",
        }
        try:
            connection.request("POST", "/", json.dumps(request), headers)
            response = connection.getresponse()
            answer = response.read()
        except OSError as error:
            raise CrowdError(f"the lease table does not answer ({error}): run it again") from error
        finally:
            connection.close()
        if response.status != _OK:
            raise CrowdError(f"the lease table refuses {operation} ({answer[:100]!r}): run it again")
        return json.loads(answer)


def leases_command(command: str, *arguments: str) -> list[str]:
    """Of `herdgate leases`."""
    return [sys.executable, "-m", "herdgate", "leases", command, *arguments]


def shard_of(connection_id: str) -> int:
    """The shard of a connection, as docs/leases.md has it: a hash of its id."""
    return int.from_bytes(hashlib.blake2b(connection_id.encode(), digest_size=8).digest()) % SHARDS
