"""The parent's calendar on its socket: what it answers, to whom, and what becomes of those who end or make no sense."""

import asyncio
import os
import stat
import struct
from pathlib import Path

import pytest

from herdgate import ConfigurationError, Fleet, Limits
from herdgate.stores.parent.errors import CallFailed, ParentDown, ParentTimeout
from herdgate.stores.parent.frames import pack_frame, read_frame
from herdgate.stores.parent.link import ParentLink
from herdgate.stores.parent.server import CalendarServer
from herdgate.stores.redis.scripts import Script
from herdgate.stores.redis.wire import Ask, head_of_settings, pack_batch, pack_head, read_reply
from tests.herdgate.stores.parent.calendars import calendar_of, link_to, path_of
from tests.herdgate.stores.redis.links import until

LIMITS = Limits(rate=10, burst=2)
DECIDE, SECRET = Script.of("decide", ""), Script.of("secret", "")
KEYS = ["{herdgate:default}:calendar"]


def head(gateway: str = "one", sequence: int = 1) -> str:
    told = {"gateway": gateway, "sequence": sequence, "seed": 1, "given_back": 0, "counts": {"open": 1}, "workers": []}
    return pack_head(told, head_of_settings(LIMITS, Fleet("redis://a")))


async def admitted(link: ParentLink, count: int, *, sequence: int = 1) -> int:
    """How many of so many newcomers come in."""
    asks = [Ask()] * count
    data, order = pack_batch(asks, ())
    reply = await link.call(DECIDE, KEYS, [head(sequence=sequence), data])
    assert isinstance(reply, list)
    return sum(grant.admitted for grant in read_reply(reply, asks, order, ()).grants)


async def test_calls_are_answered_in_order_over_one_connection() -> None:
    async with calendar_of(LIMITS) as server, link_to(path_of(server)) as link:
        assert not link.is_up
        await link.check()
        assert link.is_up
        assert await admitted(link, 5, sequence=1) == 2
        assert await admitted(link, 5, sequence=1) == 2, "the same call, the same reply"
        assert await admitted(link, 1, sequence=2) == 0
        assert link.calls == 3


async def test_socket_is_in_a_folder_of_its_user_and_goes_with_the_server() -> None:
    async with calendar_of(LIMITS) as server:
        folder = Path(path_of(server)).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.stat().st_uid == os.getuid()
    assert not folder.exists()


async def test_first_secret_holds_for_all() -> None:
    async with calendar_of(LIMITS) as server, link_to(path_of(server)) as one, link_to(path_of(server)) as two:
        assert await one.call(SECRET, ["k"], [b"first"]) == b"first"
        assert await two.call(SECRET, ["k"], [b"second"]) == b"first"
        assert await two.call(SECRET, ["another"], [b"second"]) == b"second"


async def test_child_whose_connection_ends_is_forgotten_at_once() -> None:
    async with calendar_of(LIMITS) as server:
        async with link_to(path_of(server)) as link:
            await admitted(link, 1)
            assert (len(server.state.counts), server.state.counts.granted["open"]) == (1, 1)
        await until(lambda: len(server.state.counts) == 0, "it is forgotten")
        assert server.state.counts.granted.total() == 0


async def test_child_that_has_connected_again_is_not_forgotten_with_its_old_connection() -> None:
    async with calendar_of(LIMITS) as server, link_to(path_of(server)) as new:
        async with link_to(path_of(server)) as old:
            await admitted(old, 0, sequence=1)
            await admitted(new, 0, sequence=2)
        await until(lambda: len(server._open) == 1, "the old connection is gone")
        assert len(server.state.counts) == 1


@pytest.mark.parametrize(
    "args",
    [
        ["no JSON", b""],
        ["[]", b""],
        ["{}", b""],
        [head(), b"not 24 bytes"],
        [head(), b"\xff" * 24],
        [head().replace("600", "-1"), b""],
    ],
)
async def test_call_that_makes_no_sense_is_an_error_to_its_caller_alone(args: list[str | bytes]) -> None:
    async with calendar_of(LIMITS) as server, link_to(path_of(server)) as link:
        with pytest.raises(CallFailed, match="the parent process: "):
            await link.call(DECIDE, KEYS, args)
        assert await admitted(link, 1) == 1


