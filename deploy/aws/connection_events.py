"""Events that say which connections shall run, written into the lease table: an AWS Lambda function behind EventBridge.

    detail-type  Herdgate Connection Wanted
    detail       {"id": "ticker-1", "want": "STARTED", "seq": 17, "attrs": {"url": "wss://host/stream"}}

Rules:
- an event changes a row only if its seq is higher than that of the last event that did (`want_seq` of the row): one
  that comes twice, or behind a newer one, changes nothing, and of two with the same seq the first to come holds;
- a stop leaves a row even where there was none, or a start that it has overtaken would find nothing that is newer;
- an event that can never be carried out goes to the queue of dead events, with one line that says why, and is over;
- whatever else fails is raised once the SDK has tried for half a minute, and Lambda calls again as `events.yaml` says.

Rows, ids and attrs are those of `herdgate connections`; they need nothing but Lambda's runtime, and a test holds one
to the other. Environment: TABLE, FLEET, DEAD_EVENTS (URL of the queue).
"""

import json
import logging
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from typing import Any

import boto3
from boto3.dynamodb.types import TypeSerializer
from botocore.config import Config

__all__ = ["KEPT_S", "MOST_SEQ", "BadEventError", "Wanted", "handler", "read_event"]

KEPT_S = 86_400
"""Seconds that the row of a stopped connection is kept, at least: longer than an event can be under way."""

MOST_SEQ = 2**63 - 1
"""Nanoseconds since 1970 will do for some time."""

_SHARDS = 1_024
_MOST_ATTRS = 16 * 1024  # bytes of JSON without spaces
_MOST_DEPTH = 30
_MOST_NUMBER = 10**38 - 1
_ID = re.compile(r"[\x21-\x7e]{1,128}")
_NAMES = {"STARTED": {"id", "want", "seq", "attrs"}, "STOPPED": {"id", "want", "seq"}}
_NEWER = "attribute_not_exists(#seq) OR #seq < :seq"
_RETRIES = {"mode": "standard", "total_max_attempts": 6}  # 31 s of waiting at most

_log = logging.getLogger(__name__)
_log.setLevel(logging.INFO)


class BadEventError(Exception):
    """An event that can never be carried out; one line with the way out."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an event wants of a connection.

    Attributes:
        want: STARTED or STOPPED.
        seq: of its sender; higher is newer.
        attrs: for who serves it; None: those that are there stay.
    """

    id: str
    want: str
    seq: int
    attrs: Mapping[str, Any] | None = None


def handler(event: Mapping[str, Any], _context: object) -> None:
    """Carry one event out, as EventBridge hands it to Lambda.

    Raises:
        botocore.exceptions.ClientError, BotoCoreError: the table, or the queue, did not do it; it may be repeated.
    """
    try:
        wanted = read_event(event)
    except BadEventError as error:
        _bury(event, f"event {event.get('id')}: {error}")
    else:
        _carry_out(wanted)


def read_event(event: Mapping[str, Any]) -> Wanted:
    """What it wants.

    Raises:
        BadEventError: nothing that can be done.
    """
    detail = event.get("detail")
    if not isinstance(detail, dict):
        raise BadEventError('detail is no object; write {"id": ..., "want": ..., "seq": ...}')
    name, want, seq = detail.get("id"), detail.get("want"), detail.get("seq")
    if not isinstance(name, str) or not _ID.fullmatch(name):
        raise _bad("id", name, "write 1 to 128 characters of printable ASCII, without spaces")
    if want not in ("STARTED", "STOPPED"):
        raise _bad("want", want, "write STARTED or STOPPED")
    if isinstance(seq, bool) or not isinstance(seq, int) or not 0 <= seq <= MOST_SEQ:
        raise _bad("seq", seq, f"write a whole number from 0 to {MOST_SEQ}, higher with every event of a connection")
    if unknown := detail.keys() - _NAMES[want]:
        raise _bad(min(unknown), detail[min(unknown)], f"leave it out, it is no part of {want}")
    return Wanted(name, want, seq, _checked(detail["attrs"]) if "attrs" in detail else None)


