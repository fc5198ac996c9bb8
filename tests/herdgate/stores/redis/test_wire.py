"""What goes to the script and what comes back, without one."""

import json
import math
import struct
from typing import Any

import pytest

from herdgate import AdmissionClass, Fleet, Limits
from herdgate.core.grant import Grant
from herdgate.core.tickets import Ticket
from herdgate.stores.redis.wire import (
    ANY_WORKER,
    Ask,
    head_of_settings,
    named,
    pack_batch,
    pack_head,
    read_batch,
    read_reply,
)

HINT, FIRM = Ticket("hint", 1_700_000_000_123, 7, 3), Ticket("firm", 1_700_000_000_456, 7, 4)
HEAD = b"1.5 2.5 3 500 500 500 0.5 77 3 12 4 500 600 9 0.25"
RECORD = struct.Struct(">BBxxIQd")


def test_batch_is_firm_slots_then_hints_then_newcomers_by_class() -> None:
    asks = [Ask(), Ask(klass=1), Ask(shown=HINT), Ask(shown=FIRM), Ask(klass=0), Ask(shown=HINT, klass=1)]
    assert pack_batch(asks, ())[1] == [3, 2, 5, 0, 4, 1]


def test_newcomers_who_ask_for_the_same_are_one_record() -> None:
    asks = [Ask(worker=ANY_WORKER)] * 1_000 + [Ask("reserve")] * 5
    data, order = pack_batch(asks, ())
    assert len(data) == 2 * 24
    assert sorted(order) == list(range(1_005))


def test_arrivals_for_one_worker_each_keep_the_order_they_came_in() -> None:
    asks = [Ask(worker="ws://b"), Ask(worker="ws://a"), Ask(worker="ws://a"), Ask(worker="ws://b"), Ask()]
    workers = named(asks, ["ws://a"])
    assert workers == ("ws://a", "ws://b")
    data, order = pack_batch(asks, workers)
    assert order == [0, 1, 2, 3, 4], "nobody comes first for the name of his worker"
    assert [ask.worker for ask in read_batch(data, workers)] == [ask.worker for ask in asks]


def test_workers_that_all_are_named_stay_as_they_are() -> None:
    workers = ["ws://b", "ws://a"]
    assert named([Ask(worker="ws://a"), Ask(worker=ANY_WORKER), Ask()], workers) is workers


def test_a_worker_beyond_those_that_a_call_can_name_has_room_for_all() -> None:
    workers = [f"ws://{number}" for number in range(300)]
    data, _ = pack_batch([Ask(worker=workers[-1]), Ask(worker=workers[253])], workers)
    assert [ask.worker for ask in read_batch(data, workers)] == ["", workers[253]]


def test_ticket_shown_twice_is_two_records() -> None:
    assert len(pack_batch([Ask(shown=FIRM)] * 2, ())[0]) == 2 * 24


def test_head_is_json_with_the_exact_numbers() -> None:
    limits = Limits(rate=1, classes=(AdmissionClass("a", 0.7),))
    told = json.loads(pack_head({"seen_v": 0.1 + 0.2}, head_of_settings(limits, Fleet("redis://a"))))
    assert told["seen_v"] == 0.1 + 0.2
    assert told["limits"]["burst"] == 0, "none was given"
    assert told["classes"] == [["a", 0.7]]
    assert "control" not in told, "the rate stays as it is set"
    controlled = json.loads(head_of_settings(limits, Fleet("redis://a", rate_min=5)))
    assert controlled["control"] == {"rate_min": 5, "setup_s": 1, "pending_share": 0.1}


@pytest.mark.parametrize(
    ("record", "ask", "grant"),
    [
        (RECORD.pack(0, 0, 0, 0, 1.5), Ask(), Grant(False, None, 1.5)),
        (RECORD.pack(0 | 32, 0, 0, 0, 1.5), Ask(), Grant(False, None, 1.5, full=True)),
        (RECORD.pack(1, 0, 0, 0, 0), Ask(), Grant(True)),
        (RECORD.pack(1 | 16, 2, 0, 0, 0), Ask(shown=HINT), Grant(True, spent=True, worker="ws://two")),
        (RECORD.pack(2, 0, 5, 99, 0.25), Ask(), Grant(False, Ticket("hint", 99, 77, 5), 0.25)),
        (RECORD.pack(3, 0, 5, 99, 0.25), Ask(shown=HINT), Grant(False, Ticket("firm", 99, 77, 5), 0.25)),
        (RECORD.pack(4, 0, 0, 0, 0.25), Ask(shown=FIRM), Grant(False, FIRM, 0.25)),
        (RECORD.pack(5, 0, 5, 99, 0), Ask("reserve"), Grant(True, Ticket("firm", 99, 77, 5))),
        (RECORD.pack(6, 0, 0, 0, 0), Ask("reserve", shown=FIRM), Grant(True, FIRM)),
    ],
)
def test_record_of_a_reply_is_a_grant(record: bytes, ask: Ask, grant: Grant) -> None:
    reply = read_reply([HEAD, record, b""], [ask], [0], ["ws://one", "ws://two"])
    assert list(reply.grants) == [grant]


def test_head_of_a_reply_is_the_state_of_the_fleet() -> None:
    reply = read_reply([HEAD, b"", b""], [], [], [])
    assert (reply.v, reply.firm, reply.tokens) == (1.5, 2.5, 3)
    assert (reply.rate, reply.first_rate, reply.burst, reply.configured) == (500, 500, 500, 500)
    assert reply.ceiling == 600
    assert (reply.fraction, reply.issuer, reply.gateways, reply.open, reply.pending) == (0.5, 77, 3, 12, 4)
    assert list(reply.classes) == [(9, 0.25)]
    assert reply.rooms == {}, "nothing is known"


def test_rooms_come_by_worker() -> None:
    reply = read_reply([HEAD, b"", b"5 inf -1"], [], [], ["ws://one", "ws://two", "ws://three"])
    assert reply.rooms == {"ws://one": 5, "ws://two": math.inf, "ws://three": -1}


@pytest.mark.parametrize(
    "reply",
    [
        5,
        None,
        b"OK",
        [],
        [b"1 2", b""],
        [HEAD, b"", 7],
        [HEAD.replace(b"77", b"nan"), b"", b""],
        [HEAD.replace(b"77", b"inf"), b"", b""],
        [HEAD.replace(b"1.5", b"inf"), b"", b""],
        [HEAD, b"no record", b""],
    ],
)
def test_what_is_no_reply_is_an_error(reply: Any) -> None:
    with pytest.raises(ValueError, match=r": |end"):
        read_reply(reply, [], [], [])


def test_reply_to_another_batch_is_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        read_reply([HEAD, RECORD.pack(1, 0, 0, 0, 0), b""], [Ask(), Ask()], [0, 1], [])
