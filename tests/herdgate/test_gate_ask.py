"""A gate asked without a task: the same verdicts as `decide`, and a question taken back leaves nothing behind."""

import asyncio
import random
from collections.abc import Callable, Iterator

import pytest

from herdgate import ClientLimits, Gate, Limits
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import LOCAL
from tests.herdgate.stores.redis.fleets import fleet_of, until
from tests.redis_servers import RedisServer, redis_server

SEED = 7
LIMITS = Limits(rate=0.001, burst=3)
SCOPED = Limits(rate=0.001, burst=3, client=ClientLimits(open=100, scope="fleet"))


@pytest.fixture(params=[LIMITS, SCOPED], ids=["plain", "client-limits-of-scope-fleet"])
def limits(request: pytest.FixtureRequest) -> Limits:
    found: Limits = request.param
    return found


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with redis_server() as server:
        yield server


class Asked:
    """Questions to one gate, and their verdicts."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.verdicts: list[Admitted | Denied] = []

    def ask(self, ticket: str | None = None) -> Callable[[], None] | None:
        return self.gate.ask(Arrival(LOCAL, ticket), self.verdicts.append)

    @property
    def admitted(self) -> list[Admitted]:
        return [verdict for verdict in self.verdicts if isinstance(verdict, Admitted)]


def test_one_process_answers_at_once() -> None:
    asked = Asked(Gate(LIMITS))
    assert [asked.ask() for _ in range(5)] == [None] * 5
    assert [type(verdict) for verdict in asked.verdicts] == [Admitted] * 3 + [Denied] * 2
    assert asked.gate.snapshot().pending == 3
    assert asked.gate.snapshot().denied == {"rate": 2}


async def test_fleet_answers_each_question_once(redis: RedisServer, limits: Limits) -> None:
    async with fleet_of(redis.url, limits, 1) as (gate,):
        redis.command("HSET", "{herdgate:default}:calendar", "tokens", "3")
        asked = Asked(gate)
        for _ in range(20):
            asked.ask()
        await until(lambda: len(asked.verdicts) == 20, "all are answered")
        assert len(asked.admitted) == 3
        assert gate.snapshot().pending == 3
        await until(
            lambda: (fleet := gate.snapshot().fleet) is not None and fleet.pending == 3, "the fleet counts them"
        )


async def test_question_taken_back_at_any_moment_loses_no_token(redis: RedisServer, limits: Limits) -> None:
    moments = random.Random(SEED)
    async with fleet_of(redis.url, limits, 1) as (gate,):
        redis.command("HSET", "{herdgate:default}:calendar", "tokens", "3")
        for _ in range(30):
            asked = Asked(gate)
            take_back = asked.ask()
            for _ in range(moments.choice([0, 0, 1, 3, 9])):
                await asyncio.sleep(moments.choice([0, 0, 0.001]))
            known = len(asked.verdicts)
            if take_back is not None:
                take_back()
            await asyncio.sleep(0)
            assert len(asked.verdicts) == known, "not after it was taken back"
            for verdict in asked.admitted:
                gate.undo(verdict)
        asked = Asked(gate)
        await until(lambda: gate.snapshot().pending == 0, "nothing is held")
        for _ in range(5):
            asked.ask()
        await until(lambda: len(asked.verdicts) == 5, "all are answered")
        assert len(asked.admitted) == 3
        await until(lambda: (fleet := gate.snapshot().fleet) is not None and fleet.pending == 3, "no grant is lost")
