"""`python -m herdgate_loadtest.engine`, and the Locust file that drives it."""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from herdgate_loadtest.engine.command import main
from tests.herdgate_loadtest.engine.servers import Peer, eventually, serving

ENGINE = [sys.executable, "-m", "herdgate_loadtest.engine"]
LOCUSTFILE = Path(__file__).parents[3] / "loadtest" / "locustfile.py"


async def run(*command: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode, out.decode(), err.decode()


def deny_every_other(peer: Peer) -> None:
    if len(peer.server.handshakes) % 2 and peer.ticket is None:
        peer.deny(retry_ms=50, ticket="1.abc")
    else:
        peer.admit()


def succeeded(code: int | None, record: dict[str, Any]) -> bool:
    """The run went well; on a busy machine it may have been marked invalid, and must have said so."""
    lag_only = [reason for reason in record["reasons"] if "scheduler lag" not in reason] == []
    return code == (0 if record["valid"] else 1) and lag_only


async def test_prints_one_record_and_succeeds() -> None:
    async with serving(deny_every_other) as server:
        code, out, err = await run(*ENGINE, "--url", server.url, "--clients", "obey=40,hint=10", "--hold", "0.1")
        record = json.loads(out)
        assert succeeded(code, record)
        assert err == ""
        assert record["event"] == "record"
        assert record["clients"] == 50
        assert record["behaviours"]["hint"]["back"] == 10
        assert record["rate"] == record["burst"] == 500
        assert record["answers"]["101"] == 50
        assert record["generator"]["lag_p99_ms"] > 0
        await eventually(lambda: not server.peers)


async def test_prints_every_event_as_a_json_line() -> None:
    async with serving(deny_every_other) as server:
        command = ("--url", server.url, "--clients", "20", "--ramp", "15", "--json-lines", "--cut", "close")
        code, out, _ = await run(*ENGINE, *command)
        events = [json.loads(line) for line in out.splitlines()]
        assert succeeded(code, events[-1])
        assert events[0]["event"] == "preflight"
        assert events[-1]["event"] == "record"
        counts = Counter(event["event"] for event in events)
        assert counts["cut"] == 1
        assert counts["snapshot"] >= 1
        attempts = [event for event in events if event["event"] == "attempt"]
        assert len(attempts) == len(server.handshakes)
        assert sum(event["outcome"] == "admitted" for event in attempts) == 40
        assert {event["answer"] for event in attempts} == {"101", "429 rate"}


async def test_crowd_that_does_not_come_back_is_a_failure() -> None:
    def admit_first(peer: Peer) -> None:
        if len(peer.server.handshakes) <= 3:
            peer.admit()
        else:
            peer.deny(503, retry_ms=100)

    async with serving(admit_first) as server:
        code, out, _ = await run(*ENGINE, "--url", server.url, "--clients", "3", "--deadline", "1.5")
        assert code == 1
        assert json.loads(out)["recovery_ratio"] == "Infinity"


async def test_crowd_that_does_not_come_up_is_a_failure_in_one_line() -> None:
    async with serving(Peer.reset) as server:
        code, out, err = await run(*ENGINE, "--url", server.url, "--clients", "3", "--deadline", "0.3")
        assert (code, out) == (1, "")
        assert err.startswith("error: only 0 of 3 clients came up")
        assert err.count("\n") == 1


async def test_ends_when_nobody_reads_its_events() -> None:
    async with serving(Peer.admit) as server:
        shell = f"'{sys.executable}' -m herdgate_loadtest.engine --url {server.url} --json-lines --hold 30 | head -1"
        code, out, err = await run("bash", "-c", f"set -o pipefail; {shell}")
        assert code == 130
        assert out.count("\n") == 1
        assert err == ""


async def test_output_that_cannot_be_written_is_a_failure_in_one_line() -> None:
    async with serving(Peer.admit) as server:
        shell = f"'{sys.executable}' -m herdgate_loadtest.engine --url {server.url} --clients 3 --hold 0 > /dev/full"
        code, _, err = await run("bash", "-c", shell)
        assert code == 130
        assert err == "error: standard output: No space left on device\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--url", "wss://127.0.0.1/"], "error: url: got wss://127.0.0.1/; write ws://"),
        (["--url", "ws://127.0.0.1/", "--clients", "40000"], "use 2 source addresses"),
        (["--url", "ws://127.0.0.1/", "--clients", "many"], "error: clients: got many"),
        (["--url", "ws://127.0.0.1/", "--clients", "polite=1"], "error: behaviour: got polite"),
        (["--url", "ws://127.0.0.1/", "--rate", "0"], "error: rate: got 0.0"),
        (["--url", "ws://127.0.0.1/", "--ramp", "-1"], "error: ramp: got -1.0"),
        (["--url", "ws://127.0.0.1/", "--sources", "0"], "error: sources: got 0"),
        (["--url", "ws://127.0.0.1/", "--sources", "here,there"], "error: sources: got here"),
        (["--url", "ws://127.0.0.1/", "--header", "novalue"], "error: header: got novalue"),
    ],
)
def test_bad_input_is_one_clear_line(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err
    assert err.count("\n") == 1


@pytest.mark.xdist_group("timing")
async def test_locust_reports_handshakes_and_recovery() -> None:
    async with serving(deny_every_other) as server:
        command = ("-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--only-summary", "--json")
        code, out, err = await run(
            sys.executable, *command, "--host", server.url, "--herd-clients", "obey=30", "--herd-rate", "100"
        )
        assert succeeded(code, json.loads(err.partition("herd: record ")[2].splitlines()[0]))
        entries = {entry["name"]: entry for entry in json.loads(out)}
        handshakes = entries["handshake"]
        assert handshakes["method"] == "WS"
        assert handshakes["num_requests"] == len(server.handshakes)
        assert handshakes["num_failures"] == 0
        assert entries["back: obey"]["num_requests"] == 30
        assert entries["denied: 429 rate"]["num_requests"] == len(server.handshakes) - 60
        await eventually(lambda: not server.peers)


async def test_locust_that_is_stopped_early_stops_the_engine_and_fails() -> None:
    async with serving(Peer.admit) as server:
        command = ("-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--only-summary", "-t", "2")
        code, _, err = await run(
            sys.executable, *command, "--host", server.url, "--herd-clients", "100", "--herd-rate", "10"
        )
        assert code == 1, err
        assert "Traceback" not in err
        await eventually(lambda: not server.peers)
