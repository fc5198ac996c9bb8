"""Who asks AWS, and what others may say: one for a fleet, everybody without Redis, and nobody is believed."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from herdgate_gateway.drain.aws.sharing import read_members, text_of_identity, text_of_question, text_of_standings
from herdgate_gateway.drain.aws.signs import TASK, Identity, Target
from tests.herdgate_gateway.drain.aws_watchers import QUESTION, Watching, watching
from tests.herdgate_gateway.drain.fake_aws import GROUP, OTHER_GROUP, fake_aws, task_arn
from tests.redis_servers import RedisServer, redis_server
from tests.wire import eventually

KEY = f"{{herdgate:default}}:lookout:{text_of_question(QUESTION)}"

LOOK = 2
"""Calls of one look, which a machine under load may make a watcher owe itself."""


async def holder(redis: RedisServer, watchers: Sequence[Watching]) -> tuple[Watching, list[Watching]]:
    """The one that asks for all, and the others; each has been seen in service, and is told so."""
    for one in watchers:
        await one.has_looked()

    async def is_there() -> bool:
        return _holder(redis) in {one.name for one in watchers}

    await eventually(is_there, "one asks for all")
    name = _holder(redis)
    await next(one for one in watchers if one.name == name).asks(6)  # it has told each where it stands
    return next(one for one in watchers if one.name == name), [one for one in watchers if one.name != name]


def _holder(redis: RedisServer) -> str:
    return (redis.command("GET", f"{KEY}:lease") or b"").decode()


async def has_sign(watcher: Watching) -> None:
    async def has() -> bool:
        return watcher.has_sign

    await eventually(has, f"{watcher.name} has a sign", within_s=20)


async def test_one_asks_for_all_and_all_hear_of_their_signs() -> None:
    with fake_aws() as aws, redis_server() as redis:
        async with watching(aws, redis, 3) as watchers:
            for one in watchers:
                one.register()
            asking, others = await holder(redis, watchers)
            before = sum(one.calls for one in others)
            await asking.asks(20)
            assert sum(one.calls for one in others) <= before + LOOK, "no other one asks"
            aws.groups[GROUP][others[0].target] = "draining"
            await has_sign(others[0])
            aws.tasks[others[1].task] = "DEACTIVATING", "RUNNING"
            await has_sign(others[1])
            assert not asking.has_sign
            aws.groups[GROUP][asking.target] = "draining"
            await has_sign(asking)


async def test_another_one_takes_over_when_the_one_that_asks_dies() -> None:
    with fake_aws() as aws, redis_server() as redis:
        async with watching(aws, redis, 2) as watchers:
            for one in watchers:
                one.register()
            asking, (other,) = await holder(redis, watchers)
            await asking.die()
            await other.asks(6)
            assert _holder(redis) == other.name
            del aws.groups[GROUP][other.target]
            await has_sign(other)


async def test_one_that_has_no_answer_lets_another_one_ask() -> None:
    with fake_aws() as aws, redis_server() as redis:
        async with watching(aws, redis, 2) as watchers:
            for one in watchers:
                one.register()
            asking, (other,) = await holder(redis, watchers)
            aws.refused[asking.name] = "AccessDenied"
            await other.asks(6)
            assert not asking.has_sign, "an error is no sign"
            aws.groups[GROUP][other.target] = "draining"
            await has_sign(other)


@pytest.mark.parametrize("goes", [RedisServer.kill, RedisServer.pause])
async def test_everybody_asks_while_redis_is_away(goes: object) -> None:
    with fake_aws() as aws, redis_server() as redis:
        async with watching(aws, redis, 2) as watchers:
            for one in watchers:
                one.register()
            await holder(redis, watchers)
            assert callable(goes)
            goes(redis)
            for one in watchers:
                await one.asks(6)
            aws.groups[GROUP][watchers[0].target] = "draining"
            await has_sign(watchers[0])
            assert not watchers[1].has_sign


async def test_everybody_asks_without_a_fleet() -> None:
    with fake_aws() as aws:
        async with watching(aws, None, 2) as (one, other):
            for watcher in (one, other):
                watcher.register()
            await asyncio.gather(one.asks(4), other.asks(4))
            aws.tasks[one.task] = "RUNNING", "STOPPED"
            await has_sign(one)
            assert not other.has_sign


async def test_lies_on_redis_drain_nobody() -> None:
    with fake_aws() as aws, redis_server() as redis:
        async with watching(aws, redis, 2) as watchers:
            watchers[0].register()  # the other one is not registered yet: it would be gone, were it ever in service
            aws.tasks[watchers[1].task] = "PENDING", "RUNNING"
            for one in watchers:
                await one.has_looked()
            for standing in ("in service", "leaving", "gone", "unclear") * 2:
                deceived = watchers[1:] if standing == "in service" else watchers  # the first one is
                before = {one: one.calls for one in deceived}

                async def is_looked_into(standing: str = standing, before: dict[Watching, int] = before) -> bool:
                    _lie(redis, watchers, text_of_standings({GROUP: standing, TASK: standing}))  # type: ignore[dict-item]
                    return all(one.calls > calls for one, calls in before.items())

                await eventually(is_looked_into, "each of them looks for itself", within_s=20)
            assert not any(one.has_sign for one in watchers)
            watchers[1].register()
            await watchers[1].asks(2)
            aws.groups[GROUP][watchers[1].target] = "draining"
            await has_sign(watchers[1])


def _lie(redis: RedisServer, watchers: Sequence[Watching], text: str) -> None:
    seconds, micros = redis.command("TIME")
    now = int(seconds) * 1_000 + int(micros) // 1_000
    redis.command("SET", f"{KEY}:lease", "liar", "PX", 10_000)  # who asks for all, it says
    for one in watchers:
        redis.command("HSET", f"{KEY}:found", one.name, json.dumps({"text": text, "at": now}))


async def test_garbage_on_redis_changes_nothing() -> None:
    with fake_aws() as aws, redis_server() as redis:
        async with watching(aws, redis, 2) as watchers:
            for one in watchers:
                one.register()
            for number, garbage in enumerate(
                ("", "{", "5", "[]", '{"text": 5, "at": "x"}', '{"text": "{", "at": 1e300}')
            ):
                redis.command("HSET", f"{KEY}:members", f"stranger{number}", garbage)
            asking, (other,) = await holder(redis, watchers)
            seconds, _ = redis.command("TIME")
            for text in ("", "5", "{}", '{"target": "x"}', '{"task": "x"}', '{"task": 5}', "[" * 9_999):
                row = json.dumps({"text": text, "at": int(seconds) * 1_000})
                redis.command("HSET", f"{KEY}:members", f"liar{text[:9]}", row)
            before = other.calls
            await asking.asks(10)
            assert other.calls <= before + LOOK
            aws.groups[GROUP][other.target] = "draining"
            await has_sign(other)


@pytest.mark.parametrize("code", ["Throttling", "AccessDenied", "ExpiredToken", "InternalFailure"])
async def test_error_is_said_once_and_drains_nobody(code: str, caplog: pytest.LogCaptureFixture) -> None:
    with fake_aws() as aws:
        async with watching(aws, None, 1) as (one,):
            one.register()
            await one.has_looked()
            aws.refused[one.name] = code
            await says(caplog, f"{code}: no", 2)  # of its group, and of its task
            await one.asks(4)
            assert not one.has_sign
            aws.refused.clear()
            aws.groups[GROUP][one.target] = "draining"
            await has_sign(one)
    told = [record.getMessage() for record in caplog.records if "no early signs for now" in record.getMessage()]
    assert len(told) == 2
    assert all(line.isprintable() for line in told)


async def test_group_that_is_deleted_drains_nobody(caplog: pytest.LogCaptureFixture) -> None:
    with fake_aws() as aws:
        async with watching(aws, None, 1) as (one,):
            one.register()
            await one.has_looked()
            del aws.groups[GROUP]
            await says(caplog, "DescribeTargetHealth of web: TargetGroupNotFound: no", 1)
            await one.asks(2)
            assert not one.has_sign


async def says(caplog: pytest.LogCaptureFixture, text: str, count: int) -> None:
    """Wait until so many lines hold it."""

    async def is_said() -> bool:
        return sum(text in record.getMessage() for record in caplog.records) >= count

    await eventually(is_said, f"the log says {text}", within_s=30)


def test_members_are_read_as_they_are_written_and_those_of_other_clusters_are_left_out() -> None:
    own = Identity(Target("10.0.0.1", 80), task_arn(1))
    there = {
        "a": Identity(Target("fd00::1", 80), task_arn(2)),
        "b": Identity(None, task_arn(3)),
        "c": Identity(Target("i-0123"), None),
    }
    texts = {name: text_of_identity(one) for name, one in there.items()}
    strange = [task_arn(4, "other"), task_arn(5) + "/x", task_arn(6) + "'", "x", ""]
    texts |= {f"strange{number}": text_of_identity(Identity(None, arn)) for number, arn in enumerate(strange)}
    assert read_members(texts, own) == there
    assert read_members(texts, Identity(own.target, None)) == {"c": there["c"]}


def test_question_has_the_same_name_for_all_who_ask_it_and_no_other() -> None:
    assert text_of_question(QUESTION) == text_of_question(QUESTION._replace())
    others = [QUESTION._replace(cluster=None), QUESTION._replace(target_groups=(GROUP, OTHER_GROUP))]
    assert len({text_of_question(question) for question in (QUESTION, *others)}) == 3
