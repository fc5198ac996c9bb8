"""Asks ELBv2 for the targets of each group, and ECS for tasks: `DescribeTargetHealth`, and `DescribeTasks` by the 100.

Each group, and the tasks together, are a part of the answer. One that fails says why, and is left alone for a while;
the others are answered all the same. The SDK is loaded with the first call, and tries nothing twice.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from herdgate_gateway.drain.aws.backoff import Backoffs
from herdgate_gateway.drain.aws.faults import Fault, fault_of
from herdgate_gateway.drain.aws.options import region_of
from herdgate_gateway.drain.aws.signs import TASK, Answer, Target, TargetState, TaskState

__all__ = ["Aws", "Client", "Question", "opened"]

CONNECT_S, READ_S = 2.0, 3.0
MOST_TASKS = 100

Reply = Mapping[str, Any]


class Client(Protocol):
    """What is used of the clients of both services. All raise botocore's errors."""

    def describe_target_health(self, **request: Any) -> Reply: ...
    def describe_tasks(self, **request: Any) -> Reply: ...


class Question(NamedTuple):
    """What is asked for. Who asks the same can ask for one another.

    Attributes:
        target_groups: ARNs.
        cluster: of the tasks. None: no task is asked for.
    """

    target_groups: tuple[str, ...]
    cluster: str | None


class Aws:
    """What one process asks. Blocks.

    Args:
        open_client: makes the client of a service in a region.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        question: Question,
        backoffs: Backoffs,
        clock: Callable[[], float],
        open_client: Callable[[str, str], Client] | None = None,
    ) -> None:
        self._question, self._backoffs, self._clock = question, backoffs, clock
        self._open = open_client or opened
        self._clients: dict[tuple[str, str], Client] = {}

    @property
    def is_due(self) -> bool:
        """False while all of it is left alone."""
        return any(self._backoffs.is_due(part, self._clock()) for part in self._parts())

    def ask(self, tasks: Collection[str], tell: Callable[[Fault], None]) -> Answer:
        """What is answered now.

        Args:
            tasks: ARNs, all in one region.
            tell: gets what has failed.
        """
        groups: dict[str, Sequence[TargetState]] = {}
        states: dict[str, TaskState] | None = None
        for part in self._parts():
            if not self._backoffs.is_due(part, self._clock()):
                continue
            try:
                if part == TASK:
                    states = dict(self._ask_tasks(list(tasks)))
                else:
                    groups[part] = list(self._ask_group(part))
            except Exception as error:  # noqa: BLE001 - whatever it is, it is no sign
                self._backoffs.failed(part, self._clock())
                tell(fault_of("DescribeTasks" if part == TASK else f"DescribeTargetHealth of {_name(part)}", error))
            else:
                self._backoffs.served(part)
        return Answer(groups, states)

    def _parts(self) -> tuple[str, ...]:
        return (*self._question.target_groups, *((TASK,) if self._question.cluster else ()))

    def _ask_group(self, arn: str) -> Iterator[TargetState]:
        reply = self._client("elbv2", arn).describe_target_health(TargetGroupArn=arn)
        for row in reply["TargetHealthDescriptions"]:
            told = row["Target"]
            yield TargetState(Target.told(told["Id"], told.get("Port")), row["TargetHealth"]["State"])

    def _ask_tasks(self, arns: Sequence[str]) -> Iterator[tuple[str, TaskState]]:
        for start in range(0, len(arns), MOST_TASKS):
            lot = list(arns[start : start + MOST_TASKS])
            reply = self._client("ecs", lot[0]).describe_tasks(cluster=self._question.cluster, tasks=lot)
            for task in reply["tasks"]:
                yield task["taskArn"], TaskState(task["lastStatus"], task["desiredStatus"])

    def _client(self, service: str, arn: str) -> Client:
        key = service, region_of(arn)
        if key not in self._clients:
            self._clients[key] = self._open(*key)
        return self._clients[key]


def opened(service: str, region: str) -> Client:
    """A client; credentials and endpoint are found as by AWS's own tools."""
    from botocore.config import Config
    from botocore.session import Session

    once = {"total_max_attempts": 1}
    config = Config(connect_timeout=CONNECT_S, read_timeout=READ_S, retries=once, max_pool_connections=1)
    client: Client = Session().create_client(service, region_name=region, config=config)
    return client


def _name(arn: str) -> str:
    """Of a target group."""
    return arn.split("/")[1]
