"""A DynamoDB for tests: ministack, from its own environment in `.emulator`.

    def test_something(dynamodb: DynamoServer) -> None:
        ... dynamodb.url, dynamodb.pause()

Rules: a server has a free port of 127.0.0.1 and keeps nothing on disk, and is ended by its process id (on Linux also
when the test process dies). Tests that share one take a table of their own. An emulator that lets two conditional
writes of one row win at once, as some do, proves nothing about leases: writers race before one is handed out.
"""

import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.ministack import REGION, START_S, AwsServer, ministack

__all__ = ["CheatError", "DynamoServer", "check_by_a_race", "dynamodb", "dynamodb_server", "set_credentials"]

END_S = 5.0
RACERS = 50
ROUNDS = 20


class CheatError(Exception):
    """Several conditional writes that exclude one another won."""


class DynamoServer(AwsServer):
    """One server process."""

    def ask(self, operation: str, **request: object) -> tuple[int, Any]:
        """One operation of DynamoDB's on a connection of its own: status and reply."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=END_S)) as connection:
            return _ask(connection, operation, request)

    def make_table(self, name: str) -> None:
        """A table with the keys pk and sk."""
        keys = {"pk": "HASH", "sk": "RANGE"}
        status, reply = self.ask(
            "CreateTable",
            TableName=name,
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
            KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys.items()],
        )
        assert status == 200, reply

    def _answers(self) -> bool:
        try:
            return self.ask("ListTables")[0] == 200
        except OSError:
            return False


@contextmanager
def dynamodb_server() -> Iterator[DynamoServer]:
    """One server, unchecked."""
    with ministack(DynamoServer, services="dynamodb") as server:
        yield server


@pytest.fixture(scope="session")
def dynamodb() -> Iterator[DynamoServer]:
    """A server for all tests of this process, after it has passed the race."""
    with dynamodb_server() as server:
        server.make_table("race")
        check_by_a_race(lambda: _racer(server.port))
        yield server


def set_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the SDK find credentials that any emulator takes, and nothing of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


Attempt = Callable[[int], bool]
"""Write round + 1 where the round stands; True if it was written."""


def check_by_a_race(make_racer: Callable[[], AbstractContextManager[Attempt]]) -> None:
    """Have 50 writers try the same conditional write at once, 20 times.

    Args:
        make_racer: gives each writer a connection.

    Raises:
        CheatError: more or fewer than one won a round.
    """
    start = threading.Barrier(RACERS)

    def race() -> list[bool]:
        won = []
        with make_racer() as attempt:
            for number in range(ROUNDS):
                start.wait(START_S)
                won.append(attempt(number))
        return won

    with ThreadPoolExecutor(RACERS) as pool:
        results = [running.result() for running in [pool.submit(race) for _ in range(RACERS)]]
    winners = [sum(won) for won in zip(*results, strict=True)]
    if bad := [count for count in winners if count != 1]:
        raise CheatError(f"one write of {RACERS} at once has to win; in {len(bad)} rounds of {ROUNDS} it was {bad}")


def _ask(connection: HTTPConnection, operation: str, request: object) -> tuple[int, Any]:
    """One operation of DynamoDB's, with no true signature: status and reply."""
    signature = f"AWS4-HMAC-SHA256 Credential=testing/20260101/{REGION}/dynamodb/aws4_request"
    headers = {"X-Amz-Target": f"DynamoDB_20120810.{operation}", "Authorization": signature}
    connection.request("POST", "/", json.dumps(request), {**headers, "Content-Type": "application/x-amz-json-1.0"})
    response = connection.getresponse()
    return response.status, json.loads(response.read())


@contextmanager
def _racer(port: int) -> Iterator[Attempt]:
    connection = HTTPConnection("127.0.0.1", port, timeout=START_S)

    def attempt(number: int) -> bool:
        request = {
            "TableName": "race",
            "Key": {"pk": {"S": "one"}, "sk": {"S": "@"}},
            "UpdateExpression": "SET epoch = :next",
            "ConditionExpression": "attribute_not_exists(pk) OR epoch = :now",
            "ExpressionAttributeValues": {":now": {"N": str(number)}, ":next": {"N": str(number + 1)}},
        }
        status, reply = _ask(connection, "UpdateItem", request)
        assert status == 200 or "ConditionalCheckFailed" in reply["__type"], reply
        return status == 200

    with closing(connection):
        yield attempt
