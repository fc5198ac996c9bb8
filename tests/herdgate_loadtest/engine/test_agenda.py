"""Who is to act when."""

import asyncio
import time

from herdgate_loadtest.engine.agenda import Agenda, Deadlines
from tests.herdgate_loadtest.engine.servers import eventually


class Diary:
    """An agenda that writes down who acted, and when."""

    def __init__(self) -> None:
        self.acted: list[tuple[str, float]] = []
        self.agenda: Agenda[str] = Agenda(asyncio.get_running_loop(), self._act)

    def _act(self, item: str) -> None:
        self.acted.append((item, time.monotonic()))
        if item == "faulty":
            raise LookupError(item)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.acted]


async def test_acts_in_order_and_never_early() -> None:
    diary, now = Diary(), time.monotonic()
    moments = {"c": now + 0.06, "a": now - 1.0, "b": now + 0.03, "d": now + 0.07}
    for name, when in moments.items():
        diary.agenda.put(when, name)
    await eventually(lambda: len(diary.acted) == 4)
    assert diary.names == ["a", "b", "c", "d"]
    assert all(at >= moments[name] for name, at in diary.acted)


async def test_earlier_item_rearms_the_timer() -> None:
    diary, now = Diary(), time.monotonic()
    diary.agenda.put(now + 60, "late")
    diary.agenda.put(now + 0.02, "soon")
    await eventually(lambda: diary.names == ["soon"])


async def test_replace_forgets_the_rest() -> None:
    diary, now = Diary(), time.monotonic()
    diary.agenda.put(now, "forgotten")
    diary.agenda.replace([(now + 0.02, "b"), (now, "a")])
    await eventually(lambda: diary.names == ["a", "b"])
    diary.agenda.put(now + 0.01, "c")
    diary.agenda.replace(())
    diary.agenda.put(time.monotonic() + 0.05, "d")
    await eventually(lambda: len(diary.acted) == 3)
    assert diary.names == ["a", "b", "d"]


async def test_others_get_their_turn_while_many_are_due() -> None:
    diary = Diary()
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        if len(diary.acted) < 1000:
            asyncio.get_running_loop().call_soon(turn)

    diary.agenda.replace((0.0, str(i)) for i in range(1000))
    turn()
    await eventually(lambda: len(diary.acted) == 1000)
    assert turns >= 10
    assert diary.names == [str(i) for i in range(1000)]


async def test_fault_of_one_item_does_not_stop_the_others() -> None:
    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context["exception"]))
    diary = Diary()
    diary.agenda.replace([(0.0, "faulty"), (1.0, "next")])
    await eventually(lambda: diary.names == ["faulty", "next"])
    assert [type(fault) for fault in faults] == [LookupError]


def test_deadlines_come_due_in_order() -> None:
    deadlines: Deadlines[str] = Deadlines(10.0)
    for second, name in enumerate("abcd"):
        deadlines.start(name, float(second))
    deadlines.stop("b")
    deadlines.stop("unknown")
    assert deadlines.take_due(9.9) == []
    assert deadlines.take_due(12.0) == ["a", "c"]
    assert "d" in deadlines
    assert len(deadlines) == 1
    deadlines.clear()
    assert deadlines.take_due(99.0) == []
