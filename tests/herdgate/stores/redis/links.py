"""Links to test servers, and a Redis in a script for what no real one does on demand."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from herdgate.stores.redis.errors import LinkError
from herdgate.stores.redis.link import Link
from herdgate.stores.redis.scripts import Script

__all__ = ["COUNT", "KEY", "count", "failing", "fake_redis", "linked", "until", "without_loose_ends"]

KEY = "{herdgate:test}:n"
COUNT = Script.of("count", "return {ARGV[1], redis.call('INCR', KEYS[1])}")
"""Returns its argument, and how often it ran."""

WAIT_S = 10.0


async def count(link: Link, word: str = "x") -> list[Any]:
    """One call: the word as bytes, and how often the script ran."""
    reply = await link.call(COUNT, [KEY], [word])
    assert isinstance(reply, list)
    return reply


@asynccontextmanager
async def linked(url: str, *, checked: bool = True, **settings: Any) -> AsyncIterator[Link]:
    """A link, connected and checked, that is closed in the end. Its random numbers are all 0.5."""
    link = Link(url, **{"rng": lambda: 0.5, **settings})
    try:
        if checked:
            await link.check(KEY)
        yield link
    finally:
        await link.aclose()


async def failing(link: Link, expected: type[LinkError]) -> tuple[LinkError, float]:
    """The error of one call, and the seconds it took to fail."""
    began = time.perf_counter()
    try:
        await count(link)
    except expected as error:
        return error, time.perf_counter() - began
    raise AssertionError(f"no {expected.__name__}")


async def until(condition: Callable[[], bool], what: str, *, within_s: float = WAIT_S) -> None:
    """Wait until `condition` holds; fail if it does not within the time."""
    end = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < end, f"not within {within_s} s: {what}"
        await asyncio.sleep(0.002)


@asynccontextmanager
async def without_loose_ends() -> AsyncIterator[None]:
    """Fail if an exception reaches nobody ("Task exception was never retrieved"), or a task is left over."""
    loop, unhandled = asyncio.get_running_loop(), list[dict[str, Any]]()
    loop.set_exception_handler(lambda _, context: unhandled.append(context))
    before = asyncio.all_tasks()
    yield
    gc.collect()
    await asyncio.sleep(0)
    assert not unhandled
    before |= {task for task in (asyncio.current_task(),) if task}
    await until(lambda: not asyncio.all_tasks() - before, "all tasks have ended")


@asynccontextmanager
async def fake_redis(answer: Callable[[list[bytes]], bytes]) -> AsyncIterator[int]:
    """A server that answers each command with the bytes that `answer` gives; yields its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                words = []
                for _ in range(int(line[1:])):
                    size = int((await reader.readline())[1:])
                    words.append((await reader.readexactly(size + 2))[:-2])
                writer.write(answer(words))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
