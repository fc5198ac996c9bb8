"""An ELBv2, an ECS and the metadata of a task that say what a test wants, over HTTP as the SDK speaks it.

    with fake_aws() as aws:
        aws.groups[GROUP] = {"10.0.0.1:80": "healthy"}
        ... aws.url, aws.calls

Rules: who asks is told by its access key, so that calls can be counted by gateway.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from herdgate.asgi import Receive, Scope, Send
from tests.herdgate_gateway.in_thread import serving

__all__ = ["CLUSTER", "GROUP", "OTHER_GROUP", "FakeAws", "fake_aws", "task_arn"]

GROUP = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/web/0123456789abcdef"
OTHER_GROUP = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/inner/0123456789abcdef"
CLUSTER = "arn:aws:ecs:us-east-1:123456789012:cluster/chat"

_KEY = re.compile(r"Credential=([^/]+)/")


def task_arn(number: int, cluster: str = "chat") -> str:
    """Of the task of that number."""
    return f"arn:aws:ecs:us-east-1:123456789012:task/{cluster}/{number:032x}"


@dataclass
class FakeAws:
    """What it says.

    Attributes:
        groups: the states of targets, by ARN of their group.
        tasks: `lastStatus` and `desiredStatus`, by ARN.
        refused: access keys that get an error, and its code.
        calls: by access key and operation.
        metadata: of the task that asks for it.
    """

    url: str = ""
    groups: dict[str, dict[str, str]] = field(default_factory=dict)
    tasks: dict[str, tuple[str, str]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    metadata: Any = None

    def asked_by(self, key: str) -> int:
        """Calls with this access key."""
        return sum(count for (who, _), count in self.calls.items() if who == key)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The app."""
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        status, text = self._answer(scope, body)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": text.encode()})

    def _answer(self, scope: Scope, body: bytes) -> tuple[int, str]:
        if scope["method"] == "GET":
            return 200, json.dumps(self.metadata)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        found = _KEY.search(headers["authorization"])
        assert found is not None
        if "x-amz-target" in headers:
            return self._answer_tasks(found[1], json.loads(body))
        return self._answer_group(found[1], {name: values[0] for name, values in parse_qs(body.decode()).items()})

    def _answer_group(self, key: str, asked: dict[str, str]) -> tuple[int, str]:
        self.calls[key, asked["Action"]] += 1
        rows = self.groups.get(asked["TargetGroupArn"])
        if (code := self.refused.get(key)) or rows is None:
            error = (
                f"<Error><Type>Sender</Type><Code>{code or 'TargetGroupNotFound'}</Code><Message>no</Message></Error>"
            )
            return 400, f"<ErrorResponse>{error}<RequestId>1</RequestId></ErrorResponse>"
        members = "".join(
            f"<member><Target><Id>{target.rpartition(':')[0]}</Id><Port>{target.rpartition(':')[2]}</Port></Target>"
            f"<TargetHealth><State>{state}</State></TargetHealth></member>"
            for target, state in rows.items()
        )
        result = f"<TargetHealthDescriptions>{members}</TargetHealthDescriptions>"
        return 200, (
            '<DescribeTargetHealthResponse xmlns="http://elasticloadbalancing.amazonaws.com/doc/2015-12-01/">'
            f"<DescribeTargetHealthResult>{result}</DescribeTargetHealthResult></DescribeTargetHealthResponse>"
        )

    def _answer_tasks(self, key: str, asked: dict[str, Any]) -> tuple[int, str]:
        self.calls[key, "DescribeTasks"] += 1
        if code := self.refused.get(key):
            return 400, json.dumps({"__type": code, "message": "no"})
        if len(asked["tasks"]) > 100:
            return 400, json.dumps({"__type": "InvalidParameterException", "message": "too many"})
        rows = [
            {"taskArn": arn, "lastStatus": self.tasks[arn][0], "desiredStatus": self.tasks[arn][1]}
            for arn in asked["tasks"]
            if arn in self.tasks
        ]
        missing = [{"arn": arn, "reason": "MISSING"} for arn in asked["tasks"] if arn not in self.tasks]
        return 200, json.dumps({"tasks": rows, "failures": missing})


@contextmanager
def fake_aws() -> Iterator[FakeAws]:
    """One, on a free port of 127.0.0.1."""
    aws = FakeAws()
    with serving(aws.app, interface="asgi3") as port:
        aws.url = f"http://127.0.0.1:{port}"
        yield aws
