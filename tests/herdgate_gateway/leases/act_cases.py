"""Every act of the protocol, with the rows it meets and what becomes of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from herdgate_gateway.leases import acts
from herdgate_gateway.leases.acts import Write
from herdgate_gateway.leases.rows import ShardRow, WorkerRow

__all__ = ["CASES", "Case"]

Attributes = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One act on one row.

    Attributes:
        before: the row without its key; None: there is none.
        write: the act, in a fleet.
        after: the row it becomes; None: the act is lost and the row stays.
        again_is_done: the same act, once more, is done again and changes nothing.
    """

    name: str
    before: Attributes | None
    write: Callable[[str], Write]
    after: Attributes | None
    again_is_done: bool = False


MINE = WorkerRow("w", "mine", None, "UP", 0, 3_000, "host:1", 100, 7)
NEXT = WorkerRow("v", "next", None, "UP", 4, 3_000, "host:2", 100, 0)
NEXT_W = WorkerRow("w", "next", None, "UP", 0, 3_000, "host:2", 100, 0)
FIRST = {"inc": "mine", "st": "UP", "hb": 0, "lease_ms": 3_000, "addr": "host:1", "capacity": 100, "load": 7}
UP = {**FIRST, "hb": 5}
DEAD = {**UP, "st": "DEAD"}
OTHER = {**UP, "inc": "other"}
OTHER_DEAD = {**OTHER, "st": "DEAD", "prev": "older"}
SEEN = WorkerRow("w", "mine", None, "UP", 5, 3_000, "host:1", 100, 7)
SEEN_OTHER = WorkerRow("w", "other", None, "DEAD", 5, 3_000, "host:1", 100, 7)
OWNED = {"owner": "w", "inc": "mine", "addr": "host:1", "epoch": 4}
TAKEN = {"owner": "v", "inc": "next", "addr": "host:2", "epoch": 5}
SEEN_SHARD = ShardRow(3, "w", "mine", "host:1", 4)
ID = "one"
NEW = {"want": "STARTED", "attrs": {"user": "u"}}
CLAIMED = {**NEW, "epoch": 4}
FAR = {**CLAIMED, "last_seq": 10}
RAISED = 2 << 40

REGISTER = [
    Case("register: first of its name", None, lambda f: acts.register(f, MINE, None), FIRST),
    Case("register: the name was new no more", OTHER, lambda f: acts.register(f, MINE, None), None),
    Case("register: repeated", UP, lambda f: acts.register(f, MINE, None), None),
    Case(
        "register: over a dead one",
        OTHER_DEAD,
        lambda f: acts.register(f, MINE, SEEN_OTHER),
        {**FIRST, "prev": "other"},
    ),
    Case("register: over one that lives", OTHER, lambda f: acts.register(f, MINE, SEEN_OTHER), None),
    Case("register: over one that was replaced", DEAD, lambda f: acts.register(f, NEXT_W, SEEN_OTHER), None),
    Case("register: over one that is gone", None, lambda f: acts.register(f, MINE, SEEN_OTHER), None),
]

BEAT = [
    Case("beat: mine", UP, lambda f: acts.beat(f, "w", "mine", 9), {**UP, "hb": 6, "load": 9}),
    Case("beat: the first", FIRST, lambda f: acts.beat(f, "w", "mine", 7), {**FIRST, "hb": 1}),
    Case(
        "beat: while draining",
        {**UP, "st": "DRAINING"},
        lambda f: acts.beat(f, "w", "mine", 7),
        {**UP, "st": "DRAINING", "hb": 6},
    ),
    Case("beat: dead", DEAD, lambda f: acts.beat(f, "w", "mine", 9), None),
    Case("beat: another life", OTHER, lambda f: acts.beat(f, "w", "mine", 9), None),
    Case("beat: no row", None, lambda f: acts.beat(f, "w", "mine", 9), None),
]

STATE = [
    Case(
        "state: draining",
        UP,
        lambda f: acts.set_state(f, "w", "mine", "DRAINING"),
        {**UP, "st": "DRAINING"},
        again_is_done=True,
    ),
    Case("state: dead by itself", UP, lambda f: acts.set_state(f, "w", "mine", "DEAD"), DEAD),
    Case("state: up no more once dead", DEAD, lambda f: acts.set_state(f, "w", "mine", "UP"), None),
    Case("state: another life", OTHER, lambda f: acts.set_state(f, "w", "mine", "DRAINING"), None),
    Case("state: no row", None, lambda f: acts.set_state(f, "w", "mine", "DRAINING"), None),
]

FENCE = [
    Case("fence: no beat since", UP, lambda f: acts.fence(f, SEEN), DEAD),
    Case("fence: a beat since", {**UP, "hb": 6}, lambda f: acts.fence(f, SEEN), None),
    Case("fence: another life since", OTHER, lambda f: acts.fence(f, SEEN), None),
    Case("fence: dead already", DEAD, lambda f: acts.fence(f, SEEN), None),
    Case("fence: no row", None, lambda f: acts.fence(f, SEEN), None),
    Case(
        "fence child: whatever it beat",
        {**UP, "hb": 99},
        lambda f: acts.fence_child(f, "w", "mine"),
        {**DEAD, "hb": 99},
    ),
    Case("fence child: another life", OTHER, lambda f: acts.fence_child(f, "w", "mine"), None),
    Case("tombstone: no row", None, lambda f: acts.tombstone(f, "w", "mine"), {"inc": "mine", "st": "DEAD"}),
    Case("tombstone: there is a row", OTHER, lambda f: acts.tombstone(f, "w", "mine"), None),
]

