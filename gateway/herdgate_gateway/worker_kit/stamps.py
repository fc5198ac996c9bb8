"""Stamps: which shard and which epoch of it a gateway believes to find here, and what to make of that. Pure.

    epoch as mine, and I may act      in
    higher than any I know            look into the table: it may be mine without my knowing
    lower, frozen, or not mine        refuse, and say what is known

The stamp is three request headers, `Herdgate-Connection-Id`, `Herdgate-Shard` and `Herdgate-Epoch`, and
`Herdgate-Duplicates` where the route says something of them. Gateways drop whatever clients send under such names;
without the three, or with nonsense, there is no gateway of the fleet in front.
"""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, cast, get_args

from herdgate_gateway.connection_ids import Duplicates
from herdgate_gateway.leases.rows import SHARDS, shard_of

__all__ = ["Known", "Stamp", "StampError", "Verdict", "judge", "read_stamp"]

_ID = re.compile(r"[\x21-\x7e]{1,128}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}")
_WHY = "this worker serves gateways of its fleet only"

Verdict = Literal["in", "look", "refuse"]


class StampError(ValueError):
    """A handshake without a stamp that makes sense; one line."""


class Stamp(NamedTuple):
    """What a gateway says of a handshake."""

    connection_id: str
    shard: int
    epoch: int
    duplicates: Duplicates = "allow"


class Known(NamedTuple):
    """What is known of a shard.

    Attributes:
        epoch: the highest one; 0: none.
        owner: name of the worker that has it; None: not known.
    """

    epoch: int
    owner: str | None


def read_stamp(headers: Iterable[tuple[bytes, bytes]]) -> Stamp:
    """The stamp of a handshake.

    Args:
        headers: as ASGI has them, names in lower case.

    Raises:
        StampError: there is none, or one that makes no sense.
    """
    found: dict[bytes, list[str]] = {b"connection-id": [], b"shard": [], b"epoch": [], b"duplicates": []}
    for name, value in headers:
        if name.startswith(b"herdgate-") and name[9:] in found:
            found[name[9:]].append(value.decode("latin-1"))
    duplicates = found.pop(b"duplicates") or ["allow"]
    if any(len(values) != 1 for values in found.values()):
        raise StampError(f"{_WHY}: Herdgate-Connection-Id, Herdgate-Shard and Herdgate-Epoch have to come, once each")
    connection_id, shard, epoch = (values[0] for values in found.values())
    if len(duplicates) > 1 or duplicates[0] not in get_args(Duplicates):
        raise StampError(f"{_WHY}: Herdgate-Duplicates is allow, refuse or replace")
    return _checked(connection_id, shard, epoch)._replace(duplicates=cast(Duplicates, duplicates[0]))


def _checked(connection_id: str, shard: str, epoch: str) -> Stamp:
    if not _ID.fullmatch(connection_id):
        raise StampError(f"{_WHY}: Herdgate-Connection-Id is 1 to 128 characters of printable ASCII")
    if not _NUMBER.fullmatch(shard) or int(shard) >= SHARDS or int(shard) != shard_of(connection_id):
        raise StampError(f"{_WHY}: Herdgate-Shard is not the shard of this connection id")
    if not _NUMBER.fullmatch(epoch) or int(epoch) == 0:
        raise StampError(f"{_WHY}: Herdgate-Epoch is a whole number from 1 on")
    return Stamp(connection_id, int(shard), int(epoch))


def judge(stamped: int, mine: int | None, known: int) -> Verdict:
    """What to do with a handshake.

    Args:
        stamped: its epoch.
        mine: epoch with which I may act on its shard at this moment; None: I may not.
        known: the highest epoch of the shard that I know.
    """
    if stamped == mine:
        return "in"
    return "look" if stamped > max(known, mine or 0) else "refuse"
