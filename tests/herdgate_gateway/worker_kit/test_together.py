"""Two duties of one worker, as one."""

import asyncio
from collections.abc import Iterable, Mapping

import pytest

from herdgate_gateway.worker_kit.together import Together


class Noting:
    """A duty that writes down what it is told.

    Args:
        told: where, with its name.
        ends: run returns at once.
    """

    def __init__(self, name: str, told: list[str], *, ends: bool = False) -> None:
        self._name, self._told, self._ends = name, told, ends

    def _note(self, what: str) -> None:
        self._told.append(f"{self._name} {what}")

    def gained(self, shard: int, epoch: int) -> None:
        self._note(f"gained {shard} {epoch}")

    def lost(self, shard: int, epoch: int) -> None:
        self._note(f"lost {shard} {epoch}")

    def wants_changed(self, shards: Iterable[int]) -> None:
        self._note(f"wants {list(shards)}")

    def weights(self) -> Mapping[int, int]:
        return {7: 2, len(self._name): 1}

    def load(self) -> int:
        return 3

    async def start(self) -> None:
        self._note("start")

    async def release(self, shard: int) -> None:
        self._note(f"release {shard}")

    async def run(self) -> None:
        self._note("run")
        if not self._ends:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self._note("ended")

    async def aclose(self) -> None:
        self._note("close")


async def test_each_is_told_all_and_what_started_first_closes_last() -> None:
    told: list[str] = []
    both = Together([Noting("a", told), Noting("bb", told)])
    await both.start()
    both.gained(7, 1)
    both.wants_changed(iter([7, 8]))
    await both.release(7)
    both.lost(7, 1)
    await both.aclose()
    assert told == [
        *("a start", "bb start", "a gained 7 1", "bb gained 7 1", "a wants [7, 8]", "bb wants [7, 8]"),
        *("a release 7", "bb release 7", "a lost 7 1", "bb lost 7 1", "bb close", "a close"),
    ]


def test_weights_and_loads_add_up() -> None:
    both = Together([Noting("a", []), Noting("bb", [])])
    assert both.weights() == {7: 4, 1: 1, 2: 1}
    assert both.load() == 6


async def test_when_one_returns_the_other_one_ends() -> None:
    told: list[str] = []
    await asyncio.wait_for(Together([Noting("a", told), Noting("b", told, ends=True)]).run(), 5)
    assert told == ["a run", "b run", "a ended"]


async def test_what_one_fails_with_is_raised() -> None:
    class Failing(Noting):
        async def run(self) -> None:
            raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        await Together([Noting("a", []), Failing("b", [])]).run()
