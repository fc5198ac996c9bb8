"""The scanner, against the parser of the `websockets` library: whatever the frames, however they are cut."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import ProtocolError
from websockets.frames import Frame
from websockets.protocol import OPEN, Protocol, Side
from websockets.streams import StreamReader

from herdgate_gateway.splice.scanner import Scanner
from tests.herdgate_gateway.gateways import frame

NO_LIMIT = 1 << 62


def scanner(
    *, masked: bool = False, extended: bool = False, frame_bytes: int = NO_LIMIT, message_bytes: int = NO_LIMIT
) -> Scanner:
    return Scanner(is_masked=masked, is_extended=extended, max_frame_bytes=frame_bytes, max_message_bytes=message_bytes)


def passed(scanner: Scanner, chunks: Sequence[bytes], *, step: bool = False) -> int:
    """Bytes that pass in all, what does not pass being offered again before the next chunk."""
    total, held = 0, b""
    for chunk in chunks:
        data = held + chunk
        while (taken := (scanner.feed_frame if step else scanner.feed)(data)) and step and data[taken:]:
            total, data = total + taken, data[taken:]
        total, held = total + taken, data[taken:]
        if scanner.stopped:
            break
    return total


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in pairwise(edges)]


def reference(data: bytes, *, masked: bool) -> tuple[int, str | None]:
    """Bytes before the first frame that the library does not take, or that is a close; and which of these it is."""
    library = Protocol(Side.SERVER if masked else Side.CLIENT, state=OPEN, max_size=None)
    sizes = _sizes(data, masked=masked)
    at = 0
    for size in sizes:
        is_close = data[at] & 0x0F == 8
        library.receive_data(data[at : at + size])
        if library.parser_exc is not None:
            return at, "close" if is_close and not _is_broken_header(data[at : at + size], masked=masked) else "breach"
        if is_close:
            return at, "close"
        at += size
    # The tail is no whole frame: its header may be wrong all the same.
    tail = data[at:]
    return (at, "tail") if tail else (at, None)


def _sizes(data: bytes, *, masked: bool) -> list[int]:
    """Of the whole frames, by the length in their headers."""
    sizes, at = [], 0
    while len(data) - at >= 2:
        length, start = data[at + 1] & 127, 2
        if length > 125:
            more = 2 if length == 126 else 8
            length, start = int.from_bytes(data[at + 2 : at + 2 + more], "big"), 2 + more
        size = start + (4 if masked else 0) + length
        if len(data) - at < size:
            break
        sizes.append(size)
        at += size
    return sizes


def _is_broken_header(one: bytes, *, masked: bool) -> bool:
    reader = StreamReader()
    reader.feed_data(one)
    try:
        next(Frame.parse(reader.read_exact, mask=masked))
    except StopIteration:
        return False
    except ProtocolError:
        return True
    raise AssertionError("not whole")


SIZES = st.one_of(st.integers(0, 8), st.sampled_from([124, 125, 126, 127, 131, 132, 300, 65_535, 65_536, 70_000]))


@st.composite
def sound_frames(draw: st.DrawFn, masked: bool) -> list[bytes]:
    """Messages, some in fragments, with control frames anywhere."""
    frames: list[bytes] = []

    def control() -> None:
        while draw(st.integers(0, 3)) == 0:
            frames.append(frame(draw(st.sampled_from([9, 10])), b"p" * draw(st.integers(0, 125)), mask=masked))

    for _ in range(draw(st.integers(0, 5))):
        pieces = draw(st.lists(SIZES, min_size=1, max_size=4))
        for number, size in enumerate(pieces):
            control()
            opcode = draw(st.sampled_from([1, 2])) if number == 0 else 0
            frames.append(frame(opcode, b"x" * size, fin=number == len(pieces) - 1, mask=masked))
    return frames


PLACES = st.lists(st.integers(0, 1 << 20), max_size=12)


@given(data=st.data(), masked=st.booleans(), places=PLACES, step=st.booleans())
def test_sound_frames_pass_however_they_are_cut(
    data: st.DataObject, masked: bool, places: list[int], step: bool
) -> None:
    frames = data.draw(sound_frames(masked))
    stream = b"".join(frames)
    one = scanner(masked=masked)

    assert passed(one, cut(stream, places), step=step) == len(stream)
    assert one.stopped is None
    assert one.at_boundary
    assert one.between_messages


def any_frame(masked: bool) -> st.SearchStrategy[bytes]:
    """With any first byte, now and then with the wrong mask bit."""

    def build(first: int, size: int, right: bool) -> bytes:
        return bytes((first,)) + frame(0, b"\0" * size, mask=masked is right)[1:]

    opcodes = st.sampled_from([0x00, 0x01, 0x80, 0x80, 0x81, 0x82, 0x02, 0x89, 0x8A, 0x88, 0x09, 0xC1, 0x83, 0x8F])
    return st.builds(build, opcodes | st.integers(0, 255), SIZES, st.integers(0, 9).map(bool))


@given(data=st.data(), masked=st.booleans(), places=PLACES)
def test_what_the_library_does_not_take_does_not_pass(data: st.DataObject, masked: bool, places: list[int]) -> None:
    stream = b"".join(data.draw(st.lists(any_frame(masked), max_size=6)))
    at, why = reference(stream, masked=masked)
    one = scanner(masked=masked)
    total = passed(one, cut(stream, places))

    if why == "tail":  # begun and not whole, which may be by the wrong mask bit
        assert total >= at
        assert one.stopped in (None, "breach", "close")
        assert one.stopped is None or total == at
    else:
        assert (total, one.stopped) == (at, why)


@given(st.binary(max_size=40), st.booleans(), PLACES)
def test_arbitrary_bytes_are_judged_alike_however_they_are_cut(data: bytes, masked: bool, places: list[int]) -> None:
    whole, pieces, steps = (scanner(masked=masked) for _ in range(3))

    total = passed(whole, [data])
    assert passed(pieces, cut(data, places)) == total
    assert passed(steps, cut(data, places), step=True) == total
    assert whole.stopped == pieces.stopped == steps.stopped


@given(data=st.data(), masked=st.booleans(), places=PLACES, frame_bytes=SIZES, message_bytes=SIZES)
def test_nothing_of_a_frame_over_a_limit_passes(
    data: st.DataObject, masked: bool, places: list[int], frame_bytes: int, message_bytes: int
) -> None:
    frames = data.draw(sound_frames(masked))
    at, message, too_big = 0, 0, False
    for one in frames:
        size = len(frame(0, b"", mask=masked))  # of the shortest header
        extra = {126: 2, 127: 8}.get(one[1] & 127, 0)
        length = len(one) - size - extra
        if one[0] & 0x0F < 8:
            message += length
            too_big = length > frame_bytes or message > message_bytes
            message = 0 if one[0] & 0x80 else message
        if too_big:
            break
        at += len(one)
    scanned = scanner(masked=masked, frame_bytes=frame_bytes, message_bytes=message_bytes)

    assert passed(scanned, cut(b"".join(frames), places)) == at
    assert scanned.stopped == ("too big" if too_big else None)
    assert scanned.at_boundary


@given(
    start=st.tuples(st.integers(0, 255), st.integers(0, 255)), more=st.integers(0, 140), limits=st.tuples(SIZES, SIZES)
)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("extended", [False, True])
def test_what_is_taken_for_a_short_message_would_pass_and_leave_everything_as_it_was(
    start: tuple[int, int], more: int, limits: tuple[int, int], masked: bool, extended: bool
) -> None:
    one = scanner(masked=masked, extended=extended, frame_bytes=limits[0], message_bytes=limits[1])
    first, second = start
    data = bytes(start) + b"x" * more
    is_whole = len(data) == (second & 0x7F) + (6 if masked else 2) and second & 0x7F <= 125
    is_taken = one.sizes[second] == len(data) and one.starts[first]

    assert is_taken == (first & 0x8F in (0x81, 0x82) and is_whole and one.feed(data) == len(data))
    assert one.between_messages or not is_taken


def test_a_chunk_within_a_payload_passes_whole() -> None:
    one = scanner()
    assert one.feed(frame(2, b"x" * 70_000)[:50]) == 50
    assert one.feed(b"\xff" * 1000) == 1000
    assert not one.at_boundary


def test_where_a_message_may_stand() -> None:
    one = scanner()
    for data, at_boundary, between in [
        (frame(1, b"a", fin=False), True, False),
        (frame(9), True, False),
        (frame(0, b"b")[:2], False, False),
        (b"b", True, True),
        (frame(9), True, True),
        (frame(1, b"c")[:1], True, True),
    ]:
        one.feed(data)
        assert (one.at_boundary, one.between_messages) == (at_boundary, between)


def test_a_length_of_64_bits() -> None:
    header = b"\x82\x7f" + (1 << 40).to_bytes(8, "big")
    one = scanner()
    assert one.feed(header) == 10
    assert one.feed(b"x" * 100) == 100
    limited = scanner(frame_bytes=(1 << 40) - 1)
    assert (limited.feed(header), limited.stopped) == (0, "too big")
    assert (limited.feed(header[:9]), scanner().feed(header[:9])) == (0, 0)


@pytest.mark.parametrize("rsv", [0x10, 0x20, 0x40, 0x70])
def test_reserved_bits_are_the_endpoints_if_they_have_agreed_on_an_extension(rsv: int) -> None:
    data, ping = bytes((0x82 | rsv, 1)) + b"x", bytes((0x89 | rsv, 0))

    assert scanner(extended=True).feed(data) == 3
    assert scanner().feed(data) == 0
    assert scanner(extended=True).feed(ping) == 0


def test_a_scanner_that_stopped_stays_there_until_its_limits_are_lifted() -> None:
    one = scanner(message_bytes=10)
    big, close = frame(2, b"x" * 11), frame(8)
    for _ in range(2):
        assert (one.feed(frame(2, b"x") + big), one.stopped) == (3, "too big")
    one.lift_limits()
    assert (one.feed(big + frame(1, b"y", fin=False) + close), one.stopped) == (13 + 3, "close")


def test_a_frame_at_a_time() -> None:
    one = scanner()
    stream = frame(1, b"abc") + frame(2, b"d" * 300)
    assert one.feed_frame(stream) == 5
    assert one.feed_frame(stream[5:105]) == 100
    assert one.feed_frame(stream[105:] + b"\x81") == len(stream) - 105
    assert one.feed_frame(b"\x81") == 0


@pytest.mark.parametrize("length", [1 << 63, (1 << 64) - 1])
def test_a_length_with_its_top_bit_set_is_a_breach_even_without_limits(length: int) -> None:
    scanner = Scanner(is_masked=False, is_extended=False, max_frame_bytes=100, max_message_bytes=100)
    assert scanner.feed(b"\x01\x02xx") == 4
    scanner.lift_limits()
    assert scanner.feed(b"\x80\x7f" + length.to_bytes(8, "big")) == 0
    assert scanner.stopped == "breach"