def _bad(field: str, value: object, way_out: str) -> BadEventError:
    return BadEventError(f"detail.{ascii(field)[1:-1][:60]} is {ascii(value)[:60]}; {way_out}")


def _checked(attrs: object) -> dict[str, Any]:
    """Attrs that the table can hold."""
    if not isinstance(attrs, dict):
        raise _bad("attrs", attrs, "write an object")
    _check_inside(attrs, _MOST_DEPTH)
    try:
        size = len(json.dumps(attrs, ensure_ascii=False, separators=(",", ":")).encode())
    except UnicodeEncodeError:
        raise _bad("attrs", attrs, "write texts that are Unicode") from None
    if size > _MOST_ATTRS:
        raise _bad("attrs", f"{size:,} bytes", f"keep them to {_MOST_ATTRS:,}, and what is larger elsewhere")
    return attrs


def _check_inside(value: object, depth: int) -> None:
    """Check for what a row cannot hold, or JSON alone has."""
    match value:
        case dict() | list() if depth == 0:
            raise _bad("attrs", value, f"keep them to {_MOST_DEPTH} levels")
        case {"": inner}:
            raise _bad("attrs", inner, "give each value a name of at least one character")
        case dict() | list():
            for inner in value.values() if isinstance(value, dict) else value:
                _check_inside(inner, depth - 1)
        case None | float():
            raise _bad("attrs", value, "leave it out, or write it as a text")
        case int() if abs(value) > _MOST_NUMBER:
            raise _bad("attrs", value, "write numbers of more than 38 digits as texts")


def _carry_out(wanted: Wanted) -> None:
    table = _client("dynamodb")
    try:
        table.update_item(TableName=os.environ["TABLE"], **_update(wanted, os.environ["FLEET"], int(time.time())))
    except table.exceptions.ConditionalCheckFailedException:
        _log.info("connection %s: %s %d is known, or older than what is", wanted.id, wanted.want, wanted.seq)
    else:
        _log.info("connection %s: %s %d", wanted.id, wanted.want, wanted.seq)


def _update(wanted: Wanted, fleet: str, now: int) -> dict[str, Any]:
    """The arguments of UpdateItem. What stands in the row beside these attributes stays, such as epoch and last_seq."""
    sets: dict[str, Any] = {"want": wanted.want, "seq": wanted.seq}
    if wanted.want == "STOPPED":
        sets["ttl"] = now + KEPT_S
    if wanted.attrs is not None:
        sets["attrs"] = wanted.attrs
    changes = "SET " + ", ".join(f"#{name} = :{name}" for name in sets)
    names = {f"#{name}": "want_seq" if name == "seq" else name for name in {*sets, "ttl"}}
    return {
        "Key": _attributes({"pk": f"{fleet}#S#{_shard_of(wanted.id):04d}", "sk": f"C#{wanted.id}"}),
        "UpdateExpression": changes if "ttl" in sets else f"{changes} REMOVE #ttl",
        "ConditionExpression": _NEWER,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": _attributes({f":{name}": value for name, value in sets.items()}),
    }


def _shard_of(connection_id: str) -> int:
    return int.from_bytes(blake2b(connection_id.encode(), digest_size=8).digest(), "big") % _SHARDS


def _attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: TypeSerializer().serialize(value) for name, value in values.items()}


def _bury(event: object, why: str) -> None:
    """Into the queue, in the form in which EventBridge puts what it cannot deliver there."""
    _log.error("%s", why)
    _client("sqs").send_message(
        QueueUrl=os.environ["DEAD_EVENTS"],
        MessageBody=json.dumps(event),
        MessageAttributes={"ERROR_MESSAGE": {"DataType": "String", "StringValue": why}},
    )


@cache
def _client(service: str) -> Any:
    """Kept for the next events of this process."""
    return boto3.client(service, config=Config(connect_timeout=1, read_timeout=2, retries=_RETRIES))
