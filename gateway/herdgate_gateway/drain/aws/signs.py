"""What AWS says of a process, and whether it is an early sign to drain. Pure.

| a target | standing | sign |
|---|---|---|
| `draining` | leaving | if it was seen in service before |
| `unused`, or not listed, while another one of its group is in service | gone | the same |
| `unused`, or not listed, and nobody of its group is in service | unclear | no |
| any other state, one that is not known here too | in service | no |

| a task | standing | sign |
|---|---|---|
| `DEACTIVATING`, `STOPPING`, `DEPROVISIONING`, `STOPPED`, `DELETED`, or meant to be `STOPPED` | leaving | yes |
| any other status | in service | no |
| not in the answer | unclear | no |

Only an address tells a target from the one that had it before, so what was never seen in service may be the former one,
which drains still. A task has a name of its own.

A group in which nobody is in service was changed as a whole: detached, emptied, switched over. Nobody of it is told to
go, its connections are not cut by that, and nobody of it could take the clients.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Literal, NamedTuple

__all__ = ["TASK", "Answer", "Identity", "Memory", "Standing", "Target", "TargetState", "TaskState", "standings"]

Standing = Literal["in service", "leaving", "gone", "unclear"]

TASK = "task"
"""Stands for the task where target groups stand by their ARNs."""

_OUT_OF_SERVICE = ("draining", "unused")
_LEAVING = ("DEACTIVATING", "STOPPING", "DEPROVISIONING", "STOPPED", "DELETED")


class Target(NamedTuple):
    """A target as it is registered. Its port is None: whichever it is."""

    id: str
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> "Target":
        """Read `ID` or `ID:PORT`. The ID is of an instance, or an address; one of IPv6 has brackets before a port.

        Raises:
            ValueError: it is neither.
        """
        if text.startswith("[") or text.count(":") == 1:
            name, _, port = text.rpartition(":")
            return cls(_id_of(name.removeprefix("[").removesuffix("]")), _port_of(port))
        return cls(_id_of(text))

    @classmethod
    def told(cls, name: str, port: int | None) -> "Target":
        """One that AWS names: an address of IPv6 as it was registered, in whatever spelling."""
        try:
            return cls(_id_of(name), port)
        except ValueError:  # a function, or another balancer
            return cls(name, port)

    def __str__(self) -> str:
        """As it is parsed."""
        if self.port is None:
            return self.id
        return f"[{self.id}]:{self.port}" if ":" in self.id else f"{self.id}:{self.port}"

    def is_at(self, other: "Target") -> bool:
        """Whether this one, with a port, is what `other` means."""
        return self.id == other.id and other.port in (None, self.port)


class TargetState(NamedTuple):
    """A target of a group, and its state (`TargetHealth.State`)."""

    target: Target
    state: str


class TaskState(NamedTuple):
    """`lastStatus` and `desiredStatus` of a task."""

    last: str
    desired: str


@dataclass(frozen=True, slots=True)
class Identity:
    """What a process is to AWS.

    Attributes:
        target: in each of the target groups. None: it is in none.
        task: its ARN. None: its task is not watched.
    """

    target: Target | None
    task: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """What AWS has answered; what failed is missing.

    Attributes:
        groups: by ARN.
        tasks: by ARN. None: there is no answer.
    """

    groups: Mapping[str, Iterable[TargetState]]
    tasks: Mapping[str, TaskState] | None = None

    @property
    def is_empty(self) -> bool:
        """Nothing was answered."""
        return not self.groups and self.tasks is None


def standings(answer: Answer, identity: Identity) -> dict[str, Standing]:
    """Where a process stands, by target group and `TASK`, as far as the answer says."""
    found: dict[str, Standing] = {}
    if identity.target is not None:
        found |= {group: _of_target(identity.target, list(rows)) for group, rows in answer.groups.items()}
    if identity.task is not None and answer.tasks is not None:
        found[TASK] = _of_task(answer.tasks.get(identity.task))
    return found


@dataclass(slots=True)
class Memory:
    """Where one process was seen in service, since it started, by its own looks."""

    seen: set[str] = field(default_factory=set)

    def heed(self, found: Mapping[str, Standing]) -> str | None:
        """Take note of what was found; the target group or `TASK` that is a sign to drain, if one is."""
        self.seen |= {where for where, standing in found.items() if standing == "in service"}
        return next((where for where, standing in found.items() if self._is_sign(where, standing)), None)

    def _is_sign(self, where: str, standing: Standing) -> bool:
        return standing in ("leaving", "gone") and (where == TASK or where in self.seen)


def _of_target(target: Target, rows: list[TargetState]) -> Standing:
    mine = {row.state for row in rows if row.target.is_at(target)}
    if mine.difference(_OUT_OF_SERVICE):
        return "in service"
    if "draining" in mine:
        return "leaving"
    return "gone" if any(row.state not in _OUT_OF_SERVICE for row in rows) else "unclear"


def _of_task(state: TaskState | None) -> Standing:
    if state is None:
        return "unclear"
    return "leaving" if state.last in _LEAVING or state.desired == "STOPPED" else "in service"


def _id_of(text: str) -> str:
    if text.startswith("i-") and text[2:].isalnum() and text.isascii():
        return text
    return str(ip_address(text))


def _port_of(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= 65_535):
        raise ValueError(f"no port: {text}")
    return int(text)
