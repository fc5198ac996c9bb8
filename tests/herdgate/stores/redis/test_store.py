"""A fleet on a real Redis: one calendar, whichever gate an arrival comes to."""

import asyncio
import os
import random
import time

import pytest

from herdgate import AdmissionClass, AdmissionMiddleware, ConfigurationError, Fleet, Gate, Limits
from herdgate.asgi import Message, Receive, Scope, Send
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import LOCAL, Client
from tests.herdgate.stores.redis.fleets import admit, come, firm_slot_of, fleet_of, hint_of, refuse, until, until_up
from tests.redis_servers import RedisServer

SLOW = Limits(rate=0.01, burst=5)
SECRET = "a secret for tests only, 32 bytes"


async def fill(gate: Gate, tokens: float) -> None:
    """Wait until the bucket, which starts empty, holds so many."""
    await until(lambda: (gate.snapshot().tokens or 0) >= tokens, "tokens have accrued")


async def test_gates_admit_one_rate_together(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=40, burst=10), 3) as gates:
        await fill(gates[0], 10)
        began, admitted = time.monotonic(), 0
        while time.monotonic() < began + 1.0:
            verdicts = await asyncio.gather(*(come(random.choice(gates)) for _ in range(30)))
            admitted += sum(isinstance(verdict, Admitted) for verdict in verdicts)
        took = time.monotonic() - began
    assert 10 + 40 * took * 0.8 <= admitted <= 10 + 40 * (took + 0.3) + 1


async def test_ticket_of_one_gate_is_kept_at_another(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=20, burst=1), 2) as (one, other):
        firm = await firm_slot_of(one)
        assert (await refuse(other, firm.ticket)).ticket == firm.ticket, "before its time it is told again"
        await asyncio.sleep((firm.retry_s or 0) + 0.005)
        await hint_of(one)
        await admit(other, firm.ticket)
        assert (await refuse(one, firm.ticket)).ticket != firm.ticket, "it was used at the other gate"


async def test_ticket_shown_at_twenty_gates_at_once_admits_once(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=5, burst=1, hold_s=5), 20) as gates:
        firm = await firm_slot_of(gates[0])
        await asyncio.sleep((firm.retry_s or 0) + 0.005)
        await hint_of(gates[0])  # no token is left for a newcomer
        verdicts = await asyncio.gather(*(come(gate, firm.ticket) for gate in gates))
        assert sum(isinstance(verdict, Admitted) for verdict in verdicts) == 1


async def test_rate_and_fraction_set_at_one_gate_hold_at_all_within_two_seconds(redis: RedisServer) -> None:
    """CASES 1.11."""
    async with fleet_of(redis.url, Limits(rate=100), 3) as gates:
        gates[0].set_rate(7)
        gates[1].set_admit_fraction(0.5)
        await until(lambda: all(gate.snapshot().rate == 7 for gate in gates), "the rate is known", within_s=2)
        clients = [Client(f"id:{number}", "ip:192.0.2.1", identified=True) for number in range(200)]

        await until(lambda: all(gate._store.fraction == 0.5 for gate in gates), "so is the fraction", within_s=2)
        verdicts = [[await is_shed(gate, client) for client in clients] for gate in gates]
        assert verdicts[0] == verdicts[1] == verdicts[2]
        assert 70 <= sum(verdicts[0]) <= 130


async def is_shed(gate: Gate, client: Client) -> bool:
    verdict = await come(gate, None, client)
    return isinstance(verdict, Denied) and verdict.reason == "shed"


async def test_gate_that_starts_with_the_known_rate_leaves_what_operators_have_set(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=100), 1) as (one,):
        one.set_rate(7)
        await until(lambda: one.snapshot().rate == 7, "it is set")
        async with fleet_of(redis.url, Limits(rate=100), 1, wait=False) as (late,):
            await until_up([one, late])
            assert late.snapshot().rate == 7
        async with fleet_of(redis.url, Limits(rate=50), 1, wait=False) as (other,):
            await until(lambda: one.snapshot().rate == other.snapshot().rate == 50, "the last settings hold")


async def test_limits_that_name_another_rate_change_that_of_the_fleet(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=100), 2) as (one, other):
        one.set_limits(Limits(rate=30, burst=3))
        await until(lambda: other.snapshot().rate == 30, "the other one knows")
        assert one.snapshot().burst == 3


async def test_classes_are_common(redis: RedisServer) -> None:
    classes = (AdmissionClass("resume", 0.7), AdmissionClass("normal", 0.3))
    limits = Limits(rate=0.01, burst=1, classes=classes)
    async with fleet_of(redis.url, limits, 2) as (one, other):
        await come(one, klass="resume")
        await until(lambda: other.snapshot().classes["resume"].hints == 1, "the other one knows of the hint")
        assert other.snapshot().classes["normal"].hints == 0


async def test_tickets_need_no_secret_of_the_user_s_own(redis: RedisServer) -> None:
    async with fleet_of(redis.url, SLOW, 1) as (one,):
        ticket = (await refuse(one)).ticket
        async with fleet_of(redis.url, SLOW, 1, wait=False) as (late,):
            await until_up([one, late])
            assert (await refuse(late, ticket)).ticket == ticket


async def test_tickets_of_another_fleet_are_worth_nothing(redis: RedisServer) -> None:
    async with (
        fleet_of(redis.url, SLOW, 1, settings={"name": "a"}, secrets=[SECRET]) as (one,),
        fleet_of(redis.url, SLOW, 1, settings={"name": "b"}, secrets=[SECRET]) as (other,),
    ):
        ticket = (await refuse(one)).ticket
        assert (await refuse(other, ticket)).ticket != ticket


