"""Reading a trace: what is in it, and the one line about each that is wrong."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from herdgate_loadtest.replay.synthetic import SYNTHETIC, main
from herdgate_loadtest.replay.trace import TraceError, read_trace, trace_of

SHIPPED = Path(__file__).parents[3] / "loadtest" / "traces"


def lines(*said: dict[str, Any]) -> Iterable[str]:
    return [json.dumps(line) for line in ({"herdgate_trace": 1}, *said)]


def test_events_are_read_and_all_else_is_left_out() -> None:
    trace = trace_of(
        lines(
            {"t": 0, "event": "open", "socket": 1, "client": "a"},
            {"t": 0.5, "event": "note", "text": "hello"},
            {"t": 1, "event": "denied", "client": "b", "reason": "rate"},
            {"t": 2.5, "event": "close", "socket": 1, "client": "a", "how": "reset"},
        )
    )
    opened, closed = trace.events
    assert (opened.t, opened.is_open, opened.socket, opened.client) == (0.0, True, "1", "a")
    assert (closed.how, closed.returns) == ("reset", True)
    assert trace.denials == ((1.0, "b"),)
    assert trace.length_s == 2.5


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
    (event,) = trace_of(lines({"t": 0, "event": "close", "socket": 1, "client": "a", **said})).events
    assert event.returns is returns


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ([], "trace: empty; a trace begins with"),
        (["[]"], "trace: line 1: no JSON object"),
        (["nonsense"], "trace: line 1: no JSON object"),
        (["{}"], 'trace: line 1: not {"herdgate_trace": 1}'),
        (['{"herdgate_trace": 2}'], 'trace: line 1: not {"herdgate_trace": 1}'),
        (lines({"t": 0, "event": "lost"}), "trace: line 2: event: got 'lost'; write one of open, close, denied, note"),
        (lines({"t": -1, "event": "denied"}), "trace: line 2: t: got -1; write seconds, 0 or more"),
        (lines({"t": True, "event": "denied"}), "trace: line 2: t: got True; write seconds"),
        (lines({"event": "open", "socket": 1, "client": "a"}), "trace: line 2: t: got None; write seconds"),
        (lines({"t": 0, "event": "open", "client": "a"}), "trace: line 2: socket: got None; write a name"),
        (lines({"t": 0, "event": "open", "socket": 1, "client": ""}), "trace: line 2: client: got ''; write a name"),
        (
            lines({"t": 0, "event": "close", "socket": 1, "client": "a", "how": "gone"}),
            "trace: line 2: how: got 'gone'; write one of close, reset",
        ),
        (
            lines({"t": 0, "event": "close", "socket": 1, "client": "a", "returns": 1}),
            "trace: line 2: returns: got 1; write true or false",
        ),
        (
            lines(
                {"t": 2, "event": "open", "socket": 1, "client": "a"},
                {"t": 1, "event": "close", "socket": 1, "client": "a"},
            ),
            "trace: event 2: t goes back to 1",
        ),
    ],
)
def test_trace_that_cannot_be_right_is_one_line_that_says_where(text: Iterable[str], complaint: str) -> None:
    with pytest.raises(TraceError) as raised:
        trace_of(text)
    assert str(raised.value).startswith(complaint)
    assert "\n" not in str(raised.value)


def test_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as raised:
        read_trace(str(tmp_path / "none"))
    assert str(raised.value).endswith("none: No such file or directory; name a trace")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(TraceError, match="not UTF-8; name a trace"):
        read_trace(str(tmp_path / "bytes"))


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_shipped_traces_are_what_is_written(name: str, tmp_path: Path) -> None:
    main(str(tmp_path))
    assert (tmp_path / name).read_text() == (SHIPPED / name).read_text()
    assert len(read_trace(str(tmp_path / name)).events) > 1000
