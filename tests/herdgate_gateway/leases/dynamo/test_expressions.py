"""Writes and conditions in DynamoDB's words."""

import pytest

from herdgate_gateway.leases.acts import Write, beat, checkpoint
from herdgate_gateway.leases.conditions import (
    ABSENT,
    PRESENT,
    All,
    AtMost,
    Below,
    Condition,
    Either,
    Is,
    IsNot,
    Missing,
)
from herdgate_gateway.leases.dynamo.expressions import Placeholders, condition_expression, update_request
from herdgate_gateway.leases.rows import Key, connection_key, worker_key

KEY = Key("p", "s")
KEY_ATTRIBUTES = {"pk": {"S": "p"}, "sk": {"S": "s"}}


@pytest.mark.parametrize(
    ("condition", "expression"),
    [
        (ABSENT, "attribute_not_exists(#0)"),
        (PRESENT, "attribute_exists(#0)"),
        (Missing("a"), "attribute_not_exists(#0)"),
        (Is("a", 1), "#0 = :0"),
        (IsNot("a", 1), "attribute_exists(#0) AND #0 <> :0"),
        (AtMost("a", 1), "#0 <= :0"),
        (Below("a", 1), "#0 < :0"),
        (All((Is("a", 1),)), "#0 = :0"),
        (All((IsNot("a", 1),)), "attribute_exists(#0) AND #0 <> :0"),
        (All((Is("a", 1), Is("a", 2))), "#0 = :0 AND #0 = :1"),
        (All((Is("a", 1), IsNot("b", 2))), "#0 = :0 AND (attribute_exists(#1) AND #1 <> :1)"),
        (
            All((PRESENT, Either((Missing("a"), Below("a", 1))))),
            "attribute_exists(#0) AND (attribute_not_exists(#1) OR #1 < :0)",
        ),
        (
            Either((All((Either((Missing("a"), Is("b", 1))),)), Is("a", 2))),
            "(attribute_not_exists(#0) OR #1 = :0) OR #0 = :1",
        ),
    ],
    ids=str,
)
def test_condition_has_the_parentheses_it_needs_and_no_others(condition: Condition, expression: str) -> None:
    assert condition_expression(condition, Placeholders()) == expression


def test_beat_is_one_request() -> None:
    assert update_request(beat("f", "w", "mine", 7, known=5)) == {
        "Key": {"pk": {"S": worker_key("f", "w").pk}, "sk": {"S": "w"}},
        "ConditionExpression": "#0 = :0 AND (attribute_exists(#1) AND #1 <> :1) AND #2 >= :2",
        "UpdateExpression": "SET #3 = :3 ADD #2 :4",
        "ExpressionAttributeNames": {"#0": "inc", "#1": "st", "#2": "hb", "#3": "load"},
        "ExpressionAttributeValues": {
            ":0": {"S": "mine"},
            ":1": {"S": "DEAD"},
            ":2": {"N": "5"},
            ":3": {"N": "7"},
            ":4": {"N": "1"},
        },
    }


def test_name_that_is_tested_and_set_has_one_placeholder() -> None:
    request = update_request(checkpoint("f", "one", 4, 10))
    assert request["Key"]["sk"]["S"] == connection_key("f", "one").sk
    assert request["ExpressionAttributeNames"] == {"#0": "pk", "#1": "epoch", "#2": "last_seq"}
    assert request["UpdateExpression"] == "SET #2 = :2"


def test_none_is_removed() -> None:
    request = update_request(Write(KEY, PRESENT, {"a": None, "b": 1, "c": None, "d": "x"}, {"e": 1, "f": -1}))
    assert request["UpdateExpression"] == "SET #1 = :0, #2 = :1 REMOVE #3, #4 ADD #5 :2, #6 :3"
    assert list(request["ExpressionAttributeNames"].values()) == ["pk", "b", "d", "a", "c", "e", "f"]


def test_nothing_to_set_and_nothing_to_compare_leave_their_arguments_out() -> None:
    assert update_request(Write(KEY, ABSENT)) == {
        "Key": KEY_ATTRIBUTES,
        "ConditionExpression": "attribute_not_exists(#0)",
        "ExpressionAttributeNames": {"#0": "pk"},
    }
    assert "ExpressionAttributeValues" not in update_request(Write(KEY, PRESENT, {"a": None}))
