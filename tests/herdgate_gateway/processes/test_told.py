"""What goes over a lifeline comes out as it went in."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from herdgate import Fleet, Gate, Limits
from herdgate.core.classes import AdmissionClass
from herdgate_gateway.processes.lifeline import MOST_BYTES, Lifeline
from herdgate_gateway.processes.reports import Report, pack_report, read_report
from herdgate_gateway.processes.told import Job, pack_settings, read_settings
from herdgate_gateway.settings import Settings, changes, load
from herdgate_gateway.workers import WorkerPool
from tests.herdgate_gateway.test_settings_values import cases, write

EVERYTHING = """
listen = ["127.0.0.1:1", "unix:/run/a.sock?mode=666"]
processes = 4
workers = ["ws://a:1"]
rate = 250
secrets = ["a secret of enough bytes"]
allowed_origins = "any"
health_path = "off"
[tls]
certificate = "/c.pem"
key = "/k.pem"
[admin]
token = "a token"
socket = "/run/control"
[fleet]
redis = "redis://:password@host:6379"
rate_min = 5
[[classes]]
name = "resume"
share = 0.5
[[routes]]
name = "chat"
paths = ["/chat/*"]
statuses = { rate = 503 }
client = { rate = 1, open = 8, scope = "fleet" }
anonymous = { open = 4 }
client_key = { claim = "sub" }
connection_id = { path = 2 }
auth = { jwt = { keys = "keys.json", audience = ["chat"], from = "query" } }
[[routes]]
name = "feed"
paths = ["/feed"]
auth = { url = "http://auth/", headers = ["x-user"] }
"""


def same(settings: Settings) -> None:
    told = read_settings(json.loads(json.dumps(pack_settings(settings))))
    assert changes(settings, told) == []


def test_settings_are_the_same_on_the_other_side(tmp_path: Path) -> None:
    file = tmp_path / "herdgate.toml"
    file.write_text(EVERYTHING)
    settings = load({}, file, {})
    assert settings.secret_texts() == ("a secret of enough bytes",)
    same(settings)


@pytest.mark.parametrize(
    ("field", "given"),
    [pytest.param(field, given, id=f"{field}={value!a:.40}") for field, given, value in cases(good=True)],
)
def test_every_right_value_is_the_same_on_the_other_side(tmp_path: Path, field: str, given: dict[str, object]) -> None:
    same(load({}, write(tmp_path, given), {"HERDGATE_HINT_CAP_S": "30"} if field == "horizon_s" else {}))


def test_job_is_the_same_on_the_other_side() -> None:
    job = Job(2, [5, 6], "herdgate+unix:///a", Settings(rate=5.0), "a group")
    told = Job.read(json.loads(json.dumps(job.pack())))
    assert (told.number, told.listeners, told.calendar) == (2, [5, 6], "herdgate+unix:///a")
    assert changes(job.settings, told.settings) == []


async def test_report_is_the_same_on_the_other_side() -> None:
    alone = Gate(Limits(rate=5, classes=(AdmissionClass("a", 0.5), AdmissionClass("b", 0.5))))
    shared = Gate(Limits(rate=5), fleet=Fleet("herdgate+unix:///nobody"))
    gates = {"alone": alone.snapshot(), "shared": shared.snapshot(), "free": Gate(Limits(rate=None)).snapshot()}
    report = Report(True, gates, WorkerPool(["ws://a:1", "ws://b:1"]).snapshot())
    assert read_report(json.loads(json.dumps(pack_report(report)))) == report
    await shared.aclose()


@asynccontextmanager
async def two_ends() -> AsyncIterator[tuple[Lifeline, Lifeline]]:
    ends = [await Lifeline.over(end) for end in socket.socketpair()]
    try:
        yield ends[0], ends[1]
    finally:
        for end in ends:
            await end.aclose()


async def test_messages_come_in_order_and_then_the_end() -> None:
    async with two_ends() as (one, other):
        for number in range(3):
            one.tell({"number": number})
        assert [await other.hear() for _ in range(3)] == [{"number": 0}, {"number": 1}, {"number": 2}]
        await one.aclose()
        assert await other.hear() is None
        other.tell({"to": "nobody"})


async def test_who_does_not_read_is_known_to_be_behind() -> None:
    async with two_ends() as (one, other):
        while not one.is_behind:
            one.tell({"text": "x" * 65_536})
        hearing = asyncio.create_task(_hear_all(other))
        await asyncio.wait_for(one.aclose(), 5)
        assert await hearing > 0


async def _hear_all(end: Lifeline) -> int:
    count = 0
    while await end.hear() is not None:
        count += 1
    return count


@pytest.mark.parametrize("line", [b"no JSON\n", b"x" * (MOST_BYTES + 1)], ids=["text", "long"])
async def test_what_is_no_message_is_an_error(line: bytes) -> None:
    ours, theirs = socket.socketpair()
    end = await Lifeline.over(ours)
    with theirs:
        theirs.setblocking(False)
        sending = asyncio.get_running_loop().sock_sendall(theirs, line)
        with pytest.raises(ValueError):  # noqa: PT011 - it may be of JSON or of the length
            await asyncio.gather(sending, end.hear())
    await end.aclose()


async def test_half_a_message_is_the_end() -> None:
    ours, theirs = socket.socketpair()
    end = await Lifeline.over(ours)
    with theirs:
        theirs.send(b'{"half":')
    assert await end.hear() is None
    await end.aclose()
