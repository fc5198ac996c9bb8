"""What goes to `decide.lua` and what comes back: JSON for what is told once, packed records for a crowd.

A batch is settled in this order: firm slots, hints, newcomers, each by class, then as they came. Newcomers who ask for
the same are one record with their number; the reply has one record for each of them.
"""

import json
import math
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, repeat
from typing import Any, Literal, NamedTuple

from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.core.tickets import Kind, Ticket
from herdgate.fleet import Fleet

__all__ = [
    "ANY_WORKER",
    "NO_WORKER",
    "Ask",
    "Mode",
    "Reply",
    "head_of_settings",
    "named",
    "pack_batch",
    "pack_head",
    "pack_reply",
    "read_batch",
    "read_reply",
]

Mode = Literal["arrive", "reserve", "hint", "defer"]
"""`hint` asks for a promise only; `defer` for a firm slot, after an admission that could not be used."""

NO_WORKER, ANY_WORKER = "", "*"

_ANY, _MOST_NAMES = 255, 254

_encode = json.JSONEncoder(separators=(",", ":")).encode

_MODES: dict[Mode, int] = {"arrive": 0, "reserve": 1, "hint": 2, "defer": 3}
_KINDS: dict[Kind, int] = {"hint": 1, "firm": 2}
_MODE_OF = {number: mode for mode, number in _MODES.items()}
_KIND_OF = {number: kind for kind, number in _KINDS.items()}
_ASKED = struct.Struct(">BBBBIIQxxxx")  # mode, class, worker, kind of ticket, serial or number, issuer, moment
_TOLD = struct.Struct(">BBxxIQd")  # code, worker, serial, moment, seconds
_DENIED, _ADMITTED, _HINT, _FIRM, _EARLY, _RESERVED, _SAME = range(7)
_SPENT, _FULL = 16, 32
_SCALARS = 13


class Ask(NamedTuple):
    """One arrival that waits for the calendar.

    Attributes:
        klass: its class, by position.
        shown: a ticket whose signature is good.
        worker: name of the only worker that can take it; `ANY_WORKER`, or `NO_WORKER`: it needs none.
    """

    mode: Mode = "arrive"
    klass: int = 0
    shown: Ticket | None = None
    worker: str = NO_WORKER


class Reply(NamedTuple):
    """The state of the fleet after a call.

    Attributes:
        v, firm: refill time, and up to when it belongs to firm slots.
        rate, first_rate, burst, tokens: of the calendar.
        fraction: share of client keys let past.
        issuer: of the calendar's tickets.
        gateways: that have called of late.
        open, pending: permits of all of them.
        configured: the rate that settings asked for last.
        ceiling: the rate that anyone asked for last; rate control stays below it.
        classes: hints outstanding and show rate of each.
        grants: one for each ask, in the order of `pack_batch`.
        rooms: sockets that each worker may still get; inf: no limit, -1: it wants nobody. Empty: nothing is known.
    """

    v: float
    firm: float
    tokens: float
    rate: float
    first_rate: float
    burst: float
    fraction: float
    issuer: int
    gateways: int
    open: int
    pending: int
    configured: float
    ceiling: float
    classes: Sequence[tuple[int, float]]
    grants: Sequence[Grant]
    rooms: Mapping[str, float] = {}


def head_of_settings(limits: Limits, fleet: Fleet) -> str:
    """The part of a call's head that changes with the settings only; for `pack_head`."""
    told: dict[str, Any] = {
        "limits": {
            "burst": limits.burst or 0,
            "hold_s": limits.hold_s,
            "grace_s": limits.grace_s,
            "hint_cap_s": limits.hint_cap_s,
            "horizon_s": limits.horizon_s,
        },
        "classes": [[klass.name, klass.share] for klass in limits.classes],
        "rate": limits.rate,
        "fraction": limits.admit_fraction,
    }
    if fleet.rate_min is not None:
        targets = {"setup_s": fleet.setup_target_s, "pending_share": fleet.pending_target}
        told["control"] = {"rate_min": fleet.rate_min, **targets}
    return _encode(told)


def pack_head(head: Mapping[str, Any], settings: str) -> str:
    """The head of a call."""
    return f"{_encode(head)[:-1]},{settings[1:]}"


def named(asks: Iterable[Ask], workers: Sequence[str]) -> Sequence[str]:
    """The workers that a call with these asks names: those given, and behind them who else is needed."""
    others = {ask.worker for ask in asks} - {NO_WORKER, ANY_WORKER} - set(workers)
    return (*workers, *sorted(others)) if others else workers


def pack_batch(asks: Sequence[Ask], workers: Sequence[str]) -> tuple[bytes, list[int]]:
    """The batch of a call, and the positions of `asks` in the order of its reply.

    Args:
        workers: as `named`. What is needed beyond the 254th has room for all.
    """
    places = {name: place for place, name in enumerate(workers[:_MOST_NAMES], 1)} | {ANY_WORKER: _ANY}
    order = sorted(range(len(asks)), key=lambda position: _rank(asks[position]))
    records = []
    for ask, same in groupby(asks[position] for position in order):
        mode, klass, shown, name = ask
        worker = places.get(name, 0)
        if shown is None:
            records.append(_ASKED.pack(_MODES[mode], klass, worker, 0, sum(1 for _ in same), 0, 0))
            continue
        for _ in same:
            record = (_MODES[mode], klass, worker, _KINDS[shown.kind], shown.serial, shown.issuer, shown.at_ms)
            records.append(_ASKED.pack(*record))
    return b"".join(records), order


