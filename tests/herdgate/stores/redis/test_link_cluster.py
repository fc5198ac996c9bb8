"""A link to a cluster: to the node that serves the slot of the fleet, wherever that goes."""

from collections.abc import Iterator, Sequence

import pytest

from herdgate.stores.redis.errors import LinkDown
from tests.herdgate.stores.redis.links import KEY, count, failing, linked, until
from tests.redis_servers import RedisServer, redis_cluster

SLOT_COUNT = 16_384

pytestmark = pytest.mark.xdist_group("redis-cluster")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Sequence[RedisServer]]:
    """Three nodes; tests put back what they move."""
    with redis_cluster() as nodes:
        yield nodes


def owner_of_key(nodes: Sequence[RedisServer]) -> int:
    """Which node serves the slot of the fleet."""
    slot = nodes[0].command("CLUSTER", "KEYSLOT", KEY)
    return int(slot) * len(nodes) // SLOT_COUNT


def node_id(node: RedisServer) -> str:
    """The name of a node in its cluster."""
    return bytes(node.command("CLUSTER", "MYID")).decode()


def begin_move(slot: int, old: RedisServer, new: RedisServer) -> None:
    """From here on the old node serves the keys it still has, and sends for others to the new one (ASK)."""
    new.command("CLUSTER", "SETSLOT", slot, "IMPORTING", node_id(old))
    old.command("CLUSTER", "SETSLOT", slot, "MIGRATING", node_id(new))


def end_move(slot: int, new: RedisServer, nodes: Sequence[RedisServer]) -> None:
    """From here on the new node serves the slot, and the others know (MOVED)."""
    for node in (new, *nodes):
        node.command("CLUSTER", "SETSLOT", slot, "NODE", node_id(new))


@pytest.mark.parametrize("seed", range(3))
async def test_cluster_is_entered_by_any_node(cluster: Sequence[RedisServer], seed: int) -> None:
    for node in cluster:
        node.flush()
    async with linked(f"redis+cluster://127.0.0.1:{cluster[seed].port}") as link:
        assert await count(link) == [b"x", 1]
        assert await count(link) == [b"x", 2]
        assert link.calls == 3
    assert cluster[owner_of_key(cluster)].command("DBSIZE") == 1


async def test_first_call_finds_the_slot_when_the_check_named_another(cluster: Sequence[RedisServer]) -> None:
    owner = cluster[owner_of_key(cluster)]
    owner.command("FLUSHALL")
    async with linked(f"redis+cluster://127.0.0.1:1,127.0.0.1:{cluster[0].port}", checked=False) as link:
        await link.check("{a}")  # on the third node
        await link.check("{herdgate:other}")
        assert await count(link) == [b"x", 1]
        assert await count(link) == [b"x", 2]


async def test_slot_that_moves_is_followed(cluster: Sequence[RedisServer]) -> None:
    slot = cluster[0].command("CLUSTER", "KEYSLOT", KEY)
    at = owner_of_key(cluster)
    old, new = cluster[at], cluster[at - 1]
    old.command("FLUSHALL")
    async with linked(f"redis+cluster://127.0.0.1:{cluster[0].port}", deadline_s=0.5) as link:
        assert await count(link) == [b"x", 1]
        begin_move(slot, old, new)
        assert await count(link, "still") == [b"still", 2]
        old.command("MIGRATE", "127.0.0.1", new.port, KEY, 0, 1000)
        assert await count(link, "asked") == [b"asked", 3]
        end_move(slot, new, cluster)
        assert await count(link, "moved") == [b"moved", 4]
        assert await count(link) == [b"x", 5]
        begin_move(slot, new, old)
        new.command("DEL", KEY)
        end_move(slot, old, cluster)
        assert await count(link, "back") == [b"back", 1]


async def test_node_that_dies_and_returns_is_found_again(cluster: Sequence[RedisServer]) -> None:
    owner = cluster[owner_of_key(cluster)]
    seeds = ",".join(f"127.0.0.1:{node.port}" for node in cluster)
    async with linked(f"redis+cluster://{seeds}") as link:
        await count(link)
        owner.kill()
        await until(lambda: not link.is_up, "gone")
        _, took_s = await failing(link, LinkDown)
        assert took_s < 0.05, "it waits for no deadline"
        owner.start()
        await until(lambda: link.is_up, "found again")
        assert await count(link) == [b"x", 1]


async def test_cluster_url_for_a_single_server_is_told(redis: RedisServer) -> None:
    async with linked(f"redis+cluster://127.0.0.1:{redis.port}", checked=False) as link:
        with pytest.raises(LinkDown, match="cluster support disabled"):
            await link.check()
