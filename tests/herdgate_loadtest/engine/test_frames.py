"""WebSocket frames."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_loadtest.engine.frames import (
    MOST_PAYLOAD,
    Frame,
    Opcode,
    client_frame,
    close_payload,
    parse_close,
    parse_frame,
)
from herdgate_loadtest.errors import WireError
from tests.herdgate_loadtest.engine.servers import server_frame

SIZES = [0, 1, 125, 126, 127, 65_535, 65_536]


def frame_of(opcode: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        return server_frame(opcode, payload)
    wide = 2 if size < 1 << 16 else 8
    return bytes((0x80 | opcode, 126 if wide == 2 else 127)) + size.to_bytes(wide, "big") + payload


def unmask(frame: bytes) -> tuple[int, bytes]:
    """What a server reads: byte by byte, as RFC 6455 section 5.3 puts it."""
    assert frame[0] & 0x80
    assert frame[1] & 0x80
    size, at = frame[1] & 0x7F, 2
    if size > 125:
        wide = 2 if size == 126 else 8
        size, at = int.from_bytes(frame[at : at + wide], "big"), at + wide
    mask, masked = frame[at : at + 4], frame[at + 4 :]
    assert len(masked) == size
    return frame[0] & 0x0F, bytes(byte ^ mask[i % 4] for i, byte in enumerate(masked))


@pytest.mark.parametrize("size", SIZES)
def test_frame_of_any_size_is_read(size: int) -> None:
    data = frame_of(Opcode.TEXT, b"x" * size)
    assert parse_frame(data + b"more") == Frame(Opcode.TEXT, b"x" * size, True, len(data))


@pytest.mark.parametrize("size", [0, 5, 126])
def test_frame_split_at_every_byte_is_waited_for(size: int) -> None:
    data = b"junk" + frame_of(Opcode.TEXT, b"x" * size)
    for cut in range(4, len(data)):
        assert parse_frame(data[:cut], 4) is None, cut
    assert parse_frame(data, 4) is not None


def test_frames_are_read_one_after_the_other() -> None:
    data = server_frame(Opcode.PING, b"p") + server_frame(Opcode.TEXT, b"a", first=0) + server_frame(0, b"b")
    found, at = [], 0
    while (frame := parse_frame(data, at)) is not None:
        found.append((frame.opcode, frame.payload, frame.final))
        at = frame.end
    assert found == [(9, b"p", True), (1, b"a", False), (0, b"b", True)]
    assert at == len(data)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"\xc1\x00", "reserved bits"),
        (b"\x81\x80", "masked"),
        (b"\x09\x00", "control frame"),
        (b"\x89\x7e", "control frame"),
        (b"\x88\x7e", "control frame"),
        (b"\x81\x7f" + (MOST_PAYLOAD + 1).to_bytes(8, "big"), "larger than"),
    ],
)
def test_what_a_server_may_not_send_is_an_error(data: bytes, complaint: str) -> None:
    with pytest.raises(WireError, match=complaint):
        parse_frame(data)


@pytest.mark.parametrize("size", SIZES)
def test_client_frame_of_any_size_is_masked(size: int) -> None:
    payload = bytes(i % 251 for i in range(size))
    sent = client_frame(Opcode.BINARY, payload, b"\x01\x80\xff\x00")
    assert unmask(sent) == (Opcode.BINARY, payload)


@given(payload=st.binary(max_size=300), mask=st.binary(min_size=4, max_size=4))
def test_masking_is_undone_by_the_server(payload: bytes, mask: bytes) -> None:
    assert unmask(client_frame(Opcode.TEXT, payload, mask)) == (Opcode.TEXT, payload)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"", (1005, "")),
        (b"\x03\xe8", (1000, "")),
        (close_payload(1013, '{"retry_ms":1}'), (1013, '{"retry_ms":1}')),
        (close_payload(1012, "\u00fc"), (1012, "\u00fc")),
    ],
)
def test_close_says_code_and_reason(payload: bytes, expected: tuple[int, str]) -> None:
    assert parse_close(payload) == expected


@pytest.mark.parametrize("payload", [b"\x03", b"\x03\xe8\xff"])
def test_broken_close_is_an_error(payload: bytes) -> None:
    with pytest.raises(WireError, match="close frame"):
        parse_close(payload)