def read_batch(data: bytes, workers: Sequence[str]) -> Iterator[Ask]:
    """The arrivals of a packed batch, in its order.

    Raises:
        LookupError, struct.error: it is none.
    """
    for mode, klass, place, kind, number, issuer, at_ms in _ASKED.iter_unpack(data):
        worker = ANY_WORKER if place == _ANY else workers[place - 1] if place else NO_WORKER
        if kind == 0:
            yield from repeat(Ask(_MODE_OF[mode], klass, None, worker), number)
        else:
            yield Ask(_MODE_OF[mode], klass, Ticket(_KIND_OF[kind], at_ms, issuer, number), worker)


def pack_reply(reply: Reply, asks: Sequence[Ask], workers: Sequence[str]) -> list[bytes]:
    """The reply to a call with these asks, in the order of the batch."""
    words = map(repr, chain(reply[:_SCALARS], *reply.classes))
    positions = {name: position for position, name in enumerate(workers, 1)}
    records = (_told(grant, ask.shown, positions) for grant, ask in zip(reply.grants, asks, strict=True))
    rooms = " ".join(str(reply.rooms[name]) for name in workers if reply.rooms)
    return [" ".join(words).encode(), b"".join(records), rooms.encode()]


def read_reply(reply: Sequence[bytes], asks: Sequence[Ask], order: Sequence[int], workers: Sequence[str]) -> Reply:
    """The reply to a call with these asks.

    Raises:
        ValueError: it is none.
    """
    try:
        return _read(reply, asks, order, workers)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, struct.error) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _read(reply: Sequence[bytes], asks: Sequence[Ask], order: Sequence[int], workers: Sequence[str]) -> Reply:
    words = reply[0].split()
    scalars, rest = list(map(float, words[:_SCALARS])), list(map(float, words[_SCALARS:]))
    if not all(map(math.isfinite, scalars)):
        raise ValueError("a number without end")
    v, firm, tokens, rate, first_rate, burst, fraction, issuer, gateways, opened, pending, configured, ceiling = scalars
    classes = [(int(outstanding), show_rate) for outstanding, show_rate in zip(rest[::2], rest[1::2], strict=True)]
    return Reply(
        v=v,
        firm=firm,
        tokens=tokens,
        rate=rate,
        first_rate=first_rate,
        burst=burst,
        fraction=fraction,
        issuer=int(issuer),
        gateways=int(gateways),
        open=int(opened),
        pending=int(pending),
        configured=configured,
        ceiling=ceiling,
        classes=classes,
        grants=list(_grants(reply[1], int(issuer), (asks[position].shown for position in order), ("", *workers))),
        rooms=dict(zip(workers, map(float, reply[2].split()), strict=False)),
    )


def _rank(ask: Ask) -> tuple[int, int, str]:
    kind = 2 if ask.shown is None else 0 if ask.shown.kind == "firm" else 1
    return kind, ask.klass, ask.mode


def _told(grant: Grant, shown: Ticket | None, positions: Mapping[str, int]) -> bytes:
    ticket = grant.ticket
    code = _code_of(grant, shown) | (_SPENT if grant.spent else 0) | (_FULL if grant.full else 0)
    worker = 0 if grant.worker is None else positions[grant.worker]
    serial, at_ms = (ticket.serial, ticket.at_ms) if ticket else (0, 0)
    return _TOLD.pack(code, worker, serial, at_ms, grant.told_s)


def _code_of(grant: Grant, shown: Ticket | None) -> int:
    ticket = grant.ticket
    if grant.admitted:
        return _ADMITTED if ticket is None else _SAME if ticket == shown else _RESERVED
    if ticket is None:
        return _DENIED
    return _EARLY if ticket == shown else _HINT if ticket.kind == "hint" else _FIRM


def _grants(batch: bytes, issuer: int, shown: Iterator[Ticket | None], workers: Sequence[str]) -> Iterator[Grant]:
    for (code, worker, serial, at_ms, told_s), ticket in zip(_TOLD.iter_unpack(batch), shown, strict=True):
        spent, full, what = bool(code & _SPENT), bool(code & _FULL), code & 15
        if what == _ADMITTED:
            yield Grant(True, spent=spent, worker=workers[worker] or None)
        elif what in (_HINT, _FIRM):
            promised = Ticket("hint" if what == _HINT else "firm", at_ms, issuer, serial)
            yield Grant(False, promised, told_s, spent, full)
        elif what == _DENIED:
            yield Grant(False, None, told_s, spent, full)
        elif what == _EARLY:
            yield Grant(False, ticket, told_s, full=full)
        else:
            yield Grant(True, ticket if what == _SAME else Ticket("firm", at_ms, issuer, serial), 0.0, spent)
