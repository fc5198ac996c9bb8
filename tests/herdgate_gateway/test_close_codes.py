"""What may go on the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Close

from herdgate_gateway.close_codes import fit_reason, to_client, to_worker


@pytest.mark.parametrize(
    ("code", "client", "worker"),
    [
        (None, None, None),
        (1005, None, None),
        (1006, 1014, 1001),
        (1015, 1014, 1001),
        (1000, 1000, 1000),
        (1001, 1001, 1001),
        (1004, 1011, 1011),
        (1012, 1012, 1012),
        (1013, 1013, 1013),
        (1014, 1014, 1014),
        (1016, 1011, 1011),
        (0, 1011, 1011),
        (999, 1011, 1011),
        (2999, 1011, 1011),
        (3000, 3000, 3000),
        (4999, 4999, 4999),
        (5000, 1011, 1011),
        (-1, 1011, 1011),
    ],
)
def test_case_6_1_only_codes_that_may_be_sent_are_sent(
    code: int | None, client: int | None, worker: int | None
) -> None:
    assert to_client(code) == client
    assert to_worker(code) == worker


@given(st.integers(-10, 70_000), st.text(max_size=200))
def test_whatever_comes_in_makes_a_valid_close_frame(code: int, reason: str) -> None:
    for mapped in (to_client(code), to_worker(code)):
        if mapped is not None:
            assert len(Close(mapped, fit_reason(reason)).serialize()) <= 125


@given(st.text(max_size=300))
def test_a_reason_is_cut_between_characters(reason: str) -> None:
    fitted = fit_reason(reason)

    assert reason.startswith(fitted)
    assert len(fitted.encode()) <= 123
    if len(reason.encode("utf-8", "replace")) <= 123:
        assert fitted == reason


def test_a_lone_surrogate_does_not_break_a_reason() -> None:
    assert fit_reason("a\ud800b") == "a?b"