SHARD = [
    Case("take: never owned", None, lambda f: acts.take(f, NEXT, 3, None), {**TAKEN, "epoch": 1}),
    Case("take: owned meanwhile", OWNED, lambda f: acts.take(f, NEXT, 3, None), None),
    Case("take: of a dead one", OWNED, lambda f: acts.take(f, NEXT, 3, SEEN_SHARD), TAKEN),
    Case("take: taken meanwhile", TAKEN, lambda f: acts.take(f, MINE, 3, SEEN_SHARD), None),
    Case("take: same owner, later epoch", {**OWNED, "epoch": 6}, lambda f: acts.take(f, NEXT, 3, SEEN_SHARD), None),
    Case("take: no row", None, lambda f: acts.take(f, NEXT, 3, SEEN_SHARD), None),
    Case(
        "take: after a restore", OWNED, lambda f: acts.take(f, NEXT, 3, SEEN_SHARD, 2), {**TAKEN, "epoch": RAISED + 1}
    ),
    Case(
        "take: never owned, after a restore",
        None,
        lambda f: acts.take(f, NEXT, 3, None, 2),
        {**TAKEN, "epoch": RAISED + 1},
    ),
    Case("hand over: mine", OWNED, lambda f: acts.hand_over(f, "mine", 3, 4, NEXT), TAKEN),
    Case("hand over: taken meanwhile", TAKEN, lambda f: acts.hand_over(f, "mine", 3, 4, NEXT), None),
    Case("hand over: another epoch", {**OWNED, "epoch": 6}, lambda f: acts.hand_over(f, "mine", 3, 4, NEXT), None),
    Case("hand over: no row", None, lambda f: acts.hand_over(f, "mine", 3, 4, NEXT), None),
]

CONNECTION = [
    Case("claim: by nobody yet", NEW, lambda f: acts.claim(f, ID, 4), CLAIMED, again_is_done=True),
    Case("claim: by an owner before", FAR, lambda f: acts.claim(f, ID, 5), {**FAR, "epoch": 5}, again_is_done=True),
    Case("claim: by me", FAR, lambda f: acts.claim(f, ID, 4), FAR, again_is_done=True),
    Case("claim: by an owner after", FAR, lambda f: acts.claim(f, ID, 3), None),
    Case("claim: no such connection", None, lambda f: acts.claim(f, ID, 4), None),
    Case("checkpoint: the first", CLAIMED, lambda f: acts.checkpoint(f, ID, 4, 0), {**CLAIMED, "last_seq": 0}),
    Case("checkpoint: further", FAR, lambda f: acts.checkpoint(f, ID, 4, 11), {**FAR, "last_seq": 11}),
    Case("checkpoint: as far", FAR, lambda f: acts.checkpoint(f, ID, 4, 10), None),
    Case("checkpoint: back", FAR, lambda f: acts.checkpoint(f, ID, 9, 9), None),
    Case("checkpoint: an owner after", {**FAR, "epoch": 5}, lambda f: acts.checkpoint(f, ID, 4, 11), None),
    Case("checkpoint: never claimed", NEW, lambda f: acts.checkpoint(f, ID, 4, 11), None),
    Case("checkpoint: no such connection", None, lambda f: acts.checkpoint(f, ID, 4, 11), None),
]

STOPPED = {**FAR, "want": "STOPPED", "ttl": 900}
OTHER_ATTRS = {"urls": ["a", "b"], "live": True, "deep": {"n": [1, {"off": False}]}}
WANT = [
    Case(
        "want started: never heard of",
        None,
        lambda f: acts.want_started(f, ID, OTHER_ATTRS),
        {"want": "STARTED", "attrs": OTHER_ATTRS},
        again_is_done=True,
    ),
    Case(
        "want started: never heard of, without attrs",
        None,
        lambda f: acts.want_started(f, ID, None),
        {"want": "STARTED"},
        again_is_done=True,
    ),
    Case(
        "want started: it runs, with other attrs",
        FAR,
        lambda f: acts.want_started(f, ID, OTHER_ATTRS),
        {**FAR, "attrs": OTHER_ATTRS},
        again_is_done=True,
    ),
    Case("want started: it runs", FAR, lambda f: acts.want_started(f, ID, None), FAR, again_is_done=True),
    Case(
        "want started: it was stopped, and is no garbage any more",
        STOPPED,
        lambda f: acts.want_started(f, ID, None),
        FAR,
        again_is_done=True,
    ),
    Case(
        "want started: without attrs from now on",
        FAR,
        lambda f: acts.want_started(f, ID, {}),
        {**FAR, "attrs": {}},
        again_is_done=True,
    ),
    Case("want stopped: it runs", FAR, lambda f: acts.want_stopped(f, ID, 900), STOPPED, again_is_done=True),
    Case(
        "want stopped: it was already",
        STOPPED,
        lambda f: acts.want_stopped(f, ID, 999),
        {**STOPPED, "ttl": 999},
        again_is_done=True,
    ),
    Case("want stopped: no such connection", None, lambda f: acts.want_stopped(f, ID, 900), None),
    Case("claim: stopped, by an owner before", STOPPED, lambda f: acts.claim(f, ID, 3), None),
]

CASES = [*REGISTER, *BEAT, *STATE, *FENCE, *SHARD, *CONNECTION, *WANT]