async def test_other_scripts_are_not_known() -> None:
    async with calendar_of(LIMITS) as server, link_to(path_of(server)) as link:
        with pytest.raises(CallFailed, match="holds a calendar and a secret"):
            await link.call(Script.of("clients", ""), KEYS, ["x"])


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack(">I", 1 << 31),
        struct.pack(">I", 2) + b"xx",
        struct.pack(">III", 8, 1, 100),
        struct.pack(">II", 5, 0) + b"x",
        pack_frame([b"decide"]),
    ],
)
async def test_who_sends_no_call_is_hung_up_on(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with calendar_of(LIMITS) as server:
        reader, writer = await asyncio.open_unix_connection(path_of(server))
        writer.write(sent)
        assert await asyncio.wait_for(reader.read(), 5) == b""
        writer.close()
    assert len(caplog.records) == 1


async def test_call_that_is_too_long_is_not_sent() -> None:
    async with calendar_of(LIMITS) as server, link_to(path_of(server)) as link:
        with pytest.raises(ValueError, match="bytes, more than 16777216"):
            await link.call(DECIDE, KEYS, [head(), bytes(16 << 20)])
        assert await admitted(link, 1) == 1


async def test_without_a_parent_calls_fail_at_once_and_with_a_new_one_they_go_on(tmp_path: Path) -> None:
    async with link_to(str(tmp_path / "nobody")) as link:
        with pytest.raises(ParentDown, match="the parent process: No such file or directory"):
            await link.check()
    async with calendar_of(LIMITS) as server, link_to(path_of(server)) as link:
        assert await admitted(link, 1, sequence=1) == 1
        for writer in server._open:
            writer.close()
        with pytest.raises(ParentDown):
            await admitted(link, 1, sequence=2)
        assert not link.is_up
        assert await admitted(link, 1, sequence=3) == 1


async def test_reply_after_the_deadline_comes_to_whoever_takes_late_ones(tmp_path: Path) -> None:
    may_answer, late = asyncio.Event(), list[object]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_frame(reader)
        await may_answer.wait()
        writer.write(pack_frame([b"bytes", b"late"]))
        await reader.read()
        writer.close()

    slow = await asyncio.start_unix_server(serve, tmp_path / "slow")
    async with slow, link_to(str(tmp_path / "slow"), deadline_s=0.05) as link:
        link.on_late = late.append
        with pytest.raises(ParentTimeout, match=r"no reply within 0\.05 s"):
            await link.call(SECRET, ["k"], ["x"])
        assert not link.is_up
        with pytest.raises(ParentDown, match="still without its reply"):
            await link.call(SECRET, ["k"], ["x"])
        may_answer.set()
        await until(lambda: late == [b"late"], "it comes")
        assert link.is_up


async def test_call_given_up_by_its_caller_is_answered_late() -> None:
    late: list[object] = []
    async with calendar_of(LIMITS) as server, link_to(path_of(server)) as link:
        link.on_late = late.append
        call = asyncio.create_task(link.call(SECRET, ["k"], ["x"]))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait({call})
        await until(lambda: late == [b"x"], "it comes")
        assert await admitted(link, 1) == 1


async def test_closed_link_makes_no_calls() -> None:
    async with calendar_of(LIMITS) as server, link_to(path_of(server)) as link:
        await link.aclose()
        with pytest.raises(ParentDown, match="the link is closed"):
            await link.check()


async def test_calendar_needs_a_rate_and_keeps_to_what_it_is_told() -> None:
    with pytest.raises(ConfigurationError, match="several processes without a rate have nothing to share"):
        CalendarServer(Limits(rate=None))
    async with calendar_of(LIMITS) as server:
        with pytest.raises(ConfigurationError, match="rate: got None"):
            server.set_rate(None)
        with pytest.raises(ConfigurationError, match="admit_fraction: got 2"):
            server.set_fraction(2)
        server.set_rate(7)
        server.set_fraction(0.5)
        assert (server.state.calendar.rate, server.state.fraction, server.state.configured) == (7, 0.5, 10)
        server.configure(8)
        assert (server.state.calendar.rate, server.state.configured) == (8, 8)


async def test_time_in_which_the_parent_was_stopped_is_not_handed_out_again() -> None:
    """A second at most, and no more than since the last call of whoever asks: its call may have lain about."""
    now = [100.0]
    server = CalendarServer(Limits(rate=10), clock=lambda: now[0])
    clock = server._clock
    assert clock.pass_time() == 0
    now[0] += 60
    assert clock.pass_time() == 1
    now[0] += 60
    assert clock.pass_time(0.25) == 1.25
    now[0] -= 5
    assert clock.pass_time() == 1.25
    now[0] += 0.5
    assert clock.pass_time() == 1.75
    server.set_rate(5)
    assert (server.state.ceiling, server.state.configured) == (5, 10)
