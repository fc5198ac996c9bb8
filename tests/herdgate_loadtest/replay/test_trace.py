"""Reading a trace: what is in it, and the one line about each that is wrong."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from herdgate_loadtest.replay.synthetic import SYNTHETIC, main
from herdgate_loadtest.replay.trace import Trace, TraceError, read_trace, trace_of

SHIPPED = Path(__file__).parents[3] / "loadtest" / "traces"


HEAD = b'{"herdgate_trace": 1}\n'
OPEN = {"t": 0, "event": "open", "socket": 1, "client": "a"}
CLOSE = {"t": 0, "event": "close", "socket": 1, "client": "a"}
DENIED = {"event": "denied", "client": "a"}


def written(*said: dict[str, Any]) -> bytes:
    return HEAD + b"".join(json.dumps(line).encode() + b"\n" for line in said)


def trace(*said: dict[str, Any]) -> Trace:
    return trace_of(io.BytesIO(written(*said)))


def test_events_are_read_and_all_else_is_left_out() -> None:
    read = trace(
        OPEN,
        {"t": 0.5, "event": "note", "text": "hello"},
        {"t": 1, "event": "denied", "client": "b", "reason": "rate"},
        CLOSE | {"t": 2.5, "how": "reset"},
    )
    opened, closed = read.events
    assert (opened.t, opened.is_open, opened.socket, opened.client) == (0.0, True, "1", "a")
    assert (closed.how, closed.returns) == ("reset", True)
    assert read.denials == ((1.0, "b"),)
    assert read.length_s == 2.5


@pytest.mark.parametrize(
    ("said", "returns"),
    [
        ({"how": "reset"}, True),
        ({"how": "close"}, False),
        ({}, None),
        ({"how": "close", "returns": True}, True),
        ({"how": "reset", "returns": False}, False),
    ],
)
def test_what_is_said_of_a_return(said: dict[str, Any], returns: bool | None) -> None:
    (event,) = trace(CLOSE | said).events
    assert event.returns is returns


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "trace: empty; a trace begins with"),
        (b"[]", "trace: line 1: no JSON object"),
        (b"nonsense", "trace: line 1: no JSON object"),
        (b"[" * 60_000, "trace: line 1: no JSON object"),
        (HEAD + b"\n", "trace: line 2: no JSON object"),
        (b"{}", 'trace: line 1: not {"herdgate_trace": 1}'),
        (b'{"herdgate_trace": 2}', 'trace: line 1: not {"herdgate_trace": 1}'),
        (HEAD + b"\xff\xfe", "trace: line 2: not UTF-8; save it as UTF-8"),
        (HEAD + b" " * 70_000, "trace: line 2: longer than 64 KiB"),
        (HEAD + b'{"t": 0, "event": "note", "t": 1}', "trace: line 2: t is there twice; write it once"),
        (HEAD + b'{"\\u001b": 0, "\\u001b": 1}', r"trace: line 2: \x1b is there twice"),
        (
            written({"t": 0, "event": "lost"}),
            "trace: line 2: event: got 'lost'; write one of open, close, denied, note",
        ),
        (written({"t": 0, "event": ["open"]}), "trace: line 2: event: got ['open']; write one of"),
        (written(DENIED | {"t": -1}), "trace: line 2: t: got -1; write seconds since the trace began, 0 to 31622400"),
        (written(DENIED | {"t": True}), "trace: line 2: t: got True; write seconds"),
        (written(DENIED | {"t": float("nan")}), "trace: line 2: t: got nan; write seconds"),
        (written(DENIED | {"t": 1e300}), "trace: line 2: t: got 1e+300; write seconds"),
        (written(DENIED | {"t": 10**400}), f"trace: line 2: t: got 1{'0' * 79}; write seconds"),
        (written({"t": 1_796_000_000, "event": "note"}), "trace: line 2: t: got 1796000000; write seconds since"),
        (written({"t": 0, "event": "denied"}), "trace: line 2: client: got None; write a name"),
        (written({"event": "open", "socket": 1, "client": "a"}), "trace: line 2: t: got None; write seconds"),
        (written({"t": 0, "event": "open", "client": "a"}), "trace: line 2: socket: got None; write a name"),
        (written(OPEN | {"client": ""}), "trace: line 2: client: got ''; write a name"),
        (written(CLOSE | {"how": "gone"}), "trace: line 2: how: got 'gone'; write one of close, reset"),
        (written(CLOSE | {"returns": 1}), "trace: line 2: returns: got 1; write true or false"),
        (written(OPEN | {"t": 2}, CLOSE | {"t": 1}), "trace: line 3: t goes back to 1; sort the events by t"),
        (written(OPEN, OPEN), "trace: line 3: socket '1' is open already; give each socket a name of its own"),
        (written(CLOSE, CLOSE), "trace: line 3: socket '1' has ended already; give each socket a name of its own"),
        (written(OPEN, CLOSE | {"client": "b"}), "trace: line 3: client: got 'b'; the socket was opened by 'a'"),
    ],
)
def test_trace_that_cannot_be_right_is_one_line_that_says_where(content: bytes, complaint: str) -> None:
    with pytest.raises(TraceError) as raised:
        trace_of(io.BytesIO(content))
    said = str(raised.value)
    assert said.startswith(complaint)
    assert said.isprintable()
    assert len(said) < 250


def test_name_of_a_socket_that_has_ended_may_be_used_again() -> None:
    assert len(trace(OPEN, CLOSE, OPEN | {"client": "b"}, CLOSE | {"client": "b"}).events) == 4


def test_byte_order_mark_and_line_ends_of_windows_are_read() -> None:
    content = b"\xef\xbb\xbf" + written(OPEN).replace(b"\n", b"\r\n")
    assert len(trace_of(io.BytesIO(content)).events) == 1


def test_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="none: cannot be read: No such file or directory; name a trace"):
        read_trace(str(tmp_path / "none"))
    with pytest.raises(TraceError, match="cannot be read: Is a directory; name a trace"):
        read_trace(str(tmp_path))


def test_name_of_a_file_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "a\x1b[31m").write_bytes(b"nonsense")
    for name in ("a\x1b[31m", "b\x1b[31m"):
        with pytest.raises(TraceError) as raised:
            read_trace(str(tmp_path / name))
        assert str(raised.value).isprintable()


def test_fifo_that_nobody_writes_to_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(TraceError, match="fifo: empty"):
        read_trace(str(tmp_path / "fifo"))


def test_file_without_an_end_is_not_read_to_it() -> None:
    with pytest.raises(TraceError, match="/dev/zero: line 1: longer than 64 KiB"):
        read_trace("/dev/zero")


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_shipped_traces_are_what_is_written(name: str, tmp_path: Path) -> None:
    main(str(tmp_path))
    assert (tmp_path / name).read_text() == (SHIPPED / name).read_text()
    assert len(read_trace(str(tmp_path / name)).events) > 1000
