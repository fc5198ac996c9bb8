"""The lines of a trace: one JSON object each, told by number where they are none.

Rules: nothing large is taken in at once, so that a file without line ends is an error after 64 KiB. A key that is there
twice is a fault: which of both is meant is not known.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from herdgate.core.errors import printable
from herdgate_loadtest.errors import LoadtestError

__all__ = ["TraceError", "objects"]

_LONGEST_LINE = 64 * 1024  # bytes
_MOST_SHOWN = 80  # characters of a key


class TraceError(LoadtestError):
    """A trace cannot be read: which line, what is wrong, the way out."""


def objects(stream: BinaryIO, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number and object of each line.

    Raises:
        TraceError: it is none, or there is no line.
    """
    number = 0
    while line := stream.readline(_LONGEST_LINE + 1):
        number += 1
        try:
            said = _object(line, "utf-8-sig" if number == 1 else "utf-8")  # a byte order mark, as of Windows
        except _NoObjectError as error:
            raise TraceError(f"{name}: line {number}: {error}") from None
        yield number, said
    if not number:
        raise TraceError(f"{name}: empty; a trace begins with " + '{"herdgate_trace": 1}')


class _NoObjectError(ValueError):
    """What is wrong with a line, and the way out."""


def _object(line: bytes, encoding: str) -> dict[str, Any]:
    if len(line) > _LONGEST_LINE:
        raise _NoObjectError(f"longer than {_LONGEST_LINE // 1024} KiB; a trace has one JSON object a line")
    try:
        said = json.loads(line.decode(encoding), object_pairs_hook=_once)
    except UnicodeDecodeError:
        raise _NoObjectError("not UTF-8; save it as UTF-8") from None
    except _NoObjectError:
        raise
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise _NoObjectError("no JSON object; a trace has one a line")
    return said


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for key, value in pairs:
        if key in said:
            raise _NoObjectError(f"{printable(key)[:_MOST_SHOWN]} is there twice; write it once")
        said[key] = value
    return said
