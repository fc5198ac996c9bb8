"""`herdgate herd` from the outside: Locust, its processes, real sockets, what is printed and written."""

import asyncio
import json
import re
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.herdgate_loadtest.engine.servers import Peer, Server, eventually, server_frame, serving
from tests.servers import uvicorn

HERDGATE = (sys.executable, "-c", "from herdgate.cli import main; main()", "herd")
LOCUSTFILE = Path(__file__).parents[3] / "loadtest" / "locustfile.py"
RUN_S = 90


async def run(*command: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(), RUN_S)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
    return process.returncode, out.decode(), err.decode()


async def herd(*options: str) -> tuple[int | None, list[dict[str, Any]], str]:
    code, out, err = await run(*HERDGATE, *options, "--json")
    return code, [json.loads(line) for line in out.splitlines()], err


def only_lag(record: dict[str, Any]) -> bool:
    """On a busy machine a run may be marked invalid for that, and then must say so."""
    busy = ("scheduler lag", "the last process cut")
    return all(any(words in reason for words in busy) for reason in record["reasons"])


def deny_every_other(peer: Peer) -> None:
    if len(peer.server.handshakes) % 2 and peer.ticket is None:
        peer.deny(retry_ms=50, ticket="1.abc")
    else:
        peer.admit()


@pytest.mark.xdist_group("timing")
async def test_two_processes_are_one_herd_round_after_round(tmp_path: Path) -> None:
    report, locusts = tmp_path / "herd.html", tmp_path / "locust.html"
    async with serving(deny_every_other) as server:
        code, records, err = await herd(
            *(server.url, "--clients", "obey=30,fixed:1=10", "--rate", "100", "--processes", "2", "--rounds", "2"),
            *("--report", str(report), "--locust-html", str(locusts), "--max-failed", "0"),
        )
        await eventually(lambda: not server.peers)
    assert [only_lag(record) for record in records] == [True, True], err
    assert code == (0 if all(record["valid"] for record in records) else 1)
    for record in records:
        assert (record["clients"], record["processes"], record["failed"]) == (40, 2, 0)
        assert record["behaviours"]["fixed"]["back"] == 10
        assert record["answers"]["101"] == 40
        assert 0 <= record["skew_ms"] < 1000
    page = report.read_text()
    assert page.count("<svg") == 4
    assert "Round 2" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "WS" in locusts.read_text()


async def test_every_message_comes_back_or_is_a_failure() -> None:
    def echo(peer: Peer) -> None:
        peer.admit()
        peer.transport.set_protocol(Echo(peer))

    async with serving(echo) as server:
        code, out, err = await run(
            *(sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless", "--only-summary", "--json"),
            *("--host", server.url, "--herd-clients", "5", "--herd-hold", "2", "--herd-messages", "50"),
        )
    entries = {entry["name"]: entry for entry in json.loads(out)}
    assert code is not None
    assert entries["message"]["num_requests"] > 50, err
    assert entries["message"]["num_failures"] == 0
    assert entries["handshake"]["num_requests"] == 10
    assert entries["back: obey"]["num_requests"] == 5


class Echo(asyncio.Protocol):
    """Sends each short masked text frame back."""

    def __init__(self, peer: Peer) -> None:
        self.peer, self.data = peer, b""

    def data_received(self, data: bytes) -> None:
        self.data += data
        while len(self.data) >= 6 and len(self.data) >= (end := 6 + (self.data[1] & 0x7F)):
            mask, payload = self.data[2:6], self.data[6:end]
            text = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
            self.peer.send(server_frame(self.data[0] & 0x0F, text))
            self.data = self.data[end:]

    def connection_lost(self, exc: BaseException | None) -> None:
        self.peer.connection_lost(exc)


@pytest.mark.xdist_group("timing")
async def test_bound_that_is_missed_is_a_failure_in_one_line() -> None:
    async with serving(Peer.admit) as server:
        code, records, err = await herd(server.url, "--clients", "5", "--hold", "0", "--max-attempts", "0.5")
    assert code == 1
    assert len(records) == 1
    assert "round 1: attempts_per_client was 1, may be 0.5 at most\n" in err


async def test_killed_server_is_watched_until_another_one_takes_over() -> None:
    with uvicorn("tests.apps:alone") as first, uvicorn("tests.apps:alone") as second:
        urls = [f"ws://127.0.0.1:{server.port}/echo" for server in (first, second)]
        code, records, err = await herd(
            *(*urls, "--failover", "--clients", "20", "--rate", "50", "--cut", "kill", "--kill-pid", str(first.pid)),
        )
    (record,) = records
    assert only_lag(record), err
    assert code == (0 if record["valid"] else 1)
    assert record["clients"] == 10
    assert record["behaviours"]["obey"]["back"] == 10


@pytest.mark.parametrize("option", ["--report", "--locust-html"])
async def test_report_that_cannot_be_written_takes_no_figure_away(option: str) -> None:
    async with serving(Peer.admit) as server:
        code, records, err = await herd(server.url, "--clients", "3", "--hold", "0", option, "/dev/full")
    assert (code, len(records)) == (1, 1)
    assert f"{option}: /dev/full cannot be written (No space left on device); name another file\n" in err
    assert "Traceback" not in err


async def test_port_where_nobody_listens_is_a_failure_in_one_line() -> None:
    async with serving(Peer.admit) as server:
        url = server.url
    code, records, err = await herd(url, "--clients", "10")
    assert (code, records) == (1, [])
    assert re.search(
        r"nobody listens at 127\.0\.0\.1:\d+ \(refused: \d+\): start the server, or correct the URL\n", err
    )
    assert "Traceback" not in err


async def test_crowd_that_does_not_come_back_is_a_failure() -> None:
    def admit_first(peer: Peer) -> None:
        if len(peer.server.handshakes) <= 3:
            peer.admit()
        else:
            peer.deny(503, retry_ms=100)

    async with serving(admit_first) as server:
        code, records, _ = await herd(server.url, "--clients", "3", "--deadline", "2")
    assert code == 1
    assert records[0]["recovery_ratio"] == "Infinity"


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(("processes", "members"), [(1, 2), (2, 5)])
async def test_herd_that_is_stopped_says_so_in_one_line_and_leaves_nothing_behind(
    sign: signal.Signals, code: int, processes: int, members: int
) -> None:
    async with serving(Peer.admit) as server:
        process, family = await started(server, "--processes", str(processes))
        await eventually(lambda: len(server.peers) == 20, within_s=40)
        assert len(family()) == members
        told = await stopped(process, sign, family())
        await eventually(lambda: not server.peers, within_s=20)
    assert told == (code, f"herdgate: {sign.name}: everybody has left; a herd that is stopped proves nothing\n")


async def test_herd_that_is_stopped_while_it_starts_says_the_same() -> None:
    async with serving(Peer.admit) as server:
        process, family = await started(server, "--processes", "2")
        await eventually(lambda: bool(family()), within_s=40)
        code, said = await stopped(process, signal.SIGINT, family())
    assert code == 130
    assert said.startswith("herdgate: SIGINT: ")
    assert said.count("\n") == 1


async def test_herd_whose_master_is_killed_is_a_failure_in_one_line_and_leaves_nothing_behind() -> None:
    async with serving(Peer.admit) as server:
        process, family = await started(server, "--processes", "2")
        await eventually(lambda: len(server.peers) == 20, within_s=40)
        members = family()
        (master,) = psutil.Process(process.pid).children()
        master.kill()
        _, err = await asyncio.wait_for(process.communicate(), 30)
        await eventually(lambda: not any(map(lives, members)) and not server.peers, within_s=20)
    said = "herdgate: Locust was ended by SIGKILL, and everybody has left: run it again\n"
    assert (process.returncode, err.decode()) == (1, said)


async def test_master_that_waits_for_workers_is_stopped_as_well() -> None:
    options = ("--master", "--expect-workers", "2", "--master-port", "0")
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *HERDGATE, "ws://127.0.0.1:9/", *options, stdout=nowhere, stderr=pipe
    )
    assert process.stderr is not None
    await asyncio.wait_for(process.stderr.readuntil(b"Waiting for workers to be ready, 0 of 2"), 40)
    code, said = await stopped(process, signal.SIGINT, psutil.Process(process.pid).children(recursive=True))
    assert code == 130
    assert said.endswith("herdgate: SIGINT: everybody has left; a herd that is stopped proves nothing\n")
    assert "Traceback" not in said


