"""Which handlers run, when they end, and when they run again."""

import asyncio
import contextlib
import itertools
import logging

import pytest

from herdgate_gateway.leases.acts import Write, claim
from herdgate_gateway.leases.effects import NotOwnerError
from herdgate_gateway.leases.table import Done, Outcome
from herdgate_gateway.worker_kit.handlers import Connection
from tests.herdgate_gateway.leases.fleet import FLEET, until, virtually
from tests.herdgate_gateway.leases.links import LOST, UNHEARD, Fault, moment
from tests.herdgate_gateway.worker_kit.dialled import Diary, Solo, start, stop

SHARD, EPOCH = 2, 4
SOON_S = 1.0


async def solo(diary: Diary, **attributes: int) -> tuple[Solo, str]:
    """A worker that has one shard, with one connection in it."""
    it = await Solo.of(diary.handler())
    name = await it.fleet.connect(SHARD, **attributes)
    it.give(SHARD, EPOCH)
    return it, name


async def begun(diary: Diary, times: int = 1, within_s: float = SOON_S) -> None:
    await until(lambda: diary.count("begin") >= times, f"{times} begun", within_s=within_s)


async def ended(diary: Diary, times: int = 1, within_s: float = SOON_S) -> None:
    await until(lambda: diary.count("end") >= times, f"{times} ended", within_s=within_s)


@virtually
async def test_handler_runs_once_and_goes_on() -> None:
    diary = Diary()
    it, name = await solo(diary, epoch=3, last_seq=17)
    await asyncio.sleep(200)
    assert diary.running() == [name]
    assert diary.count("begin") == 1
    assert diary.count("on") == pytest.approx(200 / 0.05, rel=0.05)
    (connection,) = diary.connections
    assert (connection.id, connection.shard, connection.epoch, connection.last_seq) == (name, SHARD, EPOCH, 17)
    assert (await it.fleet.connection(name)).epoch == EPOCH
    assert it.duty.weights() == {SHARD: 1}
    assert it.duty.load() == 1


@virtually
async def test_attrs_are_those_of_the_row() -> None:
    diary = Diary()
    it, name = await solo(diary)
    await start(it.fleet, name, {"urls": ["a"], "live": True})
    await begun(diary)
    assert diary.connections[0].attrs == {"urls": ["a"], "live": True}


@virtually
async def test_what_is_stopped_does_not_run() -> None:
    diary = Diary()
    it, name = await solo(diary)
    await stop(it.fleet, name)
    await asyncio.sleep(130)
    assert diary.lines == []
    assert it.link.kinds()["claim"] == 0


@virtually
async def test_what_is_stopped_between_the_read_and_the_claim_does_not_run() -> None:
    diary = Diary()
    it = await Solo.of(diary.handler())
    name = await it.fleet.connect(SHARD)
    it.link.strike("claim", Fault(now=False, answers=False, takes_s=0.5))
    it.give(SHARD)
    await until(lambda: it.link.kinds()["claim"] == 1, "claimed", within_s=SOON_S)
    await stop(it.fleet, name)
    await asyncio.sleep(5)
    assert it.link.kinds()["claim"] == 2
    assert diary.lines == []
    assert it.duty.load() == 0


@pytest.mark.parametrize("is_told", [True, False])
def test_changes_of_want_are_followed(is_told: bool) -> None:
    @virtually
    async def play() -> None:
        diary = Diary()
        it, name = await solo(diary)
        within_s = SOON_S if is_told else 61.0
        for times in (1, 2):
            await begun(diary, times, within_s)
            await stop(it.fleet, name)
            if is_told:
                it.duty.wants_changed([SHARD, 999])
            await ended(diary, times, within_s)
            assert it.duty.weights() == {SHARD: 0}
            await start(it.fleet, name)
            if is_told:
                it.duty.wants_changed([SHARD])
        await begun(diary, 3, within_s)

    play()


@virtually
async def test_other_attrs_are_a_new_run_and_the_same_ones_are_not() -> None:
    diary = Diary()
    it, name = await solo(diary)
    given: list[dict[str, object]] = [{}, {"n": 1}, {"n": True}, {"n": [True]}]
    for number, attrs in enumerate(given, 1):
        await start(it.fleet, name, attrs)
        it.duty.wants_changed([SHARD])
        await begun(diary, number)
        await start(it.fleet, name, attrs)
        it.duty.wants_changed([SHARD])
        await asyncio.sleep(3)
    assert [connection.attrs for connection in diary.connections] == given
    assert diary.running() == [name]


