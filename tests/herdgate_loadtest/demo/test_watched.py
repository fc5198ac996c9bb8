"""What goes on beside a round."""

import asyncio
from typing import NoReturn

import pytest

from herdgate_loadtest.demo.watched import beside, watched


async def for_ever() -> NoReturn:
    await asyncio.get_running_loop().create_future()
    raise AssertionError


async def say(word: str) -> str:
    return word


async def fail(error: Exception) -> NoReturn:
    raise error


async def fail_later(error: Exception) -> NoReturn:
    await asyncio.sleep(0.01)
    raise error


async def test_what_was_played_is_returned() -> None:
    assert await watched(say("well"), for_ever()) == "well"


async def test_what_the_watch_finds_ends_what_is_played() -> None:
    with pytest.raises(OSError, match="gone"):
        await watched(for_ever(), fail(OSError("gone")))


async def test_cause_that_is_found_a_moment_later_is_told_and_not_what_came_of_it() -> None:
    with pytest.raises(OSError, match="gone"):
        await watched(fail(ValueError("nobody answers")), fail_later(OSError("gone")))


async def test_failure_that_the_watch_knows_nothing_of_is_told() -> None:
    with pytest.raises(ValueError, match="nobody answers"):
        await watched(fail(ValueError("nobody answers")), for_ever())


async def test_picture_ends_with_its_phase() -> None:
    drawn: list[str] = []

    async def draw() -> None:
        try:
            await for_ever()
        finally:
            drawn.append("last frame")

    async def phase() -> int:
        await asyncio.sleep(0.01)
        return 7

    assert await beside(draw(), phase()) == 7
    assert drawn == ["last frame"]
