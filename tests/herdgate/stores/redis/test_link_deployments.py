"""Deployments of one server at a time: TLS, a Unix socket, passwords and databases, sentinels."""

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from redis.exceptions import ResponseError

from herdgate.stores.redis.errors import LinkDown
from tests.herdgate.stores.redis.links import count, failing, linked, until
from tests.redis_servers import RedisServer, Sentinel, redis_server, redis_with_sentinel, redis_with_tls


async def test_tls_with_the_authority_of_the_url() -> None:
    with redis_with_tls(trustme.CA()) as redis:
        async with linked(redis.url) as link:
            assert await count(link) == [b"x", 1]


async def test_tls_of_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(tmp_path / "other.pem")
    with redis_with_tls(trustme.CA()) as redis:
        url = f"rediss://127.0.0.1:{redis.port}?ssl_ca_certs={tmp_path / 'other.pem'}"
        async with linked(url, checked=False) as link:
            with pytest.raises(LinkDown, match="certificate verify failed") as failed:
                await link.check()
    assert isinstance(failed.value.__cause__, Exception | ssl.SSLError)


async def test_unix_socket(tmp_path: Path) -> None:
    with redis_server("--unixsocket", str(tmp_path / "redis.sock")):
        async with linked(f"unix://{tmp_path}/redis.sock?db=3") as link:
            assert await count(link) == [b"x", 1]
            assert link.where == f"unix://{tmp_path}/redis.sock"


async def test_missing_unix_socket_is_down(tmp_path: Path) -> None:
    async with linked(f"unix://{tmp_path}/none.sock", checked=False) as link:
        with pytest.raises(LinkDown, match="No such file"):
            await link.check()


async def test_user_password_and_database() -> None:
    with redis_server(password="all") as redis:
        redis.command("ACL", "SETUSER", "gate", "on", ">p@ss/word", "~*", "+@all")
        async with linked(f"redis://gate:p%40ss%2Fword@127.0.0.1:{redis.port}/5") as link:
            assert await count(link) == [b"x", 1]
        assert redis.command("DBSIZE") == 0
        assert "db5" in redis.command("INFO", "keyspace")


@pytest.fixture
def watched() -> Iterator[tuple[RedisServer, RedisServer, Sentinel]]:
    """A primary, its replica, their sentinel."""
    with redis_with_sentinel() as servers:
        yield servers


async def test_sentinel_leads_to_the_new_primary_when_the_old_one_dies(
    watched: tuple[RedisServer, RedisServer, Sentinel],
) -> None:
    primary, replica, sentinel = watched
    async with linked(sentinel.url) as link:
        assert await count(link) == [b"x", 1]
        await until(lambda: replica.command("DBSIZE") == 1, "replicated")
        primary.kill()
        await until(lambda: not link.is_up, "gone")
        await until(lambda: link.is_up, "failed over")
        assert await count(link) == [b"x", 2]
        assert sentinel.primary_port() == replica.port


def fails_over(sentinel: Sentinel) -> bool:
    """Ask for a failover; False while the sentinel has not seen enough of the replica."""
    try:
        sentinel.command("SENTINEL", "FAILOVER", "fleet")
    except ResponseError as error:
        assert "NOGOODSLAVE" in str(error)  # noqa: PT017 - any other error is one
        return False
    return True


async def test_primary_that_was_demoted_is_left_for_the_new_one(
    watched: tuple[RedisServer, RedisServer, Sentinel],
) -> None:
    primary, replica, sentinel = watched
    async with linked(sentinel.url) as link:
        assert await count(link) == [b"x", 1]
        await until(lambda: replica.command("DBSIZE") == 1, "replicated")
        await until(lambda: fails_over(sentinel), "the sentinel finds the replica good", within_s=15)
        await until(lambda: primary.command("ROLE")[0] == b"slave", "demoted")
        if link.is_up:  # the failover has not cut the connection
            await failing(link, LinkDown)
        await until(lambda: link.is_up, "at the new primary")
        assert await count(link) == [b"x", 2]
        assert replica.command("ROLE")[0] == b"master"


async def test_sentinels_that_are_down_are_passed_over(watched: tuple[RedisServer, RedisServer, Sentinel]) -> None:
    _, _, sentinel = watched
    url = f"redis+sentinel://127.0.0.1:1,127.0.0.1:{sentinel.port}/fleet/2"
    async with linked(url) as link:
        assert await count(link) == [b"x", 1]


async def test_unknown_service_is_named(watched: tuple[RedisServer, RedisServer, Sentinel]) -> None:
    _, _, sentinel = watched
    async with linked(f"redis+sentinel://127.0.0.1:{sentinel.port}/other", checked=False) as link:
        with pytest.raises(LinkDown, match=f"sentinel 127.0.0.1:{sentinel.port} knows no other"):
            await link.check()


async def test_sentinel_that_asks_for_no_password_gets_none() -> None:
    with redis_with_sentinel() as (primary, replica, sentinel):
        for server in (primary, replica):
            server.command("CONFIG", "SET", "requirepass", "s3cret")
            server.password = "s3cret"
        url = f"redis+sentinel://:s3cret@127.0.0.1:{sentinel.port}/fleet"
        async with linked(url) as link:
            assert await count(link) == [b"x", 1]


async def test_sentinel_that_asks_for_a_password_gets_that_of_the_url() -> None:
    with redis_with_sentinel(password="s3cret") as (_, _, sentinel):
        async with linked(sentinel.url) as link:
            assert await count(link) == [b"x", 1]
        async with linked(sentinel.url.replace("s3cret", "wrong"), checked=False) as link:
            with pytest.raises(LinkDown, match="WRONGPASS"):
                await link.check()
