"""What an owner does to connections: nothing of a stale one is accepted."""

import asyncio

import pytest

from herdgate_gateway.leases.acts import checkpoint, claim
from herdgate_gateway.leases.effects import Claimed, Effects, NotOwnerError, UnknownOutcomeError
from herdgate_gateway.leases.life import Life
from herdgate_gateway.leases.table import Done
from tests.herdgate_gateway.leases.fleet import FLEET, Fleet, beat_once, virtually
from tests.herdgate_gateway.leases.links import LOST, UNHEARD, Fault, Link, late

SHARD, EPOCH = 2, 4


class Serving:
    """A life that owns one shard, and one connection in it."""

    def __init__(self, fleet: Fleet, life: Life, link: Link, name: str) -> None:
        self.fleet, self.life, self.link, self.name = fleet, life, link, name
        self.epochs = {SHARD: EPOCH}
        self.overtaken: list[tuple[int, int]] = []
        self.effects = Effects(life, self.epochs.get, lambda shard, epoch: self.overtaken.append((shard, epoch)))

    async def successor_claims(self) -> None:
        assert isinstance(await self.fleet.table.write(claim(FLEET, self.name, EPOCH + 1)), Done)

    async def last_seq(self) -> int | None:
        return (await self.fleet.connection(self.name)).last_seq


async def serving(**attributes: int) -> Serving:
    fleet = Fleet()
    life = await fleet.node("w").live()
    return Serving(fleet, life, fleet.nodes["w"].link, await fleet.connect(SHARD, **attributes))


@pytest.mark.parametrize(
    ("attributes", "last_seq"),
    [({}, None), ({"epoch": 3, "last_seq": 17}, 17), ({"epoch": EPOCH}, None), ({"last_seq": 0}, 0)],
)
def test_claim_says_where_to_go_on(attributes: dict[str, int], last_seq: int | None) -> None:
    @virtually
    async def play() -> None:
        it = await serving(**attributes)
        assert await it.effects.claim(it.name) == Claimed(EPOCH, last_seq)
        assert (await it.fleet.connection(it.name)).epoch == EPOCH

    play()


@virtually
async def test_checkpoint_is_how_far_it_has_come() -> None:
    it = await serving()
    await it.effects.claim(it.name)
    for seq in (1, 5, 5, 3):
        await it.effects.checkpoint(it.name, EPOCH, seq)
    assert await it.last_seq() == 5, "what is not newer is no error, and changes nothing"


@virtually
async def test_connection_of_a_shard_that_is_not_held_is_refused_without_asking_the_table() -> None:
    it = await serving()
    it.epochs.clear()
    with pytest.raises(NotOwnerError, match=f"'{it.name}' is not in a shard of this worker"):
        await it.effects.claim(it.name)
    with pytest.raises(NotOwnerError):
        await it.effects.checkpoint(it.name, EPOCH, 1)
    assert it.link.kinds()["claim"] == it.link.kinds()["checkpoint"] == 0


@virtually
async def test_nothing_is_sent_without_a_right() -> None:
    it = await serving()
    await it.effects.claim(it.name)
    await asyncio.sleep(3.0)
    with pytest.raises(NotOwnerError):
        await it.effects.claim(it.name)
    with pytest.raises(NotOwnerError):
        await it.effects.checkpoint(it.name, EPOCH, 1)
    assert it.link.kinds()["claim"] == 1
    assert it.link.kinds()["checkpoint"] == 0


def never(shard: int, epoch: int) -> None:
    raise AssertionError(f"nobody has gone beyond {epoch} in {shard}")


@virtually
async def test_who_is_refused_for_a_later_owner_says_which_ownership_is_over() -> None:
    it = await serving()
    await it.successor_claims()
    with pytest.raises(NotOwnerError):
        await it.effects.claim(it.name)

    assert it.overtaken == [(SHARD, EPOCH)]


