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

Rules: strict. A line that cannot be right is an error with its number; nothing is guessed. `trace_lines` reads lines.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from herdgate.core.errors import printable
from herdgate_loadtest.errors import UnreadableError
from herdgate_loadtest.input_file import opened
from herdgate_loadtest.replay.trace_lines import TraceError, objects

__all__ = ["VERSION", "Event", "Trace", "TraceError", "read_trace", "trace_of"]

VERSION = 1

_FIELDS: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "open": {"socket": (str, int), "client": (str,)},
    "close": {"socket": (str, int), "client": (str,)},
    "denied": {"client": (str,)},
    "note": {},
}
_HOWS = ("close", "reset")
_LONGEST_S = 366 * 86_400  # dates, in seconds since 1970, are beyond it
_MOST_SHOWN = 80  # characters of what was given


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
        with opened(path) as stream:
            return trace_of(stream, printable(path))
    except UnreadableError as error:
        raise TraceError(f"{printable(path)}: {error}; name a trace") from None


def trace_of(stream: BinaryIO, name: str = "trace") -> Trace:
    """Read it from a stream.

    Raises:
        TraceError: it is no trace.
    """
    reader = _Reader(name)
    for number, said in objects(stream, name):
        reader.take(number, said)
    return Trace(tuple(reader.events), tuple(reader.denials))


class _Reader:
    """Reads one object after the other, and keeps what the next one has to agree with."""

    def __init__(self, name: str) -> None:
        self.events: list[Event] = []
        self.denials: list[tuple[float, str]] = []
        self._name = name
        self._where = name
        self._now = 0.0
        self._owners: dict[str, str] = {}  # of sockets that are open
        self._ended: set[str] = set()

    def take(self, number: int, said: Mapping[str, Any]) -> None:
        """The object of a line."""
        self._where = f"{self._name}: line {number}"
        if number == 1:
            self._check_header(said)
            return
        kind = self._kind(said)
        t = self._moment(said)
        if kind == "denied":
            self.denials.append((t, said["client"]))
        elif kind != "note":
            event = self._event(t, kind, said)
            self._follow(event)
            self.events.append(event)

    def _fault(self, text: str) -> TraceError:
        return TraceError(f"{self._where}: {text}")

    def _check_header(self, said: Mapping[str, Any]) -> None:
        if said.get("herdgate_trace") != VERSION:
            raise self._fault(f'not {{"herdgate_trace": {VERSION}}}; name a trace of that version')

    def _kind(self, said: Mapping[str, Any]) -> str:
        kind = said.get("event")
        if not isinstance(kind, str) or kind not in _FIELDS:
            raise self._fault(f"event: got {_shown(kind)}; write one of {', '.join(_FIELDS)}")
        for field, kinds in _FIELDS[kind].items():
            value = said.get(field)
            if not isinstance(value, kinds) or isinstance(value, bool) or value == "":
                raise self._fault(f"{field}: got {_shown(value)}; write a name")
        return kind

    def _moment(self, said: Mapping[str, Any]) -> float:
        t = said.get("t")
        if isinstance(t, bool) or not isinstance(t, int | float) or not 0 <= t <= _LONGEST_S:  # NaN is neither
            raise self._fault(f"t: got {_shown(t)}; write seconds since the trace began, 0 to {_LONGEST_S}")
        if t < self._now:
            raise self._fault(f"t goes back to {t:g}; sort the events by t")
        self._now = float(t)
        return self._now

    def _event(self, t: float, kind: str, said: Mapping[str, Any]) -> Event:
        how = said.get("how")
        if how not in (None, *_HOWS):
            raise self._fault(f"how: got {_shown(how)}; write one of {', '.join(_HOWS)}")
        returns = said.get("returns", None if how is None else how == "reset")
        if returns is not None and not isinstance(returns, bool):
            raise self._fault(f"returns: got {_shown(returns)}; write true or false, or leave it out")
        return Event(t, kind == "open", str(said["socket"]), said["client"], how or "reset", returns)

    def _follow(self, event: Event) -> None:
        """A socket opens once, and ends once, with the client that it opened with; its name may be used again."""
        owner = self._owners.pop(event.socket, None)
        if event.is_open and owner is not None:
            raise self._fault(f"socket {_shown(event.socket)} is open already; give each socket a name of its own")
        if not event.is_open and owner not in (None, event.client):
            raise self._fault(f"client: got {_shown(event.client)}; the socket was opened by {_shown(owner)}")
        if not event.is_open and owner is None and event.socket in self._ended:
            raise self._fault(f"socket {_shown(event.socket)} has ended already; give each socket a name of its own")
        if event.is_open:
            self._owners[event.socket] = event.client
        else:
            self._ended.add(event.socket)


def _shown(value: object) -> str:
    return ascii(value)[:_MOST_SHOWN]
