"""A coroutine that is stepped only while it may be."""

import asyncio

import pytest

from herdgate_gateway.worker_kit.guarded import Guarded


async def run(guarded: Guarded) -> object:
    return await guarded


class Right:
    """One that may be taken away."""

    def __init__(self) -> None:
        self.is_there = True
        self.asked = 0

    def __call__(self) -> bool:
        self.asked += 1
        return self.is_there


async def test_result_and_error_come_through() -> None:
    async def fine() -> int:
        await asyncio.sleep(0)
        return 7

    async def broken() -> None:
        await asyncio.sleep(0)
        raise LookupError("gone")

    assert await Guarded(fine(), lambda: True) == 7
    with pytest.raises(LookupError, match="gone"):
        await Guarded(broken(), lambda: True)


async def test_it_is_asked_before_each_step() -> None:
    right = Right()

    async def work() -> None:
        for _ in range(3):
            await asyncio.sleep(0)

    await Guarded(work(), right)
    assert right.asked == 4


async def test_no_line_is_run_without_a_right_from_the_beginning() -> None:
    lines: list[str] = []

    async def work() -> None:
        lines.append("one")

    with pytest.raises(asyncio.CancelledError):
        await Guarded(work(), lambda: False)
    assert lines == []


@pytest.mark.parametrize("ends", ["answered", "failed"])
async def test_no_line_but_a_clean_up_that_does_not_wait_is_run_when_the_right_has_gone_meanwhile(ends: str) -> None:
    right, lines = Right(), []
    waited: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        try:
            try:
                await waited
            except OSError:
                lines.append("failed")
            lines.append("on")
        finally:
            lines.append("cleaned up")
            await asyncio.sleep(0)
            lines.append("waited")

    task = asyncio.create_task(run(Guarded(work(), right)))
    await asyncio.sleep(0)
    right.is_there = False
    if ends == "answered":
        waited.set_result(None)
    else:
        waited.set_exception(OSError())
    with pytest.raises(asyncio.CancelledError):
        await task
    assert lines == ["cleaned up"]


async def test_cancellation_of_its_task_and_timeouts_inside_come_through() -> None:
    lines: list[str] = []
    timed_out = asyncio.Event()

    async def work() -> None:
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(60)
        except TimeoutError:
            lines.append("timeout")
            timed_out.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            lines.append("cancelled")
            raise

    task = asyncio.create_task(run(Guarded(work(), lambda: True)))
    await timed_out.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert lines == ["timeout", "cancelled"]


async def stubborn(lines: list[str]) -> None:
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            lines.append("no")
        finally:
            lines.append("finally")


async def test_one_that_is_abandoned_ends_whatever_it_catches() -> None:
    lines: list[str] = []
    guarded = Guarded(stubborn(lines), lambda: True)
    task = asyncio.create_task(run(guarded))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert lines == ["no", "finally"]
    assert not task.done()

    guarded.abandon()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert lines == ["no", "finally", "finally"]


async def test_one_that_is_never_finished_is_closed() -> None:
    lines: list[str] = []
    steps = Guarded(stubborn(lines), lambda: True).__await__()
    next(steps)
    steps.close()
    assert lines == ["finally"]


async def test_one_that_swallows_the_loss_of_its_right_runs_no_step_more() -> None:
    lines: list[str] = []
    right = Right()
    task = asyncio.create_task(run(Guarded(stubborn(lines), right)))
    await asyncio.sleep(0)
    right.is_there = False
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(task), 10)
    assert lines == ["no", "finally", "finally"], "it hears of it, and is closed"


async def test_one_that_ends_by_itself_when_its_right_is_lost_has_a_result() -> None:
    right = Right()

    async def work() -> int:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return 7
        return 8

    task = asyncio.create_task(run(Guarded(work(), right)))
    await asyncio.sleep(0)
    right.is_there = False
    task.cancel()
    assert await task == 7
