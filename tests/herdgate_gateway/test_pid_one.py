"""A shell as PID 1: in namespaces of processes that are real, and as a table of what proc(5) may show."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from herdgate_gateway.pid_one import shell_above
from tests.herdgate_gateway.serving import HERDGATE
from tests.needs import unmet
from tests.servers import ROOT, START_S, poll

WARNING = "PID 1 is a shell (sh), which passes no SIGTERM on: this process will be killed instead of drained"

TOML = 'listen = ["127.0.0.1:0"]\nrate = 5\nworkers = ["ws://127.0.0.1:9"]\nadmin = { listen = "off" }\n'


def test_a_shell_that_started_it_is_named(tmp_path: Path) -> None:
    processes(tmp_path, {1: (0, "/bin/sh"), 7: (1, "timeout"), 9: (7, "python")})
    assert shell_above(9, tmp_path) == "sh"
    assert shell_above(1, tmp_path) is None, "a shell that was replaced by exec is not there"


@pytest.mark.parametrize("first", ["/sbin/init", "/usr/bin/tini", "herdgate", ""])
def test_what_is_no_shell_is_none(tmp_path: Path, first: str) -> None:
    processes(tmp_path, {1: (0, first), 9: (1, "python")})
    assert shell_above(9, tmp_path) is None


@pytest.mark.parametrize("shell", ["bash", "/bin/ash", "-bash", "/bin/dash", "/bin/busybox"])
def test_every_shell_is_one(tmp_path: Path, shell: str) -> None:
    processes(tmp_path, {1: (0, shell), 9: (1, "python")})
    assert shell_above(9, tmp_path) == shell.rpartition("/")[2].lstrip("-")


def test_who_came_into_the_container_later_is_not_below_its_shell(tmp_path: Path) -> None:
    processes(tmp_path, {1: (0, "sh"), 8: (0, "bash"), 9: (8, "python")})
    assert shell_above(9, tmp_path) is None


def test_where_nothing_is_to_be_seen_there_is_none(tmp_path: Path) -> None:
    assert shell_above(9, tmp_path) is None
    processes(tmp_path, {9: (1, "python")})
    assert shell_above(9, tmp_path) is None


def processes(folder: Path, shown: dict[int, tuple[int, str]]) -> None:
    """Parents and first words, by number."""
    for pid, (parent, first) in shown.items():
        (folder / str(pid)).mkdir()
        (folder / str(pid) / "stat").write_text(f"{pid} (a) b (c)) S {parent} 0 0")
        (folder / str(pid) / "cmdline").write_bytes(f"{first}\0serve\0".encode())


@contextmanager
def contained(command: str, *, script: bool = False) -> Iterator["subprocess.Popen[bytes]"]:
    """A shell command, or a script, as PID 1 of a namespace of its own; its log is `log` in its folder."""
    if shutil.which("unshare") is None:
        unmet("unshare (apt-get install util-linux)")
    if os.geteuid() != 0:
        unmet("root")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "herdgate.toml").write_text(TOML)
        (folder / "entry").write_text(f"#!/bin/sh\n{command}\n")
        (folder / "entry").chmod(0o755)
        first = [str(folder / "entry")] if script else ["sh", "-c", command]
        environ = {**os.environ, "HERDGATE_CONFIG": str(folder / "herdgate.toml")}
        with subprocess.Popen(
            ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", *first],
            cwd=ROOT,
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                yield process
            finally:
                process.kill()


def said(process: "subprocess.Popen[bytes]", what: str) -> str:
    """All that it says until this is in it, or it has ended."""
    assert process.stderr is not None
    os.set_blocking(process.stderr.fileno(), False)
    heard: list[bytes] = []

    def is_said() -> bool:
        heard.append((process.stderr and process.stderr.read()) or b"")
        return what in b"".join(heard).decode() or process.poll() is not None

    poll(is_said, f"it says {what}", within_s=START_S)
    return b"".join(heard).decode()


WORDS = " ".join([HERDGATE[0], HERDGATE[1], f"'{HERDGATE[2]}'"])


@pytest.mark.parametrize("script", [False, True])
@pytest.mark.parametrize("processes", [1, 2])
def test_case_3_10_a_shell_as_pid_1_is_a_warning_at_the_start(processes: int, *, script: bool) -> None:
    with contained(f"{WORDS} serve --processes {processes}; true", script=script) as process:
        (line,) = [line for line in said(process, "PID 1 is").splitlines() if "PID 1" in line]
        assert WARNING in line
        assert line.endswith('start it with exec, or by a command without a shell (CMD ["herdgate", ...])')


def test_case_3_10_a_shell_that_is_replaced_is_none_and_sigterm_drains() -> None:
    with contained(f"exec {WORDS} serve") as process:
        assert "PID 1" not in said(process, "serving on")
        (inner,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii").split()
        os.kill(int(inner), signal.SIGTERM)
        assert ": drained" in said(process, ": drained")
        assert process.wait(10) == 0
