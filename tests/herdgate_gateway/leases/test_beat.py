"""Beats renew a right, each from the moment before it was sent, and only while the process can act."""

import asyncio
from itertools import pairwise
from math import inf

import pytest

from herdgate_gateway.leases.beat import Beats
from herdgate_gateway.leases.life import Life
from tests.herdgate_gateway.leases.fleet import Fleet, Node, until, virtually
from tests.herdgate_gateway.leases.links import LOST, UNHEARD, Fault, moment

L = 3.0


class Running:
    """Beats of one life, and what they said.

    Attributes:
        renewed: when.
        lost: when.
    """

    def __init__(self, node: Node, life: Life) -> None:
        self.node, self.life, self.beats = node, life, node.beats(life)
        self.renewed, self.lost = list[float](), list[float]()
        node.machine.start(self.beats.run(lambda: self.renewed.append(moment()), lambda: self.lost.append(moment())))


async def running() -> tuple[Fleet, Running]:
    fleet = Fleet()
    node = fleet.node("w")
    return fleet, Running(node, await node.begin())


@virtually
async def test_first_beat_gives_the_right_and_others_follow_every_second() -> None:
    fleet, it = await running()
    assert it.life.right.ends_at == -inf
    await asyncio.sleep(10.5)
    sent = it.node.link.moments("beat")
    assert len(sent) == 11
    assert all(0.99 < b - a < 1.01 for a, b in pairwise(sent))
    assert it.life.right.ends_at == pytest.approx(sent[-1] + 0.9 * L)
    assert len(it.renewed) == 11
    assert it.beats.trouble_at is None
    row = await fleet.worker("w")
    assert row is not None
    assert row.hb == 11


@virtually
async def test_beat_carries_the_load_of_that_moment() -> None:
    fleet = Fleet()
    node, loads = fleet.node("w"), iter([7, 9])
    beats = Beats(await node.begin(), beat_s=1.0, load=lambda: next(loads), is_awake=lambda: True)
    node.machine.start(beats.run(lambda: None, lambda: None))
    for load in (7, 9):
        await asyncio.sleep(0.5)
        row = await fleet.worker("w")
        assert row is not None
        assert row.load == load
        await asyncio.sleep(0.45)
    await node.kill()


@virtually
async def test_right_of_a_beat_whose_answer_is_late_is_short() -> None:
    _, it = await running()
    it.node.link.strike("beat", Fault(takes_s=2.0))
    sent_at = moment()
    await until(lambda: bool(it.renewed), "the first", within_s=3.0)
    assert moment() > sent_at + 2.0
    assert it.life.right.ends_at == pytest.approx(sent_at + 0.9 * L, abs=0.01)


@virtually
async def test_beat_that_is_answered_after_its_right_is_over_gives_none_and_the_next_one_comes_soon() -> None:
    _, it = await running()
    it.node.link.strike("beat", Fault(takes_s=5.0))
    await until(lambda: bool(it.renewed), "the first", within_s=6.0)
    assert not it.life.may_act()
    await until(it.life.may_act, "the second", within_s=0.2)


@pytest.mark.parametrize("fault", [LOST, UNHEARD])
def test_beat_that_nobody_knows_of_gives_no_right_and_is_tried_again_soon(fault: Fault) -> None:
    @virtually
    async def play() -> None:
        _, it = await running()
        it.node.link.strike("beat", fault)
        await asyncio.sleep(0.05)
        assert not it.life.may_act()
        await until(it.life.may_act, "the second one", within_s=0.7)
        first, second = it.node.link.moments("beat")
        assert second - first < 0.65
        assert it.life.right.ends_at == pytest.approx(second + 0.9 * L)
        assert it.lost == []

    play()


@virtually
async def test_beat_that_was_refused_ends_this_life_at_once() -> None:
    fleet, it = await running()
    await until(it.life.may_act, "the first", within_s=1.0)
    await fleet.declare_dead("w", it.life.row.inc)
    await until(lambda: bool(it.lost), "it is told", within_s=1.1)
    assert it.life.right.is_lost
    assert not it.life.may_act()
    sent = it.node.link.kinds()["beat"]
    await asyncio.sleep(10.0)
    assert it.node.link.kinds()["beat"] == sent
    assert len(it.lost) == 1


@virtually
async def test_none_is_sent_while_the_process_cannot_act() -> None:
    _, it = await running()
    await asyncio.sleep(3.5)
    it.node.is_awake = False
    sent = it.node.link.kinds()["beat"]
    await asyncio.sleep(5.0)
    assert it.node.link.kinds()["beat"] == sent
    assert not it.life.may_act()
    it.node.is_awake = True
    await until(it.life.may_act, "it beats again", within_s=0.2)


@pytest.mark.parametrize("fault", [LOST, UNHEARD, Fault(takes_s=0.6)])
def test_beats_that_fail_or_are_late_are_trouble(fault: Fault) -> None:
    @virtually
    async def play() -> None:
        _, it = await running()
        it.node.link.strike("beat", Fault(takes_s=0.4), fault)
        await asyncio.sleep(5.0)
        assert it.beats.trouble_at == pytest.approx(it.node.link.moments("beat")[1])

    play()


@virtually
async def test_trouble_is_told_by_the_clock_of_its_own_machine() -> None:
    fleet = Fleet()
    node = fleet.node("w", offset_s=-3_600.0, pace=1.06)
    it = Running(node, await node.begin())
    node.link.strike("beat", LOST)
    await asyncio.sleep(2.0)
    assert it.beats.trouble_at == pytest.approx(-3_600.0, abs=0.1)
    assert it.life.may_act()
