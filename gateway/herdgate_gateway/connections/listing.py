"""Connections as text for people and as JSON. Pure."""

import json
from collections.abc import Sequence
from typing import Any

from herdgate.core.errors import printable
from herdgate_gateway.connections.limits import canonical
from herdgate_gateway.leases.listing import columns
from herdgate_gateway.leases.rows import ConnectionRow, ShardRow, shard_of

__all__ = ["as_json", "list_text", "show_text", "told", "told_without_row"]

_HEAD = ("connection", "want", "shard", "epoch", "last seq", "attrs")
_MOST_SHOWN = 60  # characters of attrs in a list
_NO_ROW = "- (it has no row: nobody has started it)"


def told(row: ConnectionRow) -> dict[str, Any]:
    """What is told of a connection, in JSON too."""
    return {
        "id": row.id,
        "want": row.want,
        "shard": shard_of(row.id),
        "epoch": row.epoch,
        "last_seq": row.last_seq,
        "attrs": row.attrs,
    }


def told_without_row(name: str) -> dict[str, Any]:
    """The same of one that has no row: all that there is to tell is its shard."""
    return {"id": name, "want": None, "shard": shard_of(name), "epoch": None, "last_seq": None, "attrs": None}


def as_json(answer: object) -> str:
    """Of what may hold values that somebody else put into the table."""
    return json.dumps(answer, indent=2, default=str)


def list_text(rows: Sequence[ConnectionRow]) -> str:
    """A line for each."""
    return columns([_HEAD, *map(_cells, rows)]) if rows else "no connections"


def show_text(name: str, row: ConnectionRow | None, owner: ShardRow | None) -> str:
    """A line for each thing that is known.

    Args:
        row: None: there is none of that name.
        owner: of its shard; None: nobody has owned it yet.
    """
    lines = [
        ("connection", name),
        ("want", _NO_ROW if row is None else row.want),
        ("shard", str(shard_of(name))),
        ("owner", "nobody yet" if owner is None else f"{owner.owner}, since epoch {owner.epoch}"),
    ]
    if row is not None:
        lines += [
            ("claimed with", _number(row.epoch, "never")),
            ("last seq", _number(row.last_seq)),
            ("attrs", printable(canonical(row.attrs))),
        ]
    return columns(lines)


def _cells(row: ConnectionRow) -> Sequence[str]:
    attrs = printable(canonical(row.attrs))
    short = attrs if len(attrs) <= _MOST_SHOWN else attrs[: _MOST_SHOWN - 3] + "..."
    return (row.id, row.want, str(shard_of(row.id)), _number(row.epoch), _number(row.last_seq), short)


def _number(number: int | None, none: str = "-") -> str:
    return none if number is None else str(number)
