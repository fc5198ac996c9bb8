"""What is asked of AWS, held to the SDK's own shapes (its Stubber); what errors mean, and when all is asked again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError
from botocore.session import Session
from botocore.stub import Stubber

from herdgate_gateway.drain.aws.asking import Aws, Client, Question
from herdgate_gateway.drain.aws.backoff import MOST_S, Backoffs
from herdgate_gateway.drain.aws.complaints import AGAIN_S, Complaints
from herdgate_gateway.drain.aws.faults import Fault, fault_of
from herdgate_gateway.drain.aws.signs import Answer, Target, TargetState, TaskState
from tests.herdgate_gateway.drain.fake_aws import CLUSTER, GROUP, OTHER_GROUP, task_arn

STATES = ("initial", "healthy", "unhealthy", "unhealthy.draining", "unused", "draining", "unavailable")
"""All that the API has."""


class Stubbed:
    """An Aws whose clients are botocore's, with answers that have to have the shapes of the API."""

    def __init__(self, question: Question) -> None:
        self.now, self.faults = 0.0, list[Fault]()
        self._stubbers: dict[str, Stubber] = {}
        self.aws = Aws(question, Backoffs(5.0, lambda: 0.5), lambda: self.now, self._open)

    def answers(self, service: str, operation: str, reply: dict[str, Any], **asked: object) -> None:
        """Expect this call next."""
        self._stubber(service).add_response(operation, reply, asked)

    def refuses(self, service: str, operation: str, code: str) -> None:
        """Answer the next call with an error."""
        self._stubber(service).add_client_error(operation, code, "no")

    def ask(self, *tasks: str) -> Answer:
        """Ask once."""
        return self.aws.ask(tasks, self.faults.append)

    def are_all_asked(self) -> None:
        """Nothing that was expected is missing."""
        for stubber in self._stubbers.values():
            stubber.assert_no_pending_responses()

    def _stubber(self, service: str) -> Stubber:
        if service not in self._stubbers:
            keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
            client = Session().create_client(service, region_name="us-east-1", **keys)
            self._stubbers[service] = Stubber(client)
            self._stubbers[service].activate()
        return self._stubbers[service]

    def _open(self, service: str, region: str) -> Client:
        assert region == "us-east-1", "that of the ARN"
        client: Client = self._stubber(service).client
        return client


@contextmanager
def stubbed(*groups: str, cluster: str | None = None) -> Iterator[Stubbed]:
    asked = Stubbed(Question(groups, cluster))
    yield asked
    asked.are_all_asked()


def health(*states: str) -> dict[str, Any]:
    rows = [
        {"Target": {"Id": f"10.0.0.{number}", "Port": 80}, "TargetHealth": {"State": state}}
        for number, state in enumerate(states)
    ]
    return {"TargetHealthDescriptions": rows}


def tasks(*rows: tuple[str, str]) -> dict[str, Any]:
    return {"tasks": [{"taskArn": arn, "lastStatus": last, "desiredStatus": "RUNNING"} for arn, last in rows]}


def test_every_state_of_a_target_is_read_as_it_is() -> None:
    with stubbed(GROUP) as asked:
        asked.answers("elbv2", "describe_target_health", health(*STATES), TargetGroupArn=GROUP)
        rows = [TargetState(Target(f"10.0.0.{number}", 80), state) for number, state in enumerate(STATES)]
        assert asked.ask() == Answer({GROUP: rows})


def test_tasks_are_asked_for_by_the_hundred() -> None:
    arns = [task_arn(number) for number in range(250)]
    with stubbed(cluster=CLUSTER) as asked:
        for lot in (arns[:100], arns[100:200], arns[200:]):
            reply = tasks(*((arn, "DEACTIVATING") for arn in lot))
            asked.answers("ecs", "describe_tasks", reply, cluster=CLUSTER, tasks=lot)
        assert asked.ask(*arns).tasks == {arn: TaskState("DEACTIVATING", "RUNNING") for arn in arns}


