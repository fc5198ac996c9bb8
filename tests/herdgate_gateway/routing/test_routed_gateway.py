"""A gateway before owners: where arrivals go, with what stamp, and what becomes of them when shards move."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from herdgate_gateway.leases.acts import register, take
from herdgate_gateway.leases.rows import WorkerRow, shard_of
from herdgate_gateway.leases.table import TableError
from tests.herdgate_gateway.gateways import CALLED_BACK, closed_port, until
from tests.herdgate_gateway.routing.routed import FLEET, OwningWorker, Routed, owning_worker, routed
from tests.wire import WAIT_S, eventually, handshake, open_socket, raw

MODES = pytest.mark.parametrize("mode", ["splice", "messages"])


async def says(fleet: Routed, connection_id: str, text: str = "hello") -> str | bytes:
    async with open_socket(fleet.port, f"/ws?id={connection_id}") as client:
        await client.send(text)
        return await asyncio.wait_for(client.recv(), WAIT_S)


async def arrive(fleet: Routed, connection_id: str, ticket: str = "") -> int:
    headers = [("Herdgate-Ticket", ticket)] if ticket else []
    async with raw(fleet.port, handshake(f"/ws?id={connection_id}", headers=headers)) as client:
        return (await client.head())[0]


async def denial(fleet: Routed, connection_id: str) -> tuple[int, Mapping[str, Any]]:
    async with raw(fleet.port, handshake(f"/ws?id={connection_id}")) as client:
        answer = await client.answer()
    return answer.status, answer.json()


def reads(fleet: Routed, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Every read of one shard, strong or not, from now on."""
    made: list[bool] = []
    read_many = fleet.table.read_many

    async def noting(keys: Any, *, strong: bool) -> Any:
        if len(keys) == 1:
            made.append(strong)
        return await read_many(keys, strong=strong)

    monkeypatch.setattr(fleet.table, "read_many", noting)
    return made


@MODES
async def test_an_arrival_goes_to_the_owner_of_its_shard_and_tells_what_it_believes(mode: str) -> None:
    async with owning_worker("one") as one, owning_worker("two") as two, routed(mode) as fleet:
        for name, worker in (("a", one), ("b", two)):
            await fleet.hear(name, worker, await fleet.own(name, worker))
        assert await says(fleet, "a") == "one: hello"
        assert await says(fleet, "b") == "two: hello"
        assert one.stamps == [(shard_of("a"), 1, "a")]
        assert two.stamps == [(shard_of("b"), 1, "b")]
        await fleet.is_idle()


@MODES
async def test_what_a_client_says_of_shard_and_epoch_is_not_believed(mode: str) -> None:
    async with owning_worker() as worker, routed(mode) as fleet:
        await fleet.hear("a", worker, await fleet.own("a", worker))
        spoofed = [("Herdgate-Shard", "5"), ("Herdgate-Epoch", "9"), ("Herdgate-Connection-Id", "b")]
        async with open_socket(fleet.port, "/ws?id=a", headers=spoofed):
            assert worker.stamps == [(shard_of("a"), 1, "a")]


@MODES
async def test_the_owner_is_told_what_the_route_says_of_a_second_socket_and_not_what_a_client_says(mode: str) -> None:
    route = {"name": "default", "connection_id": {"query": "id"}, "duplicates": "replace"}
    async with (
        owning_worker() as worker,
        routed(mode) as anyhow,
        routed(mode, routes=[route], leases={"table": "herd"}) as alone,
    ):
        for fleet in (anyhow, alone):
            await fleet.hear("a", worker, await fleet.own("a", worker))
            async with open_socket(fleet.port, "/ws?id=a", headers=[("Herdgate-Duplicates", "refuse")]):
                pass
        assert worker.duplicates == [None, "replace"]


@MODES
async def test_a_shard_that_nobody_owns_is_no_owner_with_a_hint_and_costs_no_token(mode: str) -> None:
    async with routed(mode, rate=5.0, burst=5.0) as fleet:
        for _ in range(10):
            status, told = await denial(fleet, "a")
            assert (status, told["reason"]) == (503, "no_owner")
            assert told["retry_ms"] > 500
        assert fleet.gateway.gates["default"].snapshot().tokens == pytest.approx(5)


