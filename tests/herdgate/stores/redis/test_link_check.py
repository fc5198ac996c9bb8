"""The self-test at start-up: a Redis that cannot keep the state of a fleet is told in one line."""

import pytest

from herdgate import ConfigurationError
from herdgate.stores.redis.errors import LinkDown
from herdgate.stores.redis.link import Link
from tests.herdgate.stores.redis.links import KEY, count, fake_redis, linked, until
from tests.redis_servers import RedisServer, redis_server


async def fault_of(link: Link) -> str:
    """What the check tells; one line."""
    with pytest.raises(ConfigurationError) as failed:
        await link.check(KEY)
    assert "\n" not in str(failed.value)
    return str(failed.value)


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-random", "volatile-lfu", "volatile-ttl"])
async def test_policy_that_drops_keys_is_refused(redis: RedisServer, policy: str) -> None:
    redis.command("CONFIG", "SET", "maxmemory", "100mb")
    redis.command("CONFIG", "SET", "maxmemory-policy", policy)
    async with linked(redis.url, checked=False) as link:
        assert await fault_of(link) == (
            f"redis: got maxmemory-policy {policy} at 127.0.0.1:{redis.port}; set maxmemory-policy noeviction; "
            "until then it is used all the same, and may drop the state of the fleet"
        )
        assert link.is_up


@pytest.mark.parametrize(("limit", "policy"), [("100mb", "noeviction"), ("0", "allkeys-lru")])
async def test_redis_that_drops_nothing_is_taken(redis: RedisServer, limit: str, policy: str) -> None:
    redis.command("CONFIG", "SET", "maxmemory", limit)
    redis.command("CONFIG", "SET", "maxmemory-policy", policy)
    async with linked(redis.url) as link:
        assert link.is_up
        assert link.calls == 0


async def test_policy_is_found_where_config_is_forbidden(redis: RedisServer) -> None:
    redis.command("CONFIG", "SET", "maxmemory", "100mb")
    redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    redis.command("ACL", "SETUSER", "default", "-config")
    async with linked(redis.url, checked=False) as link:
        assert "allkeys-lru" in await fault_of(link)


async def test_what_may_not_be_asked_is_taken_to_be_in_order(redis: RedisServer) -> None:
    redis.command(
        "ACL",
        "SETUSER",
        "least",
        "on",
        ">s3cret",
        "~{herdgate:test}*",
        "+eval",
        "+evalsha",
        "+time",
        "+set",
        "+del",
        "+incr",
    )
    async with linked(f"redis://least:s3cret@127.0.0.1:{redis.port}") as link:
        assert await count(link) == [b"x", 1]
        redis.restart()
        await until(lambda: not link.is_up, "gone")


@pytest.mark.parametrize("denied", ["-eval", "-evalsha", "-time"])
async def test_missing_permission_is_named_with_what_is_needed(redis: RedisServer, denied: str) -> None:
    redis.command("ACL", "SETUSER", "default", denied)
    async with linked(redis.url, checked=False) as link:
        told = await fault_of(link)
    assert told.startswith(f"redis: got a user without permission at 127.0.0.1:{redis.port}; ")
    assert "allow EVAL, EVALSHA and TIME" in told


async def test_keys_that_are_not_allowed_are_a_missing_permission(redis: RedisServer) -> None:
    redis.command("ACL", "SETUSER", "default", "resetkeys", "~other*")
    async with linked(redis.url, checked=False) as link:
        assert "{herdgate:<fleet>}" in await fault_of(link)


async def test_replica_is_told_with_the_way_out() -> None:
    with redis_server("--replicaof", "127.0.0.1 1") as replica:
        async with linked(replica.url, checked=False) as link:
            with pytest.raises(LinkDown, match=r"a read-only replica: name the primary, or use redis\+sentinel://"):
                await link.check()
            replica.command("REPLICAOF", "NO", "ONE")
            await until(lambda: link.is_up, "it has become a primary")


async def test_node_of_a_cluster_needs_the_url_of_a_cluster() -> None:
    with redis_server("--cluster-enabled", "yes", "--cluster-port", "0", "--bind", "127.0.0.1") as node:
        async with linked(node.url, checked=False) as link:
            given = f"a node of a cluster at 127.0.0.1:{node.port}"
            way_out = "write redis+cluster://host:port (rediss+cluster:// with TLS)"
            assert await fault_of(link) == f"redis: got {given}; {way_out}"


async def test_redis_before_5_is_too_old() -> None:
    def answer(words: list[bytes]) -> bytes:
        if words[0] == b"INFO":
            return b"$19\r\nredis_version:4.0.9\r\n"
        if words[0] == b"CONFIG":
            return b"*4\r\n$9\r\nmaxmemory\r\n$1\r\n0\r\n$16\r\nmaxmemory-policy\r\n$10\r\nnoeviction\r\n"
        return b"-ERR Error running script: Write commands not allowed after non deterministic commands.\r\n"

    async with fake_redis(answer) as port, linked(f"redis://127.0.0.1:{port}", checked=False) as link:
        told = await fault_of(link)
    way_out = "use 5 or later: scripts there may write after they asked the time"
    assert told == f"redis: got Redis 4.0.9 at 127.0.0.1:{port}; {way_out}"


async def test_check_leaves_no_key_behind_and_can_be_run_again(redis: RedisServer) -> None:
    async with linked(redis.url) as link:
        await link.check(KEY)
        await count(link)
        await link.check(KEY)
        assert redis.command("DBSIZE") == 1
        assert await count(link) == [b"x", 2]