@virtually
async def test_row_that_vanishes_ends_its_handler() -> None:
    diary = Diary()
    it, _ = await solo(diary)
    await begun(diary)
    it.fleet.table._partitions.clear()
    it.duty.wants_changed([SHARD])
    await ended(diary)
    assert diary.running() == []


@virtually
async def test_loss_cancels_at_once() -> None:
    diary = Diary()
    it, _ = await solo(diary)
    await begun(diary)
    lost_at = moment()
    it.take(SHARD)
    await ended(diary)
    assert moment() - lost_at < 0.05
    await asyncio.sleep(130)
    assert diary.running() == []
    assert it.duty.weights() == {}


@virtually
async def test_other_shards_are_not_touched_by_a_loss() -> None:
    diary = Diary()
    it, _ = await solo(diary)
    other = await it.fleet.connect(SHARD + 1)
    it.give(SHARD + 1)
    await begun(diary, 2)
    it.take(SHARD)
    await asyncio.sleep(130)
    assert diary.running() == [other]
    assert diary.count("begin") == 2


@virtually
async def test_shard_that_comes_back_is_served_with_its_new_epoch() -> None:
    diary = Diary()
    it, _ = await solo(diary)
    await begun(diary)
    it.take(SHARD)
    it.give(SHARD, EPOCH + 2)
    await begun(diary, 2)
    assert [line.epoch for line in diary.lines if line.what == "begin"] == [EPOCH, EPOCH + 2]
    assert [line.what for line in diary.lines if line.what != "on"] == ["begin", "end", "begin"]


@virtually
async def test_no_line_is_run_once_the_right_has_gone_though_nobody_has_said_so() -> None:
    diary = Diary()
    it, name = await solo(diary)
    await begun(diary)
    del it.epochs[SHARD]
    gone_at = moment()
    await asyncio.sleep(3)
    assert [line.what for line in diary.lines if line.at > gone_at] == ["end"]
    it.epochs[SHARD] = EPOCH  # the beat came through after all, and nothing was lost
    await begun(diary, 2, within_s=2.5)
    assert diary.running() == [name]


@virtually
async def test_claim_that_another_owner_refuses_runs_nothing() -> None:
    diary = Diary()
    it = await Solo.of(diary.handler())
    name = await it.fleet.connect(SHARD)
    assert isinstance(await it.fleet.table.write(claim(FLEET, name, EPOCH + 1)), Done)
    it.give(SHARD, EPOCH)
    await asyncio.sleep(10)
    assert diary.lines == []
    assert it.link.kinds()["claim"] <= 11, "it looks again once a second"


@pytest.mark.parametrize("fault", [LOST, UNHEARD])
def test_claim_that_nobody_knows_of_is_made_again(fault: Fault) -> None:
    @virtually
    async def play() -> None:
        diary = Diary()
        it = await Solo.of(diary.handler())
        it.link.strike("claim", fault, fault, fault)
        name = await it.fleet.connect(SHARD)
        it.give(SHARD)
        await begun(diary, within_s=4.0)
        await asyncio.sleep(70)
        assert it.link.kinds()["claim"] == 4
        assert diary.running() == [name]

    play()


@virtually
async def test_claims_that_nobody_knows_of_end_with_the_shard() -> None:
    diary = Diary()
    it = await Solo.of(diary.handler())
    it.link.strike_all("claim", LOST)
    await it.fleet.connect(SHARD)
    it.give(SHARD)
    await asyncio.sleep(5)
    it.take(SHARD)
    sent = it.link.kinds()["claim"]
    assert sent >= 5
    await asyncio.sleep(5)
    assert it.link.kinds()["claim"] == sent


@virtually
async def test_table_that_does_not_answer_is_asked_again_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    diary = Diary()
    it = await Solo.of(diary.handler())
    name = await it.fleet.connect(SHARD)
    it.fleet.nodes["w"].faults.away = True
    it.give(SHARD)
    await asyncio.sleep(10)
    it.fleet.nodes["w"].faults.away = False
    await begun(diary, within_s=3.0)
    assert diary.running() == [name]
    told = [record.getMessage() for record in caplog.records if record.name == "herdgate.dialling"]
    assert told == ["the lease table does not say what is wanted: refused"]