def test_part_that_fails_is_missing_and_the_others_are_answered() -> None:
    with stubbed(GROUP, OTHER_GROUP, cluster=CLUSTER) as asked:
        asked.refuses("elbv2", "describe_target_health", "TargetGroupNotFound")
        asked.answers("elbv2", "describe_target_health", health("healthy"), TargetGroupArn=OTHER_GROUP)
        asked.refuses("ecs", "describe_tasks", "AccessDeniedException")
        answer = asked.ask(task_arn(1))
        assert (list(answer.groups), answer.tasks, answer.is_empty) == ([OTHER_GROUP], None, False)
        assert [fault.kind for fault in asked.faults] == [
            "DescribeTargetHealth of web TargetGroupNotFound",
            "DescribeTasks AccessDeniedException",
        ]


def test_part_that_fails_is_left_alone_for_longer_each_time() -> None:
    with stubbed(GROUP) as asked:
        for wait_s in (2.5, 5.0, 10.0):
            asked.refuses("elbv2", "describe_target_health", "Throttling")
            assert asked.ask().is_empty
            asked.now += wait_s - 0.1
            assert not asked.aws.is_due
            assert asked.ask().is_empty, "and nothing is asked"
            asked.now += 0.1
            assert asked.aws.is_due
        asked.answers("elbv2", "describe_target_health", health("healthy"), TargetGroupArn=GROUP)
        assert not asked.ask().is_empty
        assert asked.aws.is_due


def test_backoff_has_full_jitter_up_to_a_minute() -> None:
    drawn = 1.0
    backoffs = Backoffs(5.0, lambda: drawn)
    for ceiling_s in (5.0, 10.0, 20.0, 40.0, MOST_S, MOST_S):
        backoffs.failed("web", 0.0)
        assert not backoffs.is_due("web", ceiling_s - 0.01)
        assert backoffs.is_due("web", ceiling_s)
    drawn = 0.0
    backoffs.failed("web", 0.0)
    assert backoffs.is_due("web", 0.0)


def _raising(error: Exception) -> Callable[[str, str], Client]:
    def open_client(_: str, __: str) -> Client:
        raise error

    return open_client


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (NoCredentialsError(), "give this task or machine a role"),
        (EndpointConnectionError(endpoint_url="http://a"), "is there a way to it"),
        (TimeoutError(), "no answer in time"),
        (KeyError("TargetHealthDescriptions"), "TargetHealthDescriptions"),
        (ModuleNotFoundError("No module named 'botocore'"), "No module named"),
        (RuntimeError("two\nlines \x1b[31m"), "two lines"),
        (RuntimeError(), "RuntimeError"),
    ],
)
def test_whatever_goes_wrong_is_one_clear_line(error: Exception, told: str) -> None:
    faults: list[Fault] = []
    aws = Aws(Question((GROUP,), None), Backoffs(5.0, lambda: 0.5), lambda: 0.0, _raising(error))
    assert aws.ask((), faults.append).is_empty
    (fault,) = faults
    assert fault.line.startswith("DescribeTargetHealth of web: ")
    assert told in fault.line
    assert fault.line.isprintable()


def test_fault_is_said_once_an_hour_by_kind(caplog: pytest.LogCaptureFixture) -> None:
    clock = iter((0.0, 0.0, 0.0, AGAIN_S - 1, AGAIN_S - 1, AGAIN_S - 1, AGAIN_S, AGAIN_S, AGAIN_S))
    complaints = Complaints(lambda: next(clock))
    faults = [fault_of("DescribeTasks", error) for error in (TimeoutError(), OSError("a"), OSError("b"))]
    for fault in faults * 3:
        complaints.say(fault)
    told = [record.getMessage().rpartition(": ")[2] for record in caplog.records]
    assert told == ["no answer in time", "a"] * 2
