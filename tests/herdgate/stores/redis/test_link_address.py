"""URLs of Redis: what they mean, and that no password shows."""

import subprocess
import sys
import traceback
from typing import Any

import pytest

from herdgate import AdmissionMiddleware, ConfigurationError, Fleet, Limits, LoadReport
from herdgate.asgi import Receive, Scope, Send
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
        ("redis://:[s3cret@host", "", [("host", 6379)], "host:6379"),
        ("redis+sentinel://a/fleet", "sentinel", [("a", 26379)], "a:26379 (sentinel fleet)"),
        ("rediss+sentinel://[::1]:1/fleet/0", "sentinel", [("::1", 1)], "[::1]:1 (sentinel fleet)"),
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


WRONG = [
    ("", "write redis://host:6379/0, "),
    ("host:6379", "write redis://host:6379/0, "),
    ("http://host", "write redis://host:6379/0, "),
    ("redis+mesh://a", "write redis://host:6379/0, "),
    ("s3cret@redis://host", "write redis://host:6379/0, "),
    ("redis://", "name the host"),
    ("redis://:s3cret@", "name the host"),
    ("redis://:s3cret", "name the host"),
    ("redis:///0", "name the host"),
    ("redis://ho st", "name the host"),
    ("redis://[::x]", "name the host"),
    ("redis+cluster://a,,b", "name the host"),
    ("redis://a,b", "name one host"),
    ("redis://host:0", "write a port from 1 to 65535"),
    ("redis://user:s3cret@host:65536", "write a port from 1 to 65535"),
    ("redis://host:s3cret", "write a port from 1 to 65535"),
    ("redis://host:", "write a port from 1 to 65535"),
    ("redis://:s3cret/2@host", "percent-encode /, ?, # and @"),
    ("redis://:s3cret#@host", "percent-encode /, ?, # and @"),
    ("redis://:s3cret?@host", "percent-encode /, ?, # and @"),
    ("redis://:s3cret@host/x", "write the database as a whole number"),
    ("redis://host?db=s3cret", "write the database as a whole number"),
    ("redis+sentinel://a/fleet/x", "write the database as a whole number"),
    ("redis://host/0/1", "write nothing behind the database"),
    ("redis+sentinel://:s3cret@a,b", "name the service that the sentinels watch"),
    ("redis+sentinel://a/", "name the service that the sentinels watch"),
    ("redis+cluster://a/1", "leave the database out: a cluster has but database 0"),
    ("redis+cluster://a?db=1", "leave the database out: a cluster has but database 0"),
    ("redis://host?pasword=s3cret", "leave out pasword: options are db, username, password, client_name, ssl_ca_certs"),
    ("redis://host?pass%20word=s3cret", "leave out what is none: options are db, "),
    ("redis://host?client_name=a%20b", "write client_name in printable ASCII"),
    ("redis://host?ssl_ca_certs=s3cret", "leave out ssl_ca_certs, or write rediss://"),
    ("rediss://host?ssl_ca_certs=", "write a value for ssl_ca_certs"),
    ("rediss://host?ssl_cert_reqs=s3cret", "write ssl_cert_reqs=none, optional or required"),
    ("rediss://host?ssl_check_hostname=s3cret", "write ssl_check_hostname=true or false"),
    ("unix://", "write the whole path of the socket"),
    ("unix://run/redis.sock", "write the whole path of the socket"),
    ("unix://:s3cret@run/redis.sock", "write the whole path of the socket"),
    ("unix:///run/", "write the whole path of the socket"),
]


@pytest.mark.parametrize(("url", "way_out"), WRONG)
def test_wrong_url_is_one_line_that_names_the_part_and_shows_no_secret(url: str, way_out: str) -> None:
    with pytest.raises(ConfigurationError) as failed:
        Link(url)
    told = str(failed.value)
    assert told.startswith("redis: got ")
    assert f"; {way_out}" in told
    assert "\n" not in told
    assert "s3cret" not in "".join(traceback.format_exception(failed.value)).replace(url, "")


@pytest.mark.parametrize("url", [None, 7, b"redis://:s3cret@host"])
def test_url_that_is_no_text_is_refused(url: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"redis: got (None|a value of type (int|bytes)); write redis://host"):
        Link(url)


@pytest.mark.parametrize(("url", "_"), WRONG)
def test_fleet_and_all_that_take_a_url_refuse_a_wrong_one_at_once(url: str, _: str) -> None:
    for name, make in (
        ("redis", lambda: Fleet(url)),
        ("store", lambda: AdmissionMiddleware(nobody, Limits(rate=1), store=url)),
        ("fleet", lambda: LoadReport(nobody, url, name="ws://a:1")),
    ):
        with pytest.raises(ConfigurationError) as failed:
            make()
        assert failed.value.field == name
        assert "s3cret" not in str(failed.value)


def test_url_is_read_without_redis_py() -> None:
    program = (
        "import sys; sys.modules['redis'] = None\n"
        "from herdgate import ConfigurationError, Fleet\n"
        "Fleet('rediss://:a@host:1/2?ssl_cert_reqs=none')\n"
        "try: Fleet('redis://host:x')\n"
        "except ConfigurationError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "write a port" in done.stdout


async def nobody(scope: Scope, receive: Receive, send: Send) -> None:
    """Never called."""


def test_key_that_is_locked_is_an_error_and_no_question_on_the_terminal() -> None:
    assert Address.parse("rediss://host?ssl_certfile=c&ssl_keyfile=k").options["ssl_password"] == ""
    assert Address.parse("rediss://host?ssl_certfile=c&ssl_password=p").options["ssl_password"] == "p"
    assert "ssl_password" not in Address.parse("rediss://host").options
