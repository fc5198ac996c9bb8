"""The reloader alone: one reload at a time, and none that fails is the last."""

import asyncio
import threading

import pytest

from herdgate_gateway.reload import Reloader
from herdgate_gateway.settings import Settings
from tests.herdgate_gateway.gateways import until


class Gateway:
    """What is reloaded.

    Attributes:
        rate: as written.
        taken: the rates taken so far.
        gate: the file can be read while it is set.
    """

    def __init__(self) -> None:
        self.rate: float | Exception = 1.0
        self.taken: list[float | None] = []
        self.reading = 0
        self.gate = threading.Event()
        self.gate.set()

    def read(self) -> Settings:
        """The settings."""
        self.reading += 1
        assert self.gate.wait(10)
        if isinstance(self.rate, Exception):
            raise self.rate
        return Settings(rate=self.rate)

    async def reloader(self) -> Reloader:
        """A reloader that runs as long as its loop."""
        reloader = Reloader(self.read, lambda settings: lambda: self.taken.append(settings.rate), Settings(rate=1))
        self.running = asyncio.create_task(reloader.run())
        return reloader


async def test_whoever_asks_during_a_reload_gets_one_more() -> None:
    gateway = Gateway()
    reloader = await gateway.reloader()
    gateway.gate.clear()
    reloader.ask()
    await until(lambda: gateway.reading == 1, "it reads")
    for rate in (2.0, 3.0):
        gateway.rate = rate
        reloader.ask()
    gateway.gate.set()
    await until(lambda: len(gateway.taken) == 2, "both are over")
    assert gateway.taken[-1] == 3
    assert gateway.reading == 2


async def test_an_error_nobody_thought_of_is_logged_and_the_next_reload_works(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gateway = Gateway()
    gateway.rate = RuntimeError("surprise")
    reloader = await gateway.reloader()
    reloader.ask()
    await until(lambda: "surprise" in caplog.text, "it is logged")
    gateway.rate = 2.0
    reloader.ask()
    await until(lambda: gateway.taken == [2], "the next one works")


async def test_a_disk_that_hangs_stalls_neither_the_loop_nor_the_end() -> None:
    gateway = Gateway()
    reloader = await gateway.reloader()
    gateway.gate.clear()
    reloader.ask()
    await until(lambda: gateway.reading == 1, "it reads")
    gateway.running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(gateway.running, 10)
    (thread,) = (thread for thread in threading.enumerate() if thread.name == "herdgate-aside")
    assert thread.daemon
    gateway.gate.set()
    await asyncio.to_thread(thread.join, 10)
    assert gateway.taken == []
