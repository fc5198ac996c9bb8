"""URLs of Redis: what they mean, and that no password shows."""

import traceback

import pytest

from herdgate import ConfigurationError
from herdgate.stores.redis.address import Address
from herdgate.stores.redis.link import Link


@pytest.mark.parametrize(
    ("url", "kind", "nodes", "shown"),
    [
        ("redis://host", "", [("host", 6379)], "host:6379"),
        ("redis://:s3cret@host:7000/3", "", [("host", 7000)], "host:7000"),
        ("redis://[::1]:7000", "", [("::1", 7000)], "[::1]:7000"),
        ("rediss://user:s3cret@host", "", [("host", 6379)], "host:6379"),
        ("unix:///run/redis.sock?db=1", "", [], "unix:///run/redis.sock"),
        ("unix://user:s3cret@/run/redis.sock", "", [], "unix:///run/redis.sock"),
        (
            "redis+sentinel://user:s3cret@a,b:7001/fleet/4",
            "sentinel",
            [("a", 26379), ("b", 7001)],
            "a:26379,b:7001 (sentinel fleet)",
        ),
        ("redis+cluster://:s3cret@a:1,b", "cluster", [("a", 1), ("b", 6379)], "a:1,b:6379 (cluster)"),
        ("rediss+cluster://a/0", "cluster", [("a", 6379)], "a:6379 (cluster)"),
    ],
)
def test_url_is_read(url: str, kind: str, nodes: list[tuple[str, int]], shown: str) -> None:
    address = Address.parse(url)
    assert (address.kind, list(address.nodes), str(address)) == (kind, nodes, shown)
    assert "s3cret" not in repr(address)
    assert Link(url).where == shown


def test_credentials_database_and_options_reach_the_connection() -> None:
    connection = Address.parse("redis://user:p%40ss@host:7000/3?client_name=gate").connection()
    assert (connection.username, connection.password, connection.db) == ("user", "p@ss", 3)
    assert connection.client_name == "gate"
    assert repr(connection) == "<redis.asyncio.connection.Connection(host=host,port=7000,db=3,client_name=gate)>"


def test_deadlines_and_decoding_are_not_for_the_url_to_say() -> None:
    connection = Address.parse("redis://host?socket_timeout=9&decode_responses=True&protocol=3").connection()
    assert connection.socket_timeout is None
    assert not connection.encoder.decode_responses
    assert connection.protocol == 2


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host:6379",
        "http://host",
        "redis://",
        "redis://:s3cret@",
        "redis://host:s3cret",
        "redis://:s3cret/2@host",
        "redis://:s3cret#@host",
        "redis://:s3cret?@host",
        "redis://:[s3cret@host",
        "redis://a,b",
        "redis://host/s3cret",
        "redis://host/0/1",
        "redis://host?pasword=s3cret",
        "redis://host?db=s3cret",
        "rediss://host?ssl_cert_reqs=s3cret",
        "unix://",
        "redis+sentinel://:s3cret@a,b",
        "redis+sentinel://a/",
        "redis+sentinel://a/fleet/x",
        "redis+cluster://a/1",
        "redis+cluster://a,,b",
        "redis+mesh://a",
    ],
)
def test_wrong_url_is_one_line_with_the_way_out_and_no_secret(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^redis: got .*; write redis://host:6379/0, ") as failed:
        Link(url)
    told = str(failed.value)
    assert "\n" not in told
    hidden = "s3cret@" in url or "?" in url or "@" in url
    assert not hidden or "s3cret" not in "".join(traceback.format_exception(failed.value)).replace(url, "")


def test_url_that_is_no_text_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="redis: got None; write"):
        Link(None)  # type: ignore[arg-type]
