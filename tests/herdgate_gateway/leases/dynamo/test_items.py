"""Values to DynamoDB and back."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_gateway.leases.dynamo.items import attribute_of, item_of, key_attributes, value_of
from herdgate_gateway.leases.rows import Key

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(TEXTS, st.integers(1 - 10**38, 10**38 - 1), st.booleans()),
    lambda inner: st.one_of(st.dictionaries(TEXTS, inner, max_size=3), st.lists(inner, max_size=3)),
    max_leaves=5,
)


@given(VALUES)
def test_value_comes_back_as_it_was(value: Any) -> None:
    assert value_of(attribute_of(value)) == value


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        ("", {"S": ""}),
        (0, {"N": "0"}),
        (2**60 + 1, {"N": "1152921504606846977"}),
        (True, {"BOOL": True}),
        (["a", 1, []], {"L": [{"S": "a"}, {"N": "1"}, {"L": []}]}),
        ({"a": {"b": -1}}, {"M": {"a": {"M": {"b": {"N": "-1"}}}}}),
    ],
)
def test_value_is_written_with_its_type(value: Any, attribute: dict[str, Any]) -> None:
    assert attribute_of(value) == attribute


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ({"N": "1152921504606846977"}, 2**60 + 1),
        ({"N": "1E+3"}, 1000),
        ({"N": "-0.50"}, Decimal("-0.5")),
        ({"NULL": True}, None),
        ({"BOOL": False}, False),
        ({"L": [{"N": "1"}, {"M": {}}]}, [1, {}]),
        ({"SS": ["a", "b"]}, ["a", "b"]),
        ({"B": b"raw"}, b"raw"),
    ],
    ids=str,
)
def test_value_that_somebody_else_wrote_can_be_read(attribute: dict[str, Any], value: Any) -> None:
    read = value_of(attribute)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("value", [None, 1.0, b"", (), {"a": None}, [1.0]], ids=repr)
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="not "):
        attribute_of(value)


def test_row_and_key() -> None:
    key = Key("fleet#W#3", "w")
    assert key_attributes(key) == {"pk": {"S": "fleet#W#3"}, "sk": {"S": "w"}}
    assert item_of({**key_attributes(key), "hb": {"N": "1"}}) == {"pk": "fleet#W#3", "sk": "w", "hb": 1}
