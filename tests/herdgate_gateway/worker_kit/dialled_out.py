"""A handler for `herdgate worker --dial` that writes down, in the file that its attrs name, when it ran a line.

A line is JSON: `at` by the boot clock, `what`, `id`, `epoch`, `pid`, `seq`.
"""

import asyncio
import json
import os
import time
from typing import Any

from herdgate_gateway.leases.effects import NotOwnerError, UnknownOutcomeError
from herdgate_gateway.worker_kit.handlers import Connection
from herdgate_loadtest.bench.leases.holder import boot_time

__all__ = ["blocks", "cleans_up", "counts", "raises"]

PAUSE_S = 0.1


class Notebook:
    """Lines of one run."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._file = os.open(connection.attrs["file"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(self, what: str, seq: int) -> None:
        about: dict[str, Any] = {"at": boot_time(), "what": what, "seq": seq, "pid": os.getpid()}
        about |= {"id": self._connection.id, "epoch": self._connection.epoch}
        os.write(self._file, (json.dumps(about) + "\n").encode())

    def close(self) -> None:
        os.close(self._file)


async def counts(connection: Connection) -> None:
    """Count on from the last checkpoint, ten a second, with a checkpoint for every fifth number."""
    book, seq = Notebook(connection), connection.last_seq or 0
    try:
        book.note("begin", seq)
        while True:
            await asyncio.sleep(PAUSE_S)
            seq += 1
            book.note("on", seq)
            if seq % 5 == 0:
                try:
                    await connection.checkpoint(seq)
                except UnknownOutcomeError:
                    continue
                except NotOwnerError:
                    return
                book.note("kept", seq)
    finally:
        book.close()


async def cleans_up(connection: Connection) -> None:
    """Keep a number while it is cancelled."""
    book = Notebook(connection)
    book.note("begin", connection.last_seq or 0)
    try:
        await asyncio.sleep(3_600)
    finally:
        await asyncio.sleep(0.3)
        await connection.checkpoint((connection.last_seq or 0) + 1)
        book.close()


async def blocks(connection: Connection) -> None:
    """Block the loop for as long as attrs say, in the first process that runs it."""
    book = Notebook(connection)
    try:
        book.note("begin", connection.last_seq or 0)
        while True:
            await asyncio.sleep(PAUSE_S)
            book.note("on", 0)
            if connection.last_seq is None:
                await connection.checkpoint(1)
                time.sleep(connection.attrs["block_s"])  # noqa: ASYNC251 - the fault that is played
    finally:
        book.close()


async def raises(connection: Connection) -> None:
    """Fail at once."""
    book = Notebook(connection)
    book.note("begin", connection.last_seq or 0)
    book.close()
    raise OSError("nobody there")