async def started(
    server: Server, *options: str
) -> tuple[asyncio.subprocess.Process, Callable[[], list[psutil.Process]]]:
    """A herd of 20, and who belongs to it."""
    process = await asyncio.create_subprocess_exec(
        *(*HERDGATE, server.url, "--clients", "20", "--hold", "60", "--json", *options), stderr=asyncio.subprocess.PIPE
    )
    return process, lambda: psutil.Process(process.pid).children(recursive=True)


async def stopped(
    process: asyncio.subprocess.Process, sign: signal.Signals, family: list[psutil.Process]
) -> tuple[int | None, str]:
    """The exit code, and what was said, once nobody of the family is left."""
    process.send_signal(sign)
    _, err = await asyncio.wait_for(process.communicate(), 30)
    await eventually(lambda: not any(map(lives, family)), within_s=20)
    return process.returncode, err.decode()


async def test_options_are_fields_of_locusts_page_and_the_token_shows_dots() -> None:
    asks = (
        "import sys, locust.argument_parser as parser; sys.argv = ['locust']",
        "import herdgate_loadtest.herd.locust_classes",
        "fields = parser.ui_extra_args_dict([])",
        "print('herd_cut' in fields, [name for name, field in fields.items() if field['is_secret']])",
    )
    code, out, err = await run(sys.executable, "-c", "\n".join(asks))
    assert (code, out) == (0, "True ['herd_token']\n"), err


def lives(process: psutil.Process) -> bool:
    return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("wss://127.0.0.1/",), "URL: got wss://127.0.0.1/; write ws://HOST"),
        (("ws://127.0.0.1/", "--rate", "0"), "--rate: got 0.0; write admissions per second"),
        (("ws://127.0.0.1/", "--clients", "40000"), "40,000 clients will not do: they need 40,000 ports, one source"),
        (("ws://127.0.0.1/", "--processes", "0"), "--processes: got 0; write a number, 1 or more"),
        (("ws://127.0.0.1/", "--cut", "kill"), "--kill-pid: got none; write --cut kill"),
        (("ws://127.0.0.1/", "--cut", "drain"), "--gateway: got none; write the admin listener or control socket"),
        (("ws://127.0.0.1/", "--report", "/none/a.html"), "--report: got /none/a.html; name a file in a folder"),
        (("ws://127.0.0.1/", "--locust-html", "/none/a.html"), "--locust-html: got /none/a.html; name a file in a"),
        (("ws://127.0.0.1/", "--web", "here"), "--web: got here; write HOST:PORT"),
    ],
)
async def test_bad_input_is_one_line_and_nothing_is_run(options: tuple[str, ...], complaint: str) -> None:
    code, out, err = await run(*HERDGATE, *options)
    assert (code, out) == (2, "")
    assert err.startswith(f"herdgate: {complaint}")
    assert err.count("\n") == 1
