"""What a tree of processes has taken."""

import os
import subprocess
import sys
import time

import pytest

from herdgate_loadtest.bench.sides.accounts import cpu_clocks, cpu_s_since, resident_bytes, tree_of
from herdgate_loadtest.errors import CrowdError
from tests.servers import poll

BURN = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass\n"
PARENT = f"""\
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {BURN + "print('done', flush=True); input()"!r}])
child.wait()
"""


def test_time_of_a_child_counts() -> None:
    own = [sys.executable, "-c", PARENT]
    with subprocess.Popen(own, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        before = cpu_clocks(parent.pid)
        assert parent.stdout
        assert parent.stdout.readline() == "done\n"
        poll(lambda: len(tree_of(parent.pid)) == 2, "the child is seen")
        taken = cpu_s_since(parent.pid, before)
        assert 0.2 <= taken < 5
        assert resident_bytes(parent.pid) > 2 << 20
        parent.communicate("\n")


def test_time_of_this_process_counts() -> None:
    before = cpu_clocks(os.getpid())
    own = time.process_time()
    while time.process_time() < own + 0.05:
        pass

    assert 0.05 <= cpu_s_since(os.getpid(), before) < 5, "and that of processes which other tests have left running"


def test_process_that_has_ended_is_an_error() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True) as process:
        before = cpu_clocks(process.pid)
        process.communicate("\n")

    with pytest.raises(CrowdError, match="has ended"):
        cpu_s_since(process.pid, before)
