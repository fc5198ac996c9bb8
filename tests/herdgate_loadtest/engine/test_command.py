"""`python -m herdgate_loadtest.engine`, and the Locust file that drives it."""

import asyncio
import json
import re
import sys
import time
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from herdgate_loadtest.engine import BEHAVIOURS, CrowdConfig, Cut
from herdgate_loadtest.engine.command import main
from herdgate_loadtest.engine.options import as_typed
from herdgate_loadtest.errors import ConfigurationError
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
        (["--url", "wss://127.0.0.1/"], "--url: got wss://127.0.0.1/; write ws://"),
        (["--url", "ws://127.0.0.1/ä"], "--url: got 'ws://127.0.0.1/\\xe4'; write printable ASCII"),
        (["--clients", "40000"], "use 2 source addresses"),
        (["--clients", "many"], "--clients: got many; write a number, or pairs"),
        (["--clients", "0"], "--clients: got 0; write at least one"),
        (["--clients", "polite=1"], "--clients: got polite; write one of obey"),
        (["--clients", "fixed:0=1"], "--clients: got 0.0; write seconds"),
        (["--rate", "0"], "--rate: got 0.0; write admissions per second"),
        (["--rate", "inf"], "--rate: got inf; write admissions per second"),
        (["--rate", "fast"], "--rate: got fast; write a number"),
        (["--ramp", "-1"], "--ramp: got -1.0; write clients per second"),
        (["--ramp", "0"], "--ramp: got 0.0; write clients per second"),
        (["--burst", "nan"], "--burst: got nan; write admissions, 0 or more"),
        (["--hold", "-1"], "--hold: got -1.0; write seconds, 0 or more"),
        (["--hold", "nan"], "--hold: got nan; write seconds, 0 or more"),
        (["--deadline", "inf"], "--deadline: got inf; write seconds, 0 or more"),
        (["--deadline", "-1"], "--deadline: got -1.0; write seconds, 0 or more"),
        (["--timeout", "0"], "--timeout: got 0.0; write seconds, 0.01 or more"),
        (["--spread", "nan"], "--spread: got nan; write seconds, 0 or more"),
        (["--expect", "3"], "--expect: got 3; leave it out, or write --cut observe, not reset"),
        (["--cut", "observe", "--expect", "1001"], "--expect: got 1001; write a number of clients, 1 to 1000"),
        (["--cut", "observe", "--expect", "0"], "--expect: got 0; write a number of clients, 1 to 1000"),
        (["--cut", "observe", "--expect", "some"], "--expect: got some; write a whole number"),
        (["--cut", "loose"], "--cut: invalid choice: 'loose' (choose from "),
        (["--seed", "1.5"], "--seed: got 1.5; write a whole number"),
        (["--sources", "0"], "--sources: got 0; write a number from 1"),
        (["--sources", "here,there"], "--sources: got here; write IP addresses"),
        (["--header", "novalue"], "--header: got novalue; write 'Name: value'"),
        (["--header", "X: ä"], "--header: got X: ä; write printable ASCII"),
        (["--origin", "ä"], "--origin: got Origin: ä; write printable ASCII"),
        (["--subprotocol", "ä"], "--subprotocol: got Sec-WebSocket-Protocol: ä; write printable ASCII"),
        (["--nix"], "unrecognized arguments: --nix; --help shows every option"),
    ],
)
def test_bad_input_is_one_clear_line(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    url = [] if "--url" in arguments else ["--url", "ws://127.0.0.1/"]
    assert main([*url, *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert complaint in err
    assert err.count("\n") == 1


def test_option_that_is_missing_is_one_clear_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "error: the following arguments are required: --url; --help shows every option\n")


def test_every_setting_of_a_crowd_has_its_option() -> None:
    for setting in fields(CrowdConfig):
        shown = as_typed(ConfigurationError(setting.name, 1, "do"))
        assert re.fullmatch(r"--[a-z]+: got 1; do", shown), shown


def test_help_tells_defaults_choices_and_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    told = " ".join(capsys.readouterr().out.split())
    for words in (
        *("(default: 1000)", "(default: 500.0)", "(default: one second of the rate)", "(default: 120.0)"),
        *(f" {name} " for name in (*BEHAVIOURS, *get_args(Cut))),
        *("exit code: 0 everybody is back", "1 not so", "2 nothing was run", "130 interrupted"),
    ):
        assert words in told


async def test_port_where_nobody_listens_is_a_failure_in_one_line_within_seconds() -> None:
    async with serving(Peer.admit) as server:
        url = server.url
    began = time.monotonic()
    code, out, err = await run(*ENGINE, "--url", url, "--clients", "200", "--rate", "200")
    host = url.removeprefix("ws://").removesuffix("/ws")
    assert (code, out) == (1, "")
    assert re.fullmatch(
        rf"error: nobody listens at {host} \(refused: \d+\): start the server, or correct the URL\n", err
    )
    assert time.monotonic() - began < 20, "not the deadline of two minutes"


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
