"""What processes that ask AWS the same tell one another, through `herdgate.stores.redis.lookout`, as texts.

Everything read here may be a lie, or garbage: what is none is left out, and nothing of it is believed.
"""

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress

from herdgate_gateway.drain.aws.asking import Question
from herdgate_gateway.drain.aws.signs import Identity, Standing, Target

__all__ = ["read_members", "text_of_identity", "text_of_question", "text_of_standings"]


def text_of_question(question: Question) -> str:
    """Names a question, in a key."""
    return hashlib.sha256(json.dumps(question).encode()).hexdigest()[:16]


def text_of_standings(found: Mapping[str, Standing]) -> str:
    """The same text for the same standings."""
    return json.dumps(sorted(found.items()))


def text_of_identity(identity: Identity) -> str:
    """For `read_members`."""
    return json.dumps({"target": identity.target and str(identity.target), "task": identity.task})


def read_members(texts: Mapping[str, str], own: Identity) -> dict[str, Identity]:
    """What each member is, as far as it can be one: a task of another cluster would fail the question of all."""
    members: dict[str, Identity] = {}
    for name, text in texts.items():
        with suppress(AttributeError, RecursionError, TypeError, ValueError):
            told = json.loads(text)
            target, task = told.get("target"), told.get("task")
            if task is None or _are_of_one_cluster(own.task, task):
                members[name] = Identity(None if target is None else Target.parse(target), task)
    return members


def _are_of_one_cluster(own: str | None, other: str) -> bool:
    if own is None:
        return False
    cluster, _, _ = own.rpartition("/")
    other_cluster, _, name = other.rpartition("/")
    return cluster == other_cluster and name.isascii() and name.replace("-", "").isalnum()