@virtually
async def test_claims_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = most = 0

    async def handle(connection: Connection) -> None:
        await asyncio.sleep(1_000)

    it = await Solo.of(handle)
    it.link.strike_all("claim", Fault(takes_s=0.4))
    write = it.link.write

    async def counted(what: Write) -> Outcome:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        try:
            return await write(what)
        finally:
            at_once -= 1

    monkeypatch.setattr(it.link, "write", counted)
    for number in range(300):
        await start(it.fleet, str(number))
    for shard in range(1_024):
        it.give(shard)
    await until(lambda: it.link.kinds()["claim"] == 300, "all are claimed", within_s=10)
    assert most == 64
    assert sum(it.duty.weights().values()) == 300


@virtually
async def test_checkpoints_are_kept_and_the_next_owner_goes_on_there() -> None:
    diary = Diary()
    it, name = await solo(diary)
    await begun(diary)
    for seq, far in ((3, 3), (7, 7), (5, 7), (7, 7)):
        await diary.connections[0].checkpoint(seq)
        assert diary.connections[0].last_seq == far
        assert (await it.fleet.connection(name)).last_seq == far
    it.take(SHARD)
    it.give(SHARD, EPOCH + 1)
    await begun(diary, 2)
    assert diary.connections[1].last_seq == 7
    with pytest.raises(NotOwnerError):
        await diary.connections[0].checkpoint(9)
    await diary.connections[1].checkpoint(8)
    assert (await it.fleet.connection(name)).last_seq == 8


@pytest.mark.parametrize("seq", [True, 1.5, "3", None])
def test_checkpoint_is_a_whole_number(seq: object) -> None:
    @virtually
    async def play() -> None:
        diary = Diary()
        await solo(diary)
        await begun(diary)
        with pytest.raises(TypeError, match="a checkpoint is a whole number, not"):
            await diary.connections[0].checkpoint(seq)  # type: ignore[arg-type]

    play()


@virtually
async def test_release_lets_a_handler_clean_up_and_write_before_the_shard_is_frozen() -> None:
    async def handle(connection: Connection) -> None:
        try:
            await asyncio.sleep(1_000)
        finally:
            await asyncio.sleep(2)
            await connection.checkpoint(42)

    it = await Solo.of(handle)
    name = await it.fleet.connect(SHARD)
    it.give(SHARD)
    await until(lambda: it.link.kinds()["claim"] == 1, "it runs", within_s=SOON_S)
    await asyncio.sleep(0.1)
    began = moment()
    await it.duty.release(SHARD)
    assert 2.0 <= moment() - began < 2.5
    assert (await it.fleet.connection(name)).last_seq == 42
    it.duty.wants_changed([SHARD])
    await asyncio.sleep(25)
    assert it.duty.weights() == {SHARD: 0}, "nothing begins in a shard that is on its way out"
    await asyncio.sleep(10)
    assert it.duty.weights() == {SHARD: 1}, "it was not given away after all"


@virtually
async def test_release_of_what_is_not_held_is_nothing() -> None:
    it = await Solo.of(Diary().handler())
    await it.duty.release(SHARD)
    assert it.duty.weights() == {}


class Stubborn:
    """A handler that shields itself from its end."""

    def __init__(self) -> None:
        self.lines: list[float] = []

    async def __call__(self, connection: Connection) -> None:
        while True:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.1)
            self.lines.append(moment())


@virtually
async def test_handler_that_swallows_its_cancellation_is_closed_and_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    handler = Stubborn()
    it = await Solo.of(handler)
    name = await it.fleet.connect(SHARD)
    it.give(SHARD)
    await until(lambda: bool(handler.lines), "it runs", within_s=SOON_S)
    began = moment()
    await it.duty.release(SHARD)
    assert moment() - began == pytest.approx(5.0, abs=0.1)
    lines = len(handler.lines)
    await asyncio.sleep(20)
    assert len(handler.lines) == lines
    assert [record.getMessage() for record in caplog.records] == [
        f"the handler of {name} did not end within 5 s, and is closed"
    ]
    assert it.duty.load() == 0


@virtually
async def test_handler_that_swallows_the_loss_of_its_shard_does_not_go_on() -> None:
    handler = Stubborn()
    it = await Solo.of(handler)
    await it.fleet.connect(SHARD)
    it.give(SHARD)
    await until(lambda: len(handler.lines) >= 3, "it runs", within_s=SOON_S)
    lost_at = moment()
    it.take(SHARD)
    await asyncio.sleep(20)
    assert [at for at in handler.lines if at > lost_at] == []
    assert len([at for at in handler.lines if at == lost_at]) <= 1, "the step that swallows is its last"
    assert it.duty.load() == 0


