"""`herdgate replay` from the outside: real sockets, what is printed and written."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.herdgate_loadtest.engine.servers import Peer, serving
from tests.servers import uvicorn

HERDGATE = (sys.executable, "-c", "from herdgate.cli import main; main()", "replay")
ALB = str(Path(__file__).parents[3] / "loadtest" / "traces" / "alb-cut.jsonl")


async def replay(*arguments: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *HERDGATE, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), 90)
    return process.returncode, out.decode(), err.decode()


def trace(folder: Path, *events: dict[str, Any]) -> str:
    file = folder / "trace.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in ({"herdgate_trace": 1}, *events)))
    return str(file)


def cut(t: float, client: str) -> dict[str, Any]:
    return {"t": t, "event": "close", "socket": client, "client": client, "how": "reset"}


def succeeded(code: int | None, record: dict[str, Any]) -> bool:
    """On a busy machine a run may be marked invalid for that, and then must say so."""
    return code == (0 if record["valid"] else 1) and all("lag" in reason for reason in record["reasons"])


async def test_a_trace_is_played_and_its_record_printed(tmp_path: Path) -> None:
    report = tmp_path / "replay.html"
    events = [cut(1.0 + number / 10, f"c{number}") for number in range(5)]
    events.append({"t": 1.6, "event": "open", "socket": "new", "client": "new"})
    async with serving(Peer.admit) as server:
        file = trace(tmp_path, *events)
        code, out, err = await replay(file, server.url, "--speed", "2", "--report", str(report), "--json")
        record = json.loads(out)
        assert succeeded(code, record), err
        assert (record["clients"], record["cuts"], record["failed"]) == (6, 6, 0)
        assert len(server.handshakes) == 5 + 6
        at = [peer.at for peer in server.handshakes[5:]]
        assert 0.15 <= max(at) - min(at) < 8
    page = report.read_text()
    assert page.count("<svg") == 2
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.xdist_group("timing")
async def test_a_gate_keeps_its_rate_in_the_cut_of_a_balancer() -> None:
    limits = {"rate": 50, "burst": 5}
    options = ("--from", "299", "--population", "0.1", "--rate", "50", "--burst", "5", "--ramp", "40", "--json")
    with uvicorn("tests.apps:alone", limits=limits) as guarded, uvicorn("tests.apps:alone") as open_to_all:
        code, out, err = await replay(ALB, f"ws://127.0.0.1:{guarded.port}/echo", *options)
        kept = json.loads(out)
        _, out, _ = await replay(ALB, f"ws://127.0.0.1:{open_to_all.port}/echo", *options)
        peak = json.loads(out)
    assert succeeded(code, kept), err
    assert kept["clients"] > 150
    assert kept["denied"] > 0
    assert kept["peak_admitted_per_s"] <= 1.3 * 50, "what clients see is as late as they are"
    assert peak["peak_admitted_per_s"] > 2.5 * 50
    assert peak["beyond_bucket"] > 100


async def test_people_are_told_what_is_played_and_what_came_of_it(tmp_path: Path) -> None:
    async with serving(Peer.admit) as server:
        code, out, _ = await replay(trace(tmp_path, cut(0.1, "a")), server.url)
    assert code in (0, 1)
    assert out.startswith("1 client, 1 of them there at the start; 0 newcomers and 1 cut in 0.1 s\n")
    assert "s after the first cut (ideal 0.0 s), 1.00 tries each\n" in out


async def test_behaviours_are_shared_out(tmp_path: Path) -> None:
    file = trace(tmp_path, *(cut(0.1, f"c{number}") for number in range(10)))
    async with serving(Peer.admit) as server:
        _, out, _ = await replay(file, server.url, "--behaviour", "obey=4,fixed:2=1", "--json")
    behaviours = json.loads(out)["behaviours"]
    assert {name: kind["clients"] for name, kind in behaviours.items()} == {"obey": 8, "fixed:2": 2}


async def test_bound_that_is_missed_is_a_failure_in_one_line(tmp_path: Path) -> None:
    file = trace(tmp_path, *(cut(0.1, f"c{number}") for number in range(10)))
    async with serving(Peer.admit) as server:
        code, _, err = await replay(file, server.url, "--burst", "1", "--max-peak", "5", "--json")
    assert (code, err) == (1, "herdgate: round 1: peak_admitted_per_s was 9, may be 5 at most\n")


@pytest.mark.parametrize(
    ("events", "options"),
    [
        ([], ()),
        ([{"t": 0, "event": "open", "socket": 1, "client": "a"}], ()),
        ([cut(0.1, "a"), {"t": 5, "event": "open", "socket": 1, "client": "a"}], ("--from", "3")),
        ([cut(0.1, "a")], ("--population", "1e-9")),
    ],
)
async def test_trace_without_a_cut_is_one_line_and_nothing_is_run(
    tmp_path: Path, events: list[dict[str, Any]], options: tuple[str, ...]
) -> None:
    code, out, err = await replay(trace(tmp_path, *events), "ws://127.0.0.1:9/", *options)
    assert (code, out) == (2, "")
    assert "trace.jsonl: nobody is cut off, as far as it is played; " in err
    assert err.count("\n") == 1


async def test_trace_whose_clients_have_all_left_in_the_end_shows_nothing(tmp_path: Path) -> None:
    back = {"t": 0.5, "event": "open", "socket": "b", "client": "a"}
    left = {"t": 2, "event": "close", "socket": "b", "client": "a", "how": "close"}
    async with serving(Peer.admit) as server:
        code, out, _ = await replay(trace(tmp_path, cut(0.1, "a"), back, left), server.url, "--json")
    record = json.loads(out)
    assert (code, record["clients"], record["valid"]) == (1, 0, False)
    assert any(reason.startswith("everybody who was cut off had left in the end") for reason in record["reasons"])


async def test_report_that_cannot_be_written_takes_no_figure_away(tmp_path: Path) -> None:
    async with serving(Peer.admit) as server:
        code, out, err = await replay(trace(tmp_path, cut(0.1, "a")), server.url, "--report", "/dev/full", "--json")
    assert (code, json.loads(out)["clients"]) == (1, 1)
    assert err == "herdgate: --report: /dev/full cannot be written (No space left on device); name another file\n"


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--speed", "0"), "--speed: got 0.0; write a factor"),
        (("--from", "1000"), "--from: got 1000.0; write seconds of the trace, 0 to 300.25"),
        (("--rate", "0"), "--rate: got 0.0; write a number, more than 0"),
        (("--burst", "-1"), "--burst: got -1.0; write admissions, 0 or more"),
        (("--behaviour", "polite"), "--behaviour: got polite; write one of obey"),
        (("--population", "100"), "189,"),
        (("--timeout", "0"), "--timeout: got 0.0; write seconds, 0.01 or more"),
        (("--spread", "-1"), "--spread: got -1.0; write seconds, 0 or more"),
        (("--sources", "0"), "--sources: got 0; write a number from 1 to 65536"),
        (("--report", "/none/replay.html"), "--report: got /none/replay.html; name a file in a folder that exists"),
    ],
)
async def test_bad_input_is_one_line_and_nothing_is_run(options: tuple[str, ...], complaint: str) -> None:
    enter = () if "--from" in options else ("--from", "300")
    code, out, err = await replay(ALB, "ws://127.0.0.1:9/", *enter, *options, "--json")
    assert (code, out) == (2, "")
    assert err.startswith(f"herdgate: {complaint}")
    assert err.count("\n") == 1


async def test_url_that_cannot_be_is_told_before_anything_else(tmp_path: Path) -> None:
    code, out, err = await replay(trace(tmp_path, cut(0.1, "a")), "wss://127.0.0.1:9/")
    assert (code, out) == (2, "")
    assert (
        err == "herdgate: URL: got wss://127.0.0.1:9/; write ws://HOST:PORT/PATH, without TLS, user name and port 0\n"
    )


async def test_file_that_is_no_trace_is_one_line() -> None:
    code, _, err = await replay("pyproject.toml", "ws://127.0.0.1:9/")
    assert (code, err) == (2, "herdgate: pyproject.toml: line 1: no JSON object; a trace has one a line\n")
