"""`herdgate demo --fleet` from the outside."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.herdgate_loadtest.demo.demos import HERDGATE, is_over, run_demo
from tests.herdgate_loadtest.owned.fleets import check_needs
from tests.servers import poll

pytestmark = [pytest.mark.xdist_group("owned-fleet"), pytest.mark.timeout(300)]


@contextmanager
def running_demo(*options: str) -> Iterator[tuple[subprocess.Popen[str], list[psutil.Process]]]:
    """The demo, and all processes of its fleet, once clients come."""
    check_needs()
    command = [*HERDGATE, "demo", "--fleet", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as demo:
        try:
            us = psutil.Process(demo.pid)
            poll(lambda: demo.poll() is not None or len(us.net_connections()) > 20, "clients are in", within_s=150)
            assert demo.poll() is None, demo.communicate()
            yield demo, us.children(recursive=True)
        finally:
            demo.kill()


def run_without(*programs: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The demo where these are not installed."""
    found = {name: shutil.which(name) for name in ("redis-server", "ministack", "setpriv") if name not in programs}
    for name, path in found.items():
        if path is not None:
            (folder / name).symlink_to(path)
    return run_demo("--fleet", "--herd", "5", "--once", cwd=folder, env={**os.environ, "PATH": str(folder)})


def test_worker_and_gateway_are_killed_and_everybody_comes_back() -> None:
    check_needs()
    finished = run_demo("--fleet", "--herd", "200", "--rate", "100", "--once", "--json", within_s=280)

    assert finished.stderr == ""
    (line,) = finished.stdout.splitlines()
    told: dict[str, Any] = json.loads(line)
    worker, gateway = told["losses"]
    assert finished.returncode == (0 if told["valid"] else 1)
    for loss in (worker, gateway):
        record = loss["record"]
        assert [reason for reason in record["reasons"] if "scheduler lag" not in reason] == []
        assert record["behaviours"]["obey"]["back"] == record["clients"] > 30
        assert (record["failed"], loss["back_s"]) == (0, record["t100_s"])
    assert (worker["killed"], gateway["killed"]) == ("worker-1", "gateway-1")
    assert 0 < worker["owned_s"] < 30
    assert gateway["owned_s"] is None
    assert gateway["record"]["leaked_permits"] == 0


def test_process_that_ends_by_itself_ends_the_demo_in_one_line_and_all_the_others() -> None:
    with running_demo("--herd", "400", "--rate", "20", "--once", "--json") as (demo, fleet):
        (gateway,) = (each for each in fleet if any("gateway-2" in word for word in each.cmdline()))
        gateway.kill()
        out, err = demo.communicate(timeout=60)

        assert (demo.returncode, out, err) == (
            1,
            "",
            "herdgate: gateway-2 has ended by signal 9: start the demo again\n",
        )
        poll(lambda: all(is_over(process) for process in fleet), "all end", within_s=30)


def test_ctrl_c_ends_the_demo_and_all_of_its_processes() -> None:
    with running_demo("--herd", "400", "--rate", "20") as (demo, fleet):
        demo.send_signal(signal.SIGINT)
        out, err = demo.communicate(timeout=60)

        assert (demo.returncode, err) == (130, "")
        assert out.startswith("a fleet that loses a worker, then a gateway; Ctrl-C ends it\n")
        poll(lambda: all(is_over(process) for process in fleet), "all end", within_s=30)


def test_missing_redis_is_one_line_with_the_way_out(tmp_path: Path) -> None:
    finished = run_without("redis-server", folder=tmp_path)

    assert finished.returncode == 2
    (line,) = finished.stderr.splitlines()
    assert line.startswith("herdgate: there is no redis-server on the PATH: ")
    assert "scripts/setup" in line


def test_missing_emulator_is_one_line_with_the_way_out(tmp_path: Path) -> None:
    check_needs()
    finished = run_without("ministack", folder=tmp_path)

    told = "herdgate: there is no ministack on the PATH or in .emulator: run scripts/setup\n"
    assert (finished.returncode, finished.stderr) == (2, told)