@MODES
async def test_an_owner_that_has_moved_is_found_by_one_strong_read(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with owning_worker("one") as one, owning_worker("two") as two, routed(mode) as fleet:
        await fleet.hear("a", one, await fleet.own("a", one))
        one.epochs.clear()
        await fleet.own("a", two)
        made = reads(fleet, monkeypatch)
        assert await says(fleet, "a") == "two: hello"
        assert [len(one.stamps), len(two.stamps)] == [1, 1]
        assert made == [True]
        assert await says(fleet, "a") == "two: hello"
        assert made == [True]
        await fleet.is_idle()


@MODES
async def test_an_owner_out_of_reach_is_read_again_too(mode: str) -> None:
    async with owning_worker("two") as two, routed(mode) as fleet:
        gone = OwningWorker(url=closed_port(), name="gone")
        await fleet.hear("a", gone, await fleet.own("a", gone))
        await fleet.own("a", two)
        assert await says(fleet, "a") == "two: hello"


@MODES
async def test_who_is_the_owner_by_the_table_and_says_no_is_no_owner(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with owning_worker("one") as one, routed(mode) as fleet:
        await fleet.hear("a", one, await fleet.own("a", one, tell_worker=False))
        made = reads(fleet, monkeypatch)
        status, told = await denial(fleet, "a")
        assert (status, told["reason"]) == (503, "no_owner")
        assert len(one.stamps) == 1, "the same is not asked twice"
        assert made[0]
        assert len(made) <= 6, "nor is the table, without end"
        await fleet.is_idle()


@MODES
@pytest.mark.parametrize("how", ["news", "table"])
async def test_an_arrival_in_the_middle_of_a_hand_over_waits_for_its_end(
    mode: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with owning_worker("one") as one, owning_worker("two") as two, routed(mode) as fleet:
        await fleet.hear("a", one, await fleet.own("a", one))
        one.epochs.clear()  # it is frozen, and not given yet
        made = reads(fleet, monkeypatch)
        saying = asyncio.ensure_future(says(fleet, "a"))
        await until(lambda: bool(made), "the table was asked")
        epoch = await fleet.own("a", two)
        if how == "news":
            await fleet.hear("a", two, epoch)
        assert await saying == "two: hello"
        assert two.stamps == [(shard_of("a"), epoch, "a")]


@MODES
async def test_two_that_say_no_are_no_owner(mode: str) -> None:
    async with owning_worker("one") as one, owning_worker("two") as two, routed(mode) as fleet:
        await fleet.hear("a", one, await fleet.own("a", one, tell_worker=False))
        await fleet.own("a", two, tell_worker=False)
        assert (await denial(fleet, "a"))[1]["reason"] == "no_owner"
        assert [len(one.stamps), len(two.stamps)] == [1, 1]
        await fleet.is_idle()


async def test_a_crowd_at_a_shard_that_has_moved_reads_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with owning_worker("one") as one, owning_worker("two") as two, routed() as fleet:
        await fleet.hear("a", one, await fleet.own("a", one))
        one.epochs.clear()
        await fleet.own("a", two)
        made = reads(fleet, monkeypatch)
        assert set(await asyncio.gather(*(says(fleet, "a") for _ in range(30)))) == {"two: hello"}
        assert len(made) <= 3


@MODES
async def test_a_worker_of_a_life_that_is_over_gets_nobody(mode: str) -> None:
    async with owning_worker("one") as one, routed(mode) as fleet:
        await fleet.hear("a", one, await fleet.own("a", one))
        await fleet.die(one)
        assert (await denial(fleet, "a"))[1]["reason"] == "no_owner"
        assert not one.stamps


@MODES
async def test_a_shard_without_owner_that_is_asked_for_is_found_without_news(mode: str) -> None:
    async with owning_worker("one") as one, owning_worker("two") as two, routed(mode) as fleet:
        await fleet.hear("a", one, await fleet.own("a", one))
        await fleet.die(one)
        assert (await denial(fleet, "a"))[1]["reason"] == "no_owner"
        await fleet.own("a", two)

        async def is_there() -> bool:
            return await arrive(fleet, "a") == 101

        await eventually(is_there, "the new owner takes it")
        assert two.stamps


@MODES
async def test_sockets_of_a_shard_that_has_moved_are_called_back_and_others_stay(mode: str) -> None:
    async with owning_worker("one") as one, owning_worker("two") as two, routed(mode) as fleet:
        for name in ("a", "b"):
            await fleet.hear(name, one, await fleet.own(name, one))
        async with open_socket(fleet.port, "/ws?id=a") as moved, open_socket(fleet.port, "/ws?id=b") as stays:
            await fleet.hear("a", two, await fleet.own("a", two))
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(moved.recv(), WAIT_S)
            assert closed.value.rcvd is not None
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1012, CALLED_BACK)
            await stays.send("still")
            assert await asyncio.wait_for(stays.recv(), WAIT_S) == "one: still"
            told = json.loads(closed.value.rcvd.reason)
        assert told["retry_ms"] < 100, "a firm slot at 1,000 a second"
        assert await arrive(fleet, "a", told["ticket"]) == 101
        await fleet.is_idle()


@MODES
async def test_a_worker_s_word_that_a_shard_has_moved_becomes_a_call_back(mode: str) -> None:
    async with owning_worker("one") as one, routed(mode) as fleet:
        await fleet.hear("a", one, await fleet.own("a", one))
        async with open_socket(fleet.port, "/ws?id=a") as client:
            await until(lambda: bool(one.sockets), "the worker has it")
            await one.close_all(1012, "shard moved")
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(client.recv(), WAIT_S)
        assert closed.value.rcvd is not None
        assert "ticket" in json.loads(closed.value.rcvd.reason)
        await fleet.is_idle()


@MODES
async def test_who_is_told_of_a_move_from_both_sides_costs_the_fleet_one_slot(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with owning_worker("one") as one, owning_worker("two") as two, routed(mode) as fleet:
        await fleet.hear("a", one, await fleet.own("a", one))
        gate = fleet.gateway.gates["default"]
        invite, asked, go_on = gate.invite, 0, asyncio.Event()

        async def slowly(klass: str | None = None, *, firm: bool) -> Any:
            nonlocal asked
            asked += 1
            await go_on.wait()
            return await invite(klass, firm=firm)

        monkeypatch.setattr(gate, "invite", slowly)
        async with open_socket(fleet.port, "/ws?id=a") as client:
            await until(lambda: bool(one.sockets), "the worker has it")
            await one.close_all(1012, "shard moved")
            await until(lambda: asked == 1, "its client is called back")
            await fleet.hear("a", two, await fleet.own("a", two))
            go_on.set()
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(client.recv(), WAIT_S)
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, asked) == (1012, 1)
        await fleet.is_idle()


@MODES
async def test_a_shard_that_moves_while_its_worker_is_dialled_is_seen(mode: str) -> None:
    async with owning_worker("one") as one, owning_worker("two") as two, routed(mode) as fleet:
        await fleet.hear("a", one, await fleet.own("a", one))
        accepting, go_on = asyncio.Event(), asyncio.Event()
        app = one.app

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            async def hold(message: Any) -> None:
                if message["type"] == "websocket.accept":
                    accepting.set()
                    await go_on.wait()
                await send(message)

            await app(scope, receive, hold)

        async with _serving(one, slow):
            await fleet.hear("a", one, await fleet.own("a", one))
            opening = asyncio.ensure_future(says(fleet, "a"))
            await asyncio.wait_for(accepting.wait(), WAIT_S)
            await fleet.hear("a", two, await fleet.own("a", two))
            go_on.set()
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(opening, WAIT_S)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1012


def _serving(worker: OwningWorker, app: Any) -> Any:
    from contextlib import asynccontextmanager

    from tests.herdgate_gateway.gateways import serve

    @asynccontextmanager
    async def run() -> Any:
        async with serve(app, ws="websockets-sansio") as port:
            worker.url = f"ws://127.0.0.1:{port}"
            yield

    return run()


async def test_while_the_table_is_away_what_is_known_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    async with owning_worker("one") as one, routed() as fleet:
        await fleet.hear("a", one, await fleet.own("a", one))

        async def away(*_: object, **__: object) -> None:
            raise TableError("away")

        monkeypatch.setattr(fleet.table, "read_many", away)
        assert await says(fleet, "a") == "one: hello"
        assert (await denial(fleet, "b"))[1]["reason"] == "no_owner"


async def test_a_drawn_id_goes_to_some_owner_with_the_id_that_was_drawn() -> None:
    async with owning_worker("one") as one, routed(routes=[{"name": "default"}]) as fleet:
        mine = WorkerRow("one", "i", None, "UP", 1, 3_000, one.url, 100, 0)
        for shard in range(1_024):
            one.epochs[shard] = 1
            await fleet.table.write(take(FLEET, mine, shard, None))
        fleet.news({"owner": {}, "epochs": {str(shard): 1 for shard in range(1_024)}})
        await until(lambda: len(list(fleet.router.owners)) == 1_024, "all are known")
        await says(fleet, "")
        ((shard, epoch, drawn),) = one.stamps
        assert (shard, epoch) == (shard_of(drawn), 1)


@pytest.mark.parametrize(
    "news",
    [
        {"owner": {"worker": "w", "inc": "i", "addr": 5}, "epochs": {"1": 1}},
        {"owner": "w", "epochs": {"1": 1}},
        {"owner": {"worker": "w", "inc": "i", "addr": "ws://a:1"}, "epochs": [1]},
        {"owner": {"worker": "w", "inc": "i", "addr": "ws://a:1"}, "epochs": {"1024": 1, "x": 1, "-1": 1, "2": "1"}},
        {"owner": {"worker": "w", "inc": "i", "addr": "nowhere"}, "epochs": {"1": 1}},
        {"dead": 5},
        {"something": "else"},
    ],
)
async def test_news_that_makes_no_sense_changes_nothing(news: dict[str, Any]) -> None:
    async with owning_worker("one") as one, routed() as fleet:
        await fleet.hear("a", one, await fleet.own("a", one))
        fleet.news(news)
        assert await says(fleet, "a") == "one: hello"
        assert [worker.url for worker in fleet.gateway.pool.snapshot()] == [one.url]


async def test_an_owner_that_serves_no_clients_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    async with routed() as fleet:
        dials = OwningWorker(url="", name="dials")
        for name in ("a", "b"):
            await fleet.hear(name, dials, await fleet.own(name, dials))
            assert (await denial(fleet, name))[1]["reason"] == "no_owner"
    (line,) = [record.getMessage() for record in caplog.records if record.name == "herdgate.routing"]
    assert line.startswith("worker dials owns connections and serves no clients")


LIAR = {"worker": "liar", "inc": "x", "addr": "ws://127.0.0.1:1"}
LIES: dict[str, dict[str, Any]] = {
    "an owner that nobody is": {"owner": LIAR, "epochs": {str(shard_of("a")): 1 << 50}},
    "the owner, elsewhere": {"owner": {**LIAR, "worker": "one", "inc": "inc-one"}, "epochs": {str(shard_of("a")): 2}},
    "the owner's death": {"dead": "inc-one"},
    "all shards": {"owner": LIAR, "epochs": {str(shard): 9 for shard in range(1_024)}},
}


@pytest.mark.parametrize("lie", LIES)
async def test_news_that_lies_changes_nothing(lie: str) -> None:
    """Anybody who reaches Redis may write there, another fleet of the same name among them."""
    async with owning_worker("one") as one, routed() as fleet:
        await fleet.hear("a", one, await fleet.own("a", one))
        async with open_socket(fleet.port, "/ws?id=a") as stays:
            row = WorkerRow("one", "inc-one", None, "UP", 1, 3_000, one.url, 100, 0)
            await fleet.table.write(register(FLEET, row, None))
            fleet.news(LIES[lie])
            await fleet.hear("b", one, await fleet.own("b", one))  # what was told before it is through
            assert await says(fleet, "a") == "one: hello"
            await stays.send("still")
            assert await asyncio.wait_for(stays.recv(), WAIT_S) == "one: still"
            assert [worker.url for worker in fleet.gateway.pool.snapshot()] == [one.url]


async def test_a_worker_that_denies_what_is_its_own_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    async with owning_worker("one") as one, routed() as fleet:
        await fleet.hear("a", one, await fleet.own("a", one, tell_worker=False))
        for _ in range(2):
            await denial(fleet, "a")
    (line,) = [record.getMessage() for record in caplog.records if record.name == "herdgate.routing"]
    assert line == f"worker {one.url} refuses clients of shards that are its own by the table"


async def test_another_life_at_the_same_place_is_not_blamed_for_the_one_before() -> None:
    async with owning_worker("one") as one, routed() as fleet:
        one.url = closed_port()
        await fleet.hear("a", one, await fleet.own("a", one))
        for _ in range(6):
            await denial(fleet, "a")
        assert fleet.gateway.pool.snapshot()[0].state == "broken"
        assert (await denial(fleet, "a"))[1]["reason"] == "no_owner"
        await fleet.hear("a", one, await fleet.own("a", one, inc="next"), inc="next")
        assert fleet.gateway.pool.snapshot()[0].state == "up"
