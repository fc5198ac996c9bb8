"""What a worker answers to a handshake that it does not take. Pure.

400    no stamp that makes sense: no gateway of the fleet is in front
421    not the owner of the shard, or not with that epoch (RFC 9110 section 15.5.20)
409    another socket of the connection is open, and the route has one at a time (RFC 9110 section 15.5.10); it may be
       one that has not noticed its end, so clients are told to come back in 5 to 10 s, each at another moment
503    beyond the capacity; clients are told to come back in 1 to 2 s, each at another moment
"""

import json
import math
from collections.abc import Mapping
from typing import NamedTuple

from herdgate_gateway.worker_kit.stamps import Known

__all__ = ["Answer", "beyond_capacity", "duplicate", "misdirected", "without_stamp"]

FULL_RETRY_S = (1.0, 2.0)
DUPLICATE_RETRY_S = (5.0, 10.0)


class Answer(NamedTuple):
    """A response to a handshake."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


def without_stamp(why: str) -> Answer:
    """No gateway of the fleet is in front."""
    return _answer(400, {"error": why, "reason": "no_stamp"}, {})


def misdirected(shard: int, known: Known) -> Answer:
    """Another worker owns the shard, or this one with another epoch."""
    body = {
        "error": f"shard {shard} is not served here with that epoch",
        "reason": "not_owner",
        "shard": shard,
        "epoch": known.epoch,
        "owner": known.owner,
    }
    headers = {"Herdgate-Shard": str(shard), "Herdgate-Epoch": str(known.epoch), "Retry-After": "1"}
    return _answer(421, body, headers if known.owner is None else {**headers, "Herdgate-Owner": known.owner})


def beyond_capacity(capacity: int, share: float) -> Answer:
    """No room.

    Args:
        share: uniform in [0, 1): of the time between the least and the longest wait.
    """
    body = {"error": f"this worker takes {capacity} sockets, and has them", "reason": "full"}
    return _answer(503, body, _retry(FULL_RETRY_S, share))


def duplicate(connection_id: str, share: float) -> Answer:
    """There is one already.

    Args:
        share: as `beyond_capacity`.
    """
    body = {"error": f"connection {connection_id} has a socket already", "reason": "duplicate"}
    return _answer(409, body, _retry(DUPLICATE_RETRY_S, share))


def _retry(bounds: tuple[float, float], share: float) -> dict[str, str]:
    least, longest = bounds
    retry_s = least + share * (longest - least)
    return {"Retry-After": str(math.ceil(retry_s)), "Herdgate-Retry-Ms": str(round(retry_s * 1_000))}


def _answer(status: int, body: Mapping[str, object], headers: Mapping[str, str]) -> Answer:
    written = json.dumps(body).encode()
    common = {
        "Content-Type": "application/json",
        "Content-Length": str(len(written)),
        "Cache-Control": "no-store",
        "Connection": "close",
    }
    pairs = {**common, **headers}.items()
    return Answer(status, [(name.encode("latin-1"), value.encode("latin-1")) for name, value in pairs], written)