@virtually
async def test_connection_that_does_not_exist_is_refused() -> None:
    it = await serving()
    it.epochs = dict.fromkeys(range(1024), EPOCH)
    effects = Effects(it.life, it.epochs.get, never)
    with pytest.raises(NotOwnerError, match="there is none of that name"):
        await effects.claim("nobody made it")


@virtually
async def test_successor_has_claimed_it() -> None:
    it = await serving()
    await it.effects.claim(it.name)
    await it.effects.checkpoint(it.name, EPOCH, 1)
    await it.successor_claims()
    with pytest.raises(NotOwnerError, match="another worker's"):
        await it.effects.claim(it.name)
    for seq in (1, 2):
        with pytest.raises(NotOwnerError):
            await it.effects.checkpoint(it.name, EPOCH, seq)
    assert await it.last_seq() == 1


@virtually
async def test_shard_that_changed_hands_since_the_claim_is_another_ownership() -> None:
    it = await serving()
    await it.effects.claim(it.name)
    it.epochs[SHARD] = EPOCH + 2
    with pytest.raises(NotOwnerError, match="has changed hands"):
        await it.effects.checkpoint(it.name, EPOCH, 1)
    assert (await it.effects.claim(it.name)).epoch == EPOCH + 2


@virtually
async def test_claim_whose_answer_comes_when_the_shard_has_changed_hands_serves_nothing() -> None:
    it = await serving()
    it.link.strike("claim", Fault(takes_s=0.2))
    asyncio.get_running_loop().call_later(0.1, it.epochs.update, {SHARD: EPOCH + 2})
    with pytest.raises(NotOwnerError, match="has changed hands"):
        await it.effects.claim(it.name)


@virtually
async def test_claim_whose_answer_comes_after_the_right_is_over_serves_nothing() -> None:
    it = await serving()
    it.link.strike("claim", Fault(takes_s=3.0))
    with pytest.raises(NotOwnerError):
        await it.effects.claim(it.name)


@pytest.mark.parametrize("fault", [LOST, UNHEARD])
def test_outcome_nobody_knows_of_is_told_as_that_and_may_be_tried_again(fault: Fault) -> None:
    @virtually
    async def play() -> None:
        it = await serving()
        it.link.strike("claim", fault)
        it.link.strike("checkpoint", fault)
        with pytest.raises(UnknownOutcomeError, match="nobody knows"):
            await it.effects.claim(it.name)
        await it.effects.claim(it.name)
        with pytest.raises(UnknownOutcomeError):
            await it.effects.checkpoint(it.name, EPOCH, 9)
        await it.effects.checkpoint(it.name, EPOCH, 9)
        assert await it.last_seq() == 9

    play()


@virtually
async def test_checkpoint_that_comes_late_is_not_accepted_after_the_successors_claim() -> None:
    it = await serving()
    await it.effects.claim(it.name)
    it.link.strike("checkpoint", late(5.0))
    with pytest.raises(UnknownOutcomeError):
        await it.effects.checkpoint(it.name, EPOCH, 9)
    await it.successor_claims()
    await asyncio.sleep(10.0)
    assert await it.last_seq() is None


@virtually
async def test_checkpoint_that_comes_late_does_not_turn_back_a_newer_one() -> None:
    it = await serving()
    await it.effects.claim(it.name)
    it.link.strike("checkpoint", late(1.0))
    with pytest.raises(UnknownOutcomeError):
        await it.effects.checkpoint(it.name, EPOCH, 3)
    await beat_once(it.life)
    await it.effects.checkpoint(it.name, EPOCH, 7)
    await asyncio.sleep(2.0)
    assert await it.last_seq() == 7


@virtually
async def test_checkpoint_of_a_connection_that_was_made_anew_is_refused() -> None:
    it = await serving()
    assert not isinstance(await it.fleet.table.write(checkpoint(FLEET, it.name, EPOCH, 1)), Done)
    with pytest.raises(NotOwnerError):
        await it.effects.checkpoint(it.name, EPOCH, 1)