@virtually
async def test_clean_up_ends_at_once_when_the_shard_is_lost_meanwhile() -> None:
    lines: list[float] = []

    async def handle(connection: Connection) -> None:
        try:
            await asyncio.sleep(1_000)
        finally:
            while True:
                lines.append(moment())
                await asyncio.sleep(0.1)

    it = await Solo.of(handle)
    await it.fleet.connect(SHARD)
    it.give(SHARD)
    await until(lambda: it.link.kinds()["claim"] == 1, "it runs", within_s=SOON_S)
    await asyncio.sleep(0.1)
    releasing = asyncio.ensure_future(it.duty.release(SHARD))
    await asyncio.sleep(1.05)
    assert len(lines) >= 10, "it cleans up"
    lost_at = moment()
    it.take(SHARD)
    await releasing
    assert moment() - lost_at < 0.01
    assert max(lines) <= lost_at


@virtually
async def test_next_run_waits_for_the_last_ones_clean_up() -> None:
    lines: list[tuple[str, object]] = []

    async def handle(connection: Connection) -> None:
        lines.append(("begin", connection.attrs))
        try:
            await asyncio.sleep(1_000)
        finally:
            try:
                await asyncio.sleep(3)
            finally:
                lines.append(("end", connection.attrs))

    it = await Solo.of(handle)
    name = await it.fleet.connect(SHARD)
    it.give(SHARD)
    for number in range(4):
        await start(it.fleet, name, {"n": number})
        it.duty.wants_changed([SHARD])
        await asyncio.sleep(0.7)
    assert [what for what, _ in lines] == ["begin"], "it has not ended yet"
    it.take(SHARD)
    it.give(SHARD, EPOCH + 1)
    it.take(SHARD)
    it.give(SHARD, EPOCH + 2)
    await asyncio.sleep(15)
    assert len(lines) >= 3
    assert [what for what, _ in lines] == [("begin", "end")[number % 2] for number in range(len(lines))]
    assert lines[-1] == ("begin", {"n": 3})


@virtually
async def test_handler_that_returns_runs_again_with_where_it_has_come(caplog: pytest.LogCaptureFixture) -> None:
    runs: list[tuple[float, int | None]] = []

    async def handle(connection: Connection) -> None:
        runs.append((moment(), connection.last_seq))
        await connection.checkpoint((connection.last_seq or 0) + 1)

    it = await Solo.of(handle)
    await it.fleet.connect(SHARD)
    it.give(SHARD)
    await asyncio.sleep(600)
    assert [seq for _, seq in runs] == [None, *range(1, len(runs))]
    gaps = [after - before for (before, _), (after, _) in itertools.pairwise(runs)]
    assert 0.5 <= gaps[0] <= 1.2
    assert max(gaps) <= 60.2
    assert 10 <= len(runs) <= 60, "it waits longer each time"
    assert caplog.records == []


@virtually
async def test_handler_that_raises_runs_again_and_each_kind_of_error_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runs = 0

    async def handle(connection: Connection) -> None:
        nonlocal runs
        runs += 1
        if runs % 3 == 0:
            waiting = asyncio.ensure_future(asyncio.sleep(1))
            waiting.cancel()
            await waiting
        raise (OSError("away") if runs % 3 == 1 else LookupError("what"))

    it = await Solo.of(handle)
    name = await it.fleet.connect(SHARD)
    it.give(SHARD)
    await until(lambda: runs >= 9, "it runs again", within_s=600)
    assert [record.getMessage() for record in caplog.records] == [
        f"the handler of {name} failed: OSError('away')",
        f"the handler of {name} failed: LookupError('what')",
        f"the handler of {name} failed: CancelledError()",
    ]
    assert all(record.exc_info for record in caplog.records)


@virtually
async def test_handler_that_does_not_take_a_connection_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def handle() -> None: ...

    it = await Solo.of(handle)  # type: ignore[arg-type]
    await it.fleet.connect(SHARD)
    it.give(SHARD)
    await until(lambda: bool(caplog.records), "it is told", within_s=SOON_S)
    assert "takes 0 positional arguments but 1 was given" in caplog.records[0].getMessage()
    assert caplog.records[0].levelno == logging.ERROR


@virtually
async def test_closing_ends_all_that_runs() -> None:
    diary = Diary()
    it, _ = await solo(diary)
    await it.fleet.connect(SHARD + 1)
    it.give(SHARD + 1)
    await begun(diary, 2)
    await it.duty.aclose()
    assert diary.running() == []
    await asyncio.sleep(130)
    assert diary.count("begin") == 2