async def test_preflight_and_refusals_after_admission_go_through_the_fleet(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=20, burst=3), 2) as (one, other):
        await fill(one, 2)
        firm = await one.reserve(Arrival(LOCAL))
        assert isinstance(firm, str)
        await admit(other, firm)
        late = await one.refuse("auth_busy")
        assert late.firm
        assert (await one.refuse("upstream")).ticket
        assert (await one.refuse("auth")).ticket is None


async def test_permits_of_all_gates_are_counted(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=100, burst=20), 2) as (one, other):
        await fill(one, 6)
        permits = [(await admit(gate)).permit for gate in (one, other, other)]
        permits[0].opened()

        def counts(gate: Gate) -> tuple[int, int]:
            fleet = gate.snapshot().fleet
            assert fleet is not None
            return fleet.open, fleet.pending

        await until(lambda: counts(one) == counts(other) == (1, 2), "all are counted")
        for permit in permits:
            permit.release()
        await until(lambda: counts(one) == counts(other) == (0, 0), "none is left")


async def test_gate_that_stops_calling_is_forgotten_with_its_permits(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=100, burst=20), 1) as (one,):
        async with fleet_of(redis.url, Limits(rate=100, burst=20), 1, wait=False) as (other,):
            await until_up([one, other])
            await fill(other, 3)
            await admit(other)
            await until(lambda: (fleet := one.snapshot().fleet) is not None and fleet.pending == 1, "it is counted")
        await until(
            lambda: (fleet := one.snapshot().fleet) is not None and (fleet.gateways, fleet.pending) == (1, 0),
            "it is forgotten",
            within_s=12,
        )


async def test_client_that_goes_while_it_waits_gives_back_what_it_was_granted(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=0.001, burst=3), 1, wait=True) as (one,):
        redis.command("HSET", "{herdgate:default}:calendar", "tokens", "3")
        for _ in range(20):
            waiting = asyncio.ensure_future(come(one))
            await asyncio.sleep(random.choice([0, 0, 0.001, 0.002]))
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            if waiting.done() and not waiting.cancelled() and isinstance(verdict := waiting.result(), Admitted):
                one.undo(verdict)
        admitted = [await come(one) for _ in range(5)]
        assert sum(isinstance(verdict, Admitted) for verdict in admitted) == 3
        await until(lambda: (fleet := one.snapshot().fleet) is not None and fleet.pending == 3, "no grant is lost")


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"processes": 2, "secrets": [SECRET]}, "processes: got 2; leave it out: a fleet shares its limits by itself"),
        ({"limits": Limits(rate=None)}, "rate: got None; write a number"),
    ],
)
def test_what_a_fleet_cannot_share_is_one_line(settings: dict[str, object], line: str) -> None:
    limits = settings.pop("limits", Limits(rate=4))
    with pytest.raises(ConfigurationError, match=line):
        Gate(limits, fleet=Fleet("redis://127.0.0.1:1"), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"redis": 7}, "redis"),
        ({"name": "a b"}, "name"),
        ({"fail": "shut"}, "fail"),
        ({"rate_min": -1}, "rate_min"),
        ({"setup_target_s": 0}, "setup_target_s"),
        ({"pending_target": 2}, "pending_target"),
    ],
)
def test_wrong_setting_of_a_fleet_is_one_line(settings: dict[str, object], field: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Fleet(**{"redis": "redis://127.0.0.1", **settings})  # type: ignore[arg-type]
    assert raised.value.field == field


def test_password_of_a_fleet_does_not_show() -> None:
    assert "hidden" not in repr(Fleet("redis://:hidden@127.0.0.1"))


async def test_gates_beside_each_other_share_the_fleet_s_calendar(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=0.001, burst=2), 1) as (chat,):
        feed = Gate(Limits(rate=0.001, burst=2), route="feed", beside=chat)
        redis.command("HSET", "{herdgate:default}:calendar", "tokens", "2")
        verdicts = [await come(gate) for gate in (chat, feed, feed, chat)]
        assert [isinstance(verdict, Admitted) for verdict in verdicts] == [True, True, False, False]
        await until(lambda: (fleet := feed.snapshot().fleet) is not None and fleet.pending == 2, "both are counted")


def test_forked_process_goes_by_a_name_of_its_own() -> None:
    gate = Gate(SLOW, fleet=Fleet("redis://127.0.0.1:1"))
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, str(getattr(gate._store, "gateway", "")).encode())
        os._exit(0)
    os.waitpid(child, 0)
    name = os.read(reader, 64).decode()
    assert len(name) == 16
    assert name != getattr(gate._store, "gateway", "")


async def test_admitted_share_of_new_limits_holds_for_the_fleet(redis: RedisServer) -> None:
    async with fleet_of(redis.url, Limits(rate=100), 2) as (one, other):
        one.set_limits(Limits(rate=100, admit_fraction=0))
        await until(lambda: other._store.fraction == 0, "the other one knows")
        assert (await refuse(other)).reason == "shed"


async def test_middleware_joins_its_fleet_with_the_app_and_leaves_it_with_the_app(redis: RedisServer) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "lifespan.shutdown":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})

    middleware = AdmissionMiddleware(app, SLOW, store=redis.url)
    events: asyncio.Queue[Message] = asyncio.Queue()

    async def send(message: Message) -> None:
        """Nobody looks."""

    events.put_nowait({"type": "lifespan.startup"})
    living = asyncio.ensure_future(middleware({"type": "lifespan"}, events.get, send))
    await until_up([middleware.gate])
    events.put_nowait({"type": "lifespan.shutdown"})
    await asyncio.wait_for(living, 5)
    assert redis.command("CLIENT", "LIST", "TYPE", "normal").count(b" addr=") <= 1, "only this one asks"
