"""What is open, oldest first; and who was cut off of late."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from herdgate_gateway.drain import sockets
from herdgate_gateway.drain.sockets import Cuts, OpenSockets
from herdgate_gateway.drain.status import DrainStatus, sum_of
from tests.herdgate_gateway.gateways import until


@dataclass(frozen=True)
class Still:
    """A socket that only has an age."""

    age_s: float
    is_leaving: bool = False
    invite: None = None

    def close(self, code: int, reason: str, message: str | None = None) -> None:
        raise AssertionError("nobody closes it")

    def abort(self) -> None:
        raise AssertionError("nobody cuts it")


def test_sockets_of_both_relays_come_by_age() -> None:
    spliced, bridged = [Still(9), Still(5), Still(1)], [Still(7), Still(5.5)]
    both = OpenSockets(lambda: spliced, lambda: bridged)
    assert [socket.age_s for socket in both] == [9, 7, 5.5, 5, 1]
    assert len(both) == 5
    spliced.clear()
    assert [socket.age_s for socket in both] == [7, 5.5]


def test_cuts_are_forgotten_after_half_a_minute() -> None:
    cuts = Cuts(lambda: 4)
    for moment in (0.0, 0.2, 10.0, 10.9):
        cuts.note(moment)
    assert [cuts.recent(now) for now in (11.0, 30.0, 30.5, 41.0)] == [4, 4, 2, 0]


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is said of masses, which is without delay here."""
    monkeypatch.setattr(sockets, "MASS_S", 0.0)
    heard = _Heard()
    logger = logging.getLogger("herdgate.gateway")  # which passes nothing on, once a server has set up its log
    logger.addHandler(heard)
    try:
        yield heard.lines
    finally:
        logger.removeHandler(heard)


class _Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def lose(open_before: int, moments: list[float]) -> None:
    cuts = Cuts(lambda: open_before)
    for moment in moments:
        cuts.note(moment)


async def test_half_of_all_within_two_seconds_are_a_mass_and_said_once(said: list[str]) -> None:
    lose(400, [9.9] * 120 + [10.5] * 180)
    await until(lambda: bool(said), "it is said")
    (line,) = said
    assert line.startswith("mass_disconnect: 300 of 400 clients were gone at once, without a close frame")


async def test_few_and_a_small_part_and_one_after_the_other_are_no_mass(said: list[str]) -> None:
    lose(99, [10.0] * 99)
    lose(400, [10.0] * 199)
    lose(200, [second for second in range(0, 100, 3) for _ in range(20)])
    lose(1_000, [10.0] * 500)
    await until(lambda: bool(said), "the last one is")
    assert [line.split()[1:4] for line in said] == [["500", "of", "1000"]]


async def test_each_mass_is_said(said: list[str]) -> None:
    cuts = Cuts(lambda: 100)
    for moment in (10.0, 60.0):
        said.clear()
        for _ in range(100):
            cuts.note(moment)
        await until(lambda: len(said) == 1, "it is said")


def test_processes_are_as_far_as_the_last_of_them() -> None:
    one = DrainStatus("drained", "call", 5.0, 0.0, 0)
    other = DrainStatus("draining", "call", 4.0, 20.0, 7)
    assert sum_of([one, other]) == DrainStatus("draining", "call", 5.0, 20.0, 7)
    assert sum_of([]) is None
