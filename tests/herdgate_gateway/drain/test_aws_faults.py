"""An AWS, and a task's metadata, that are slow, say nonsense, or lie; and thousands of members that are none."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from herdgate import Fleet
from herdgate.stores.redis.lookout import FleetLookout
from herdgate_gateway.drain.aws.aside import Aside
from herdgate_gateway.drain.aws.identity import METADATA, read_place
from herdgate_gateway.drain.aws.options import AwsSettings
from herdgate_gateway.drain.aws.signs import Answer, Identity, Target, TargetState, standings
from herdgate_gateway.drain.aws.watching import watching_aws
from tests.herdgate_gateway.drain.fake_aws import CLUSTER, GROUP, fake_aws, task_arn
from tests.redis_servers import RedisServer, redis_server
from tests.wire import eventually

KEY = "{herdgate:default}:lookout:question"
NETWORK = {"NetworkMode": "awsvpc", "IPv4Addresses": ["10.0.2.106"]}
TASK = {"Cluster": CLUSTER, "TaskARN": task_arn(7), "Containers": [{"Networks": [NETWORK]}]}
LONGEST_MS = 1_500


@contextmanager
def held() -> Iterator[threading.Event]:
    """Set at the end of the block, for threads that wait for it."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


async def test_question_that_does_not_come_back_keeps_one_thread_and_is_followed_by_the_next() -> None:
    aside = Aside[str](0.05)
    with held() as event:
        threads = threading.active_count()
        for _ in range(5):
            with pytest.raises(TimeoutError):
                await aside.ask(lambda: str(event.wait()))
        assert threading.active_count() == threads + 1
        assert not aside.is_free
        event.set()

        async def is_free() -> bool:
            return aside.is_free

        await eventually(is_free, "it has come back")
        assert await aside.ask(lambda: "answer") == "answer"


async def test_error_of_a_question_is_raised_and_the_next_one_may_be_asked() -> None:
    aside = Aside[float](5)
    with pytest.raises(ZeroDivisionError):
        await aside.ask(lambda: 1 / 0)
    assert await aside.ask(lambda: 1.0) == 1.0


@pytest.mark.parametrize(
    "lie",
    [
        {"TaskARN": 5},
        {"TaskARN": "arn:aws:s3:::bucket"},
        {"TaskARN": ["x"]},
        {"Cluster": 5},
        {"Cluster": ""},
        {"Containers": [{"Networks": [{**NETWORK, "IPv4Addresses": ["x"]}]}]},
        {"Containers": [{"Networks": [{**NETWORK, "IPv4Addresses": [{}]}]}]},
    ],
)
def test_metadata_that_lie_are_an_error(lie: dict[str, Any]) -> None:
    with fake_aws() as aws:
        aws.metadata = TASK | lie
        with pytest.raises(OSError, match="tells nothing of a task"):
            read_place(AwsSettings((GROUP,), ecs=True), {METADATA: aws.url}, 8000)


