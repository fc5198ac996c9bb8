"""Several processes without a store between them: each admits its share, and takes the others' tickets as hints."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import InvalidStatus

from herdgate import ConfigurationError, Gate, Limits
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import LOCAL
from tests.apps import SECRET
from tests.at_once import at_once
from tests.commands import command
from tests.servers import Server, poll
from tests.wire import ask, eventually, knock, open_socket

PROCESSES = 2
RATE, BURST, HOLD_S = 20, 4, 0.2
CROWD, CROWD_S = 40, 3.0


def gate_at(now: list[float], secret: str = SECRET, **limits: Any) -> Gate:
    whole = Limits(**{"rate": 2, "burst": 2, **limits})
    return Gate(whole, secrets=[secret], processes=PROCESSES, clock=lambda: now[0])


def decide(gate: Gate, ticket: str | None = None) -> Admitted | Denied:
    return at_once(gate.decide(Arrival(LOCAL, ticket)))


def deny(gate: Gate, ticket: str | None = None) -> Denied:
    answer = decide(gate, ticket)
    assert isinstance(answer, Denied)
    return answer


def firm_slot(gate: Gate, now: list[float]) -> Denied:
    """The firm slot of an arrival that came when told, and found that another had taken the token."""
    decide(gate)
    hint = deny(gate)
    now[0] += hint.retry_s or 0.0
    assert isinstance(decide(gate), Admitted)
    firm = deny(gate, hint.ticket)
    assert firm.firm
    return firm


def test_each_process_admits_its_share() -> None:
    now = [0.0]
    gates = [gate_at(now, max_open=2) for _ in range(PROCESSES)]
    for gate in gates:
        assert isinstance(decide(gate), Admitted)
        assert deny(gate).reason == "full"
    assert [gate.limits.rate for gate in gates] == [1.0, 1.0]


def test_firm_slot_of_another_process_is_a_hint_here() -> None:
    now = [0.0]
    ours, theirs = gate_at(now), gate_at(now)
    firm = firm_slot(theirs, now)
    now[0] += (firm.retry_s or 0.0) + 0.01  # calendars agree on the time of a ticket to the millisecond
    assert isinstance(decide(ours), Admitted)  # the only token, taken by a newcomer
    promoted = deny(ours, firm.ticket)
    assert promoted.firm, "it came when told, so it is given a slot of this process"
    assert promoted.ticket != firm.ticket
    assert not deny(ours, firm.ticket).firm, "and once only"


def test_ticket_signed_with_another_secret_is_worth_nothing() -> None:
    now = [0.0]
    ours, theirs = gate_at(now), gate_at(now, secret="another secret, of 32 bytes too")
    firm = firm_slot(theirs, now)
    now[0] += (firm.retry_s or 0.0) + 0.01
    decide(ours)
    assert not deny(ours, firm.ticket).firm


def test_rate_set_live_is_the_one_of_all_processes() -> None:
    gate = gate_at([0.0])
    gate.set_rate(10)
    assert gate.snapshot().rate == 5
    gate.set_rate(0)
    assert gate.snapshot().rate == 0
    gate.set_rate(None)
    assert gate.snapshot().rate is None
    with pytest.raises(ConfigurationError):
        gate.set_rate("10")  # type: ignore[arg-type]


def test_several_processes_need_secrets_and_the_message_says_so() -> None:
    with pytest.raises(ConfigurationError) as raised:
        Gate(Limits(rate=10), processes=4)
    way_out = "give the same ones to all 4 processes, so that each can read the others' tickets"
    assert str(raised.value) == f"secrets: got None; {way_out}"
    Gate(Limits(rate=10), processes=1)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """`uvicorn --workers 2` with these limits."""
    app = {"make": "tests.framework_apps.starlette:make", "limits": {"processes": PROCESSES, **request.param}}
    with command("uvicorn", app, f"--workers={PROCESSES}") as server:
        poll(lambda: server.log().count("startup complete") == PROCESSES, "all workers serve", within_s=60)
        yield server


async def snapshots(server: Server) -> dict[int, dict[str, Any]]:
    """The snapshot of every process, by its id; a connection comes to whichever takes it first."""
    seen: dict[int, dict[str, Any]] = {}

    async def all_seen() -> bool:
        for answer in await asyncio.gather(*(ask(server.port, "/_test/gate") for _ in range(8))):
            seen[answer.json()["pid"]] = answer.json()
        return len(seen) == PROCESSES

    await eventually(all_seen, "every process", within_s=20)
    return seen


@pytest.mark.parametrize("server", [{"rate": None, "max_open": 7}], indirect=True)
async def test_open_sockets_of_all_processes_stay_within_the_cap(server: Server) -> None:
    held: list[ClientConnection] = []

    async def hold() -> None:
        with contextlib.suppress(InvalidStatus):
            held.append(await open_socket(server.port, "/ws"))

    async def all_full() -> bool:
        await asyncio.gather(*(hold() for _ in range(20)))
        assert len(held) <= 7
        return len(held) == 6

    try:
        await eventually(all_full, "3 of 7 in each process", within_s=20)
        for _ in range(20):
            assert (await knock(server.port, "/ws")).status == 503
        assert [snapshot["open"] for snapshot in (await snapshots(server)).values()] == [3, 3]
    finally:
        for client in held:
            await client.close()


class Crowd:
    """Clients that come again and again, as told, and write down what became of them."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._end = time.monotonic() + CROWD_S
        self.outcomes: Counter[int] = Counter()

    async def come(self) -> None:
        """One client, until the end."""
        headers: list[tuple[str, str]] = []
        while (left := self._end - time.monotonic()) > 0:
            answer = await knock(self._port, "/ws", headers=headers)
            self.outcomes[answer.status] += 1
            headers = []
            if answer.status == 429:
                headers = [("Herdgate-Ticket", answer.headers["herdgate-ticket"])]
                await asyncio.sleep(min(left, answer.json()["retry_ms"] / 1000))


@pytest.mark.parametrize("server", [{"rate": RATE, "burst": BURST, "hold_s": HOLD_S, "grace_s": 60}], indirect=True)
async def test_crowd_gets_the_whole_rate_and_not_a_rate_for_each_process(server: Server) -> None:
    crowd, began = Crowd(server.port), time.monotonic()
    await asyncio.gather(*(crowd.come() for _ in range(CROWD)))
    took_s = time.monotonic() - began
    admitted, by_process = crowd.outcomes[101], await snapshots(server)
    late = (HOLD_S + 0.1) * RATE + PROCESSES  # firm slots taken late, as documented
    assert RATE * CROWD_S / 2 < admitted <= BURST + RATE * took_s + late
    assert sum(snapshot["admitted"] for snapshot in by_process.values()) == admitted
    assert all(snapshot["admitted"] for snapshot in by_process.values())
    assert set(crowd.outcomes) == {101, 429}
    assert "Traceback" not in server.log()
