"""`herdgate serve --trace`: what is written of sockets and refusals, and that no client key is."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from herdgate import Limits
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import Client
from herdgate_gateway.trace import Trace, TracedGate
from tests.herdgate_gateway.gateways import echo_worker, until
from tests.herdgate_gateway.serving import herdgate, serving

KEY = "a very secret account"
ARRIVAL = Arrival(Client(KEY, "192.0.2.1"))


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("mode", ["splice", "messages"])
async def test_sockets_and_refusals_of_a_gateway_are_traced(mode: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    async with echo_worker() as worker:
        toml = f'rate = 0.001\nburst = 1\nmax_wait_s = 0\n[relay]\nmode = "{mode}"'
        with serving(toml, worker.url, by=("sh", "-c", f'exec "$0" "$@" --trace {path}')) as gateway:
            url = f"ws://127.0.0.1:{gateway.port}/"
            async with connect(url) as client:
                await client.send("hello")
                assert await client.recv() == "hello"
                with pytest.raises(InvalidStatus):
                    await connect(url)
            await until(lambda: len(read(path)) >= 4, "it is written within a second or so", within_s=10)
    header, *events = read(path)
    assert header["herdgate_trace"] == 1
    assert [event["event"] for event in events] == ["open", "denied", "close"]
    opened, denied, closed = events
    assert opened["socket"] == closed["socket"]
    assert opened["client"] == closed["client"] == denied["client"]
    assert denied["reason"] == "rate"
    assert 0 <= opened["t"] <= denied["t"] <= closed["t"]
    assert "127.0.0.1" not in path.read_text()


async def test_client_key_is_hashed_with_a_salt_of_the_trace(tmp_path: Path) -> None:
    names = []
    for number in range(2):
        path = tmp_path / f"{number}.jsonl"
        with Trace(path) as trace:
            gate = TracedGate(trace, Limits(rate=None))
            for _ in range(2):
                admitted = await gate.decide(ARRIVAL)
                assert isinstance(admitted, Admitted)
        assert KEY not in path.read_text()
        _, first, second = read(path)
        assert first["client"] == second["client"]
        assert first["socket"] != second["socket"]
        names.append(first["client"])
    assert names[0] != names[1]


async def test_socket_ends_once_however_often_its_permit_is_released(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with Trace(path) as trace:
        gate = TracedGate(trace, Limits(rate=None))
        verdicts: list[Admitted | Denied] = []
        gate.ask(ARRIVAL, verdicts.append)
        (admitted,) = verdicts
        assert isinstance(admitted, Admitted)
        admitted.permit.opened()
        assert gate.snapshot().open == 1
        admitted.permit.release()
        admitted.permit.release()
        assert gate.snapshot().open == 0
    assert [line.get("event") for line in read(path)] == [None, "open", "close"]


async def test_who_is_let_past_is_traced_too(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    with Trace(path) as trace:
        TracedGate(trace, Limits(rate=0)).let_past(ARRIVAL.client, exempt=True).release()
    assert [line.get("event") for line in read(path)] == [None, "open", "close"]


def test_permit_moves_to_the_worker_that_has_it(tmp_path: Path) -> None:
    with Trace(tmp_path / "trace.jsonl") as trace:
        permit = TracedGate(trace, Limits(rate=None)).let_past(ARRIVAL.client, exempt=True)
        permit.move("ws://b")
        assert permit.worker is None, "it is for none in particular"


def test_disk_that_is_full_ends_the_trace_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    trace = Trace(tmp_path / "trace.jsonl")
    trace.close()
    trace._file = full.open("w", buffering=1)
    with caplog.at_level(logging.ERROR, logger="herdgate.gateway"):
        trace.opened(ARRIVAL.client)()
        trace.close()
    assert [record.message for record in caplog.records] == ["the trace ends here: No space left on device"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--trace", "pyproject.toml"), "herdgate: --trace: got pyproject.toml; name a new file that can be made"),
        (("--trace", "/nowhere/t"), "herdgate: --trace: got /nowhere/t; name a new file that can be made"),
        (("--trace", "new", "--processes", "2"), "herdgate: --trace: got new; leave it out, or serve with one process"),
    ],
)
def test_trace_that_cannot_be_made_is_one_line(arguments: tuple[str, ...], told: str) -> None:
    where = ("--listen", "127.0.0.1:0", "--admin", "off", "--rate", "1", "--worker", "ws://127.0.0.1:9")
    finished = herdgate("serve", *where, *arguments)
    assert finished.returncode == 2
    assert finished.stderr.startswith(told)
    assert finished.stderr.count("\n") == 1