async def test_metadata_that_never_end_are_said_once_and_leave_the_process_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    over = asyncio.Event()

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        while not over.is_set():
            writer.write(b" ")
            await asyncio.sleep(0.1)
        writer.close()
        await writer.wait_closed()
        over.clear()

    monkeypatch.setattr("herdgate_gateway.drain.aws.watching.PLACE_S", 0.3)
    async with await asyncio.start_server(trickle, "127.0.0.1", 0) as server:
        monkeypatch.setenv(METADATA, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        async with watching_aws(AwsSettings(ecs=True), lambda: pytest.fail("it is no sign")):
            await eventually(lambda: _says(caplog, "the metadata of this task: no answer in time"), "it says why")
        over.set()

        async def is_over() -> bool:
            return not over.is_set()

        await eventually(is_over, "the endpoint has hung up")


async def _says(caplog: pytest.LogCaptureFixture, what: str) -> bool:
    return what in caplog.text


async def test_end_that_nobody_has_thought_of_is_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def act() -> None:
        raise LookupError("no drain")

    with fake_aws() as aws:
        aws.tasks[task_arn(7)] = "DEACTIVATING", "STOPPED"
        aws.metadata = TASK
        for name, value in (
            (METADATA, aws.url),
            ("AWS_ENDPOINT_URL", aws.url),
            ("AWS_ACCESS_KEY_ID", "gateway"),
            ("AWS_SECRET_ACCESS_KEY", "testing"),
        ):
            monkeypatch.setenv(name, value)
        async with watching_aws(AwsSettings(ecs=True, every_s=1), act):
            said = "early signs are not looked for any more"
            await eventually(lambda: _says(caplog, said), "it says so", within_s=20)


@pytest.mark.parametrize("told", ["2001:db8::1", "2001:DB8:0:0:0:0:0:1", "2001:0db8:0000::0001"])
def test_address_of_ipv6_is_the_same_in_whatever_spelling(told: str) -> None:
    row = TargetState(Target.told(told, 80), "healthy")
    assert standings(Answer({GROUP: [row]}), Identity(Target.parse("[2001:DB8::1]:80"), None)) == {GROUP: "in service"}


def test_target_that_is_no_address_is_named_as_it_is() -> None:
    assert Target.told("arn:aws:lambda:function", None) == Target("arn:aws:lambda:function", None)


@asynccontextmanager
async def member(redis: RedisServer, name: str = "a") -> AsyncIterator[FleetLookout]:
    lookout = FleetLookout(Fleet(redis.url), "question", name, 1.0)
    await lookout.connect()
    try:
        yield lookout
    finally:
        await lookout.aclose()


@pytest.mark.parametrize("key", ["members", "found", "lease"])
@pytest.mark.parametrize("words", [("SADD", "x"), ("RPUSH", "x"), ("HSET", "x", "y")])
async def test_key_that_is_something_else_is_written_anew(key: str, words: tuple[str, ...]) -> None:
    with redis_server() as redis:
        redis.command(words[0], f"{KEY}:{key}", *words[1:])
        async with member(redis) as one:
            assert (await one.ask("me", wants=True)).members == {"a": "me"}


@pytest.mark.parametrize("options", [(), ("PX", 3_600_000)])
async def test_lease_that_never_ends_or_too_late_keeps_nobody_from_asking(options: tuple[object, ...]) -> None:
    with redis_server() as redis:
        redis.command("SET", f"{KEY}:lease", "ghost", *options)  # type: ignore[arg-type]
        async with member(redis) as one:
            assert (await one.ask("me", wants=True)).is_looking
            assert 0 < redis.command("PTTL", f"{KEY}:lease") <= LONGEST_MS


async def test_of_thousands_of_members_so_many_are_told_as_can_be_asked_for() -> None:
    with redis_server() as redis:
        _fake_members(redis, 5_000)
        async with member(redis) as one:
            told = await one.ask("me", wants=True)
            assert told.is_looking
            assert len(told.members) == 1_000


async def test_more_members_than_can_be_looked_through_are_forgotten() -> None:
    with redis_server() as redis:
        _fake_members(redis, 20_000)
        async with member(redis) as one:
            assert (await one.ask("me", wants=True)).members == {"a": "me"}


async def test_member_that_is_a_book_is_left_out() -> None:
    with redis_server() as redis:
        _fake_members(redis, 1, "x" * 100_000)
        async with member(redis) as one:
            assert (await one.ask("me", wants=True)).members == {"a": "me"}


def _fake_members(redis: RedisServer, count: int, text: str = "{}") -> None:
    row = json.dumps({"text": text, "at": redis.command("TIME")[0] * 1_000})
    script = "for i = 1, tonumber(ARGV[2]) do redis.call('HSET', KEYS[1], i, ARGV[1]) end"
    redis.command("EVAL", script, 1, f"{KEY}:members", row, count)
