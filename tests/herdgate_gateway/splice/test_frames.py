"""Frames of our own, read back by the `websockets` library."""

from collections.abc import Generator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Close, Frame, Opcode
from websockets.streams import StreamReader

from herdgate_gateway.close_codes import fit_reason
from herdgate_gateway.splice.frames import close_frame, close_size, is_sound_close, text_frame

CODES = st.one_of(st.none(), st.sampled_from([1000, 1001, 1011, 1012, 1013, 1014]), st.integers(3000, 4999))


def parsed(data: bytes, *, masked: bool) -> Frame:
    """The one frame that this is."""
    reader = StreamReader()
    reader.feed_data(data)
    parsing: Generator[None, None, Frame] = Frame.parse(reader.read_exact, mask=masked)
    with pytest.raises(StopIteration) as done:
        next(parsing)
    assert not reader.buffer
    frame = done.value.value
    assert isinstance(frame, Frame)
    return frame


@given(CODES, st.text(max_size=200), st.booleans())
def test_a_close_frame_says_what_it_is_told(code: int | None, reason: str, masked: bool) -> None:
    data = close_frame(code, reason, is_masked=masked)
    frame = parsed(data, masked=masked)
    close = Close.parse(frame.data)

    assert frame.opcode is Opcode.CLOSE
    assert (close.code, close.reason) == ((1005, "") if code is None else (code, fit_reason(reason)))
    assert is_sound_close(data)
    assert close_size(data + b"more") == len(data)


def test_masks_differ() -> None:
    assert len({close_frame(1001, is_masked=True) for _ in range(8)}) == 8


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
def test_a_text_frame_of_any_length(size: int) -> None:
    frame = parsed(text_frame("x" * size), masked=False)

    assert (frame.opcode, frame.fin, bytes(frame.data)) == (Opcode.TEXT, True, b"x" * size)


def test_text_that_is_no_utf_8_is_sent_all_the_same() -> None:
    assert parsed(text_frame("a\ud800b"), masked=False).data == b"a?b"


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("payload", [b"\3", b"\3\xed", b"\3\xee", b"\3\xf7", b"\3\xe7", b"\x0b\xb7", b"\3\xe8\xff"])
def test_a_close_frame_that_may_not_be_sent_is_not_sound(payload: bytes, masked: bool) -> None:
    frame = Frame(Opcode.CLOSE, payload).serialize(mask=masked)

    assert not is_sound_close(frame)
