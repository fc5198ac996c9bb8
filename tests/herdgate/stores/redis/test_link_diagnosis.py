"""What no waiting mends is one error with the way out, and tried again all the same; an outage is one warning."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from herdgate import ClientLimits, Fleet, Gate, Limits
from herdgate.fleet import Fail
from herdgate.stores.redis.errors import LinkDown
from herdgate.stores.redis.link import Link
from tests.herdgate.stores.redis.links import failing, linked, until
from tests.redis_servers import RedisServer, redis_server, redis_with_sentinel, redis_with_tls


@asynccontextmanager
async def started(url: str, *, fail: Fail = "local_share", scope: bool = False) -> AsyncIterator[Gate]:
    """A gate that has joined its fleet, or tries to."""
    client = ClientLimits(open=5, scope="fleet") if scope else ClientLimits()
    gate = Gate(Limits(rate=100, client=client), fleet=Fleet(url, fail=fail))
    gate.start()
    try:
        yield gate
    finally:
        await gate.aclose()


async def said(caplog: pytest.LogCaptureFixture, count: int = 1) -> list[tuple[int, str]]:
    """What was logged, once there is so much, and a few tries later."""
    await until(lambda: len(caplog.records) >= count, "it is said")
    await asyncio.sleep(0.3)  # for what must not be said as well
    return [(record.levelno, record.getMessage()) for record in caplog.records]


async def error_of(url: str, caplog: pytest.LogCaptureFixture) -> str:
    """The one line about a Redis that cannot serve."""
    async with started(url):
        ((level, line),) = await said(caplog)
    assert level == logging.ERROR
    assert line.startswith("redis: got ")
    assert line.endswith("; trying again in the background, and until then this process admits its share alone")
    assert "\n" not in line
    assert "s3cret" not in line
    return line


@pytest.mark.parametrize(
    ("password", "shown", "met", "way_out"),
    [
        ("right", ":s3cret@", "a wrong user or password", "write the right ones into its URL"),
        ("right", "", "no password where one is asked for", "write it into the URL"),
        (None, ":s3cret@", "a password where none is set", "take it out of the URL"),
        (None, "user:s3cret@", "a wrong user or password", "write the right ones into its URL"),
    ],
)
async def test_password(
    password: str | None, shown: str, met: str, way_out: str, caplog: pytest.LogCaptureFixture
) -> None:
    with redis_server(password=password) as redis:
        line = await error_of(f"redis://{shown}127.0.0.1:{redis.port}", caplog)
    assert line.startswith(f"redis: got {met} at 127.0.0.1:{redis.port} (")
    assert way_out in line


@pytest.mark.parametrize(
    ("url", "met", "way_out"),
    [
        ("redis://{place}/99", "a database that it does not have", "write a lower one"),
        ("redis+sentinel://{place}/fleet", "a server that is no sentinel", "redis://host:port for this one server"),
        ("redis+cluster://{place}", "a server that is no node of a cluster", "write redis://host:port"),
        ("rediss://{place}", "a server without TLS", "write redis:// instead of rediss://"),
    ],
)
async def test_plain_server_that_is_something_else(
    redis: RedisServer, url: str, met: str, way_out: str, caplog: pytest.LogCaptureFixture
) -> None:
    line = await error_of(url.format(place=f"127.0.0.1:{redis.port}"), caplog)
    assert line.startswith(f"redis: got {met} at 127.0.0.1:{redis.port} ")
    assert way_out in line


async def test_sentinel_that_is_taken_for_a_server(caplog: pytest.LogCaptureFixture) -> None:
    with redis_with_sentinel() as (_, _, sentinel):
        line = await error_of(f"redis://127.0.0.1:{sentinel.port}", caplog)
    assert "as sentinels are" in line


@pytest.mark.parametrize(
    ("url", "met"),
    [
        ("redis://127.0.0.1:{port}", "a server with TLS"),
        ("redis://:s3cret@127.0.0.1:{port}", "a server with TLS"),
        ("rediss://127.0.0.1:{port}", "a certificate that is not trusted"),
    ],
)
async def test_server_with_tls(url: str, met: str, caplog: pytest.LogCaptureFixture) -> None:
    with redis_with_tls(trustme.CA()) as redis:
        assert f"redis: got {met} at " in await error_of(url.format(port=redis.port), caplog)


async def test_missing_file_is_named_and_its_coming_is_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority, file = trustme.CA(), tmp_path / "ca.pem"
    with redis_with_tls(authority) as redis:
        async with linked(f"rediss://127.0.0.1:{redis.port}?ssl_ca_certs={file}", checked=False) as link:
            with pytest.raises(LinkDown) as failed:
                await link.check()
            assert failed.value.cure is not None
            assert failed.value.cure.met == f"{file} for ssl_ca_certs"
            ((level, line),) = await said(caplog)
            assert (level, str(file) in line) == (logging.ERROR, True)
            authority.cert_pem.write_to_path(file)
            await until(lambda: link.is_up, "connected")


async def test_correction_is_found_by_itself_and_said(caplog: pytest.LogCaptureFixture) -> None:
    with redis_server(password="right") as redis:
        async with started(f"redis://:wrong@127.0.0.1:{redis.port}") as gate:
            await said(caplog)
            redis.command("CONFIG", "SET", "requirepass", "wrong")
            redis.password = "wrong"
            await until(lambda: (fleet := gate.snapshot().fleet) is not None and fleet.is_up, "it has joined")
            lines = await said(caplog, 2)
    assert [level for level, _ in lines] == [logging.ERROR, logging.WARNING]
    assert lines[1][1].startswith(f"Redis at 127.0.0.1:{redis.port} is back after ")


@pytest.mark.parametrize(
    ("fail", "meanwhile"),
    [
        ("local_share", "this process admits its share alone"),
        ("closed", "nobody is admitted"),
        ("open", "everyone is admitted"),
    ],
)
async def test_start_without_redis_is_one_line_whatever_links_there_are(
    redis: RedisServer, fail: Fail, meanwhile: str, caplog: pytest.LogCaptureFixture
) -> None:
    redis.kill()
    async with started(redis.url, fail=fail, scope=True):
        ((level, line),) = await said(caplog)
    assert level == logging.WARNING
    ending = f"trying again in the background, and until then {meanwhile}"
    assert line == f"Redis at 127.0.0.1:{redis.port}: cannot connect: Connection refused; {ending}"


async def test_outage_and_its_end_are_one_line_each_whatever_links_there_are(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with started(redis.url, scope=True) as one, started(redis.url, scope=True) as other:
        for gate in (one, other):
            await until(lambda gate=gate: gate.snapshot().fleet.is_up, "it has joined")  # type: ignore[misc]
        redis.restart()
        lines = await said(caplog, 2)
        assert [line.partition(": ")[0] for _, line in lines[:1]] == [f"Redis at 127.0.0.1:{redis.port}"]
        assert "is back after" in lines[1][1]
        assert len(lines) == 2
        redis.kill()
        lines = await said(caplog, 3)
        assert len(lines) == 3, "the next outage is one of its own"


async def test_link_that_was_closed_in_an_outage_leaves_nothing_behind(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    redis.kill()
    for _ in range(2):
        async with started(redis.url):
            await said(caplog)
        assert len(caplog.records) == 1
        caplog.clear()


async def test_other_link_that_is_served_does_not_end_the_outage_of_one(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    redis.command("ACL", "SETUSER", "none", "on", ">s3cret", "~*", "+@all", "-evalsha")
    refused = Link(f"redis://none:s3cret@127.0.0.1:{redis.port}", rng=lambda: 0.5)
    try:
        async with started(redis.url) as gate:
            await until(lambda: (fleet := gate.snapshot().fleet) is not None and fleet.is_up, "it has joined")
            refused._upkeep.seek()
            await until(lambda: refused.is_up, "connected")
            await failing(refused, LinkDown)
            ((_, line),) = await said(caplog)
            assert "NOPERM" in line
    finally:
        await refused.aclose()
