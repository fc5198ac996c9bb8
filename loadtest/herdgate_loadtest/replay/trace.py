"""A trace: what sockets did, as JSON lines. `herdgate serve --trace` writes one; `docs/replay.md` has its schema.

The first line says what it is: `{"herdgate_trace": 1}`. Each further one is an event:

| event | fields besides `t` (seconds, ascending) | |
|---|---|---|
| `open` | `socket`, `client` | a socket was let in |
| `close` | `socket`, `client`, `how` (`close`, `reset`), `returns` (true, false) | it ended; its client comes back |
| `denied` | `client`, `reason` | a try was refused |
| `note` | `text` | anything to be said |

`socket` names one socket, `client` whoever has it, who may have several. Where `returns` is not said, a client returns
after a `reset`, and not after a `close`; where `how` is not said either, it returns if it is heard of again within
five minutes (`herdgate_loadtest.replay.scaling`).

Rules: strict. A line that cannot be right is an error with its number; nothing is guessed.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from herdgate_loadtest.errors import LoadtestError

__all__ = ["VERSION", "Event", "Trace", "TraceError", "read_trace", "trace_of"]

VERSION = 1

_FIELDS: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "open": {"socket": (str, int), "client": (str,)},
    "close": {"socket": (str, int), "client": (str,)},
    "denied": {},
    "note": {},
}
_HOWS = ("close", "reset")
_LONGEST_LINE = 64 * 1024


class TraceError(LoadtestError):
    """A trace cannot be read: which line, what is wrong, the way out."""


@dataclass(frozen=True, slots=True)
class Event:
    """A socket opened or ended.

    Attributes:
        t: seconds since the trace began.
        is_open: it opened; else it ended.
        socket: its name.
        client: its client's.
        how: of one that ended: `close`, or `reset`.
        returns: of one that ended: its client means to come back; None: not said.
    """

    t: float
    is_open: bool
    socket: str
    client: str
    how: str = "reset"
    returns: bool | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """What a trace says.

    Attributes:
        events: sockets that open and end, in order.
        denials: moment and client of each try that was refused.
    """

    events: tuple[Event, ...]
    denials: tuple[tuple[float, str], ...] = ()

    @property
    def length_s(self) -> float:
        """From its beginning to its last event, seconds."""
        return self.events[-1].t if self.events else 0.0


def read_trace(path: str) -> Trace:
    """Read a file.

    Raises:
        TraceError: it cannot be read, or is no trace.
    """
    try:
        with Path(path).open(encoding="utf-8") as file:
            return trace_of(file, path)
    except OSError as error:
        raise TraceError(f"{path}: {error.strerror}; name a trace") from None
    except UnicodeDecodeError:
        raise TraceError(f"{path}: not UTF-8; name a trace") from None


def trace_of(lines: Iterable[str], name: str = "trace") -> Trace:
    """Read lines.

    Raises:
        TraceError: they are no trace.
    """
    events, denials = [], []
    for number, said in _objects(lines, name):
        if number == 1:
            _check_header(said, name)
        elif said.get("event") == "denied":
            denials.append((_moment(said, f"{name}: line {number}"), str(said.get("client"))))
        elif said.get("event") != "note":
            events.append(_event(said, f"{name}: line {number}"))
    for number, (before, event) in enumerate(pairwise(events), 1):
        if event.t < before.t:
            raise TraceError(f"{name}: event {number + 1}: t goes back to {event.t:g}; sort the events by t")
    return Trace(tuple(events), tuple(denials))


def _objects(lines: Iterable[str], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    for number, line in enumerate(lines, 1):
        try:
            said = json.loads(line[:_LONGEST_LINE])
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise TraceError(f"{name}: line {number}: no JSON object; a trace has one a line")
        yield number, said
    if not number:
        raise TraceError(f"{name}: empty; a trace begins with " + '{"herdgate_trace": 1}')


def _check_header(said: Mapping[str, Any], name: str) -> None:
    version = said.get("herdgate_trace")
    if version != VERSION:
        raise TraceError(f'{name}: line 1: not {{"herdgate_trace": {VERSION}}}; name a trace of that version')


def _event(said: Mapping[str, Any], where: str) -> Event:
    kind = str(said.get("event"))
    if kind not in _FIELDS:
        raise TraceError(f"{where}: event: got {kind!r}; write one of {', '.join(_FIELDS)}")
    for field, kinds in _FIELDS[kind].items():
        value = said.get(field)
        if not isinstance(value, kinds) or isinstance(value, bool) or value == "":
            raise TraceError(f"{where}: {field}: got {value!r}; write a name")
    how = said.get("how")
    returns = said.get("returns", None if how is None else how == "reset")
    if how not in (None, *_HOWS):
        raise TraceError(f"{where}: how: got {how!r}; write one of {', '.join(_HOWS)}")
    if returns is not None and not isinstance(returns, bool):
        raise TraceError(f"{where}: returns: got {returns!r}; write true or false, or leave it out")
    return Event(_moment(said, where), kind == "open", str(said["socket"]), said["client"], how or "reset", returns)


def _moment(said: Mapping[str, Any], where: str) -> float:
    t = said.get("t")
    if isinstance(t, bool) or not isinstance(t, int | float) or not (math.isfinite(t) and t >= 0):
        raise TraceError(f"{where}: t: got {t!r}; write seconds, 0 or more")
    return float(t)
