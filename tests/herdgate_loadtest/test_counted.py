"""Numbers with their nouns."""

import pytest

from herdgate_loadtest.counted import counted


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0 clients"), (1, "1 client"), (2, "2 clients"), (1_000_000, "1,000,000 clients")]
)
def test_one_is_singular(number: int, told: str) -> None:
    assert counted(number, "client") == told


def test_plural_may_be_irregular() -> None:
    assert (counted(1, "try", "tries"), counted(2, "try", "tries")) == ("1 try", "2 tries")
