"""The fuzz target in small: so that it cannot rot, and finds what it is to find."""

import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from fuzzing.fuzz_head import CORPUS, corpus, explore, read
from herdgate.asgi import Scope
from tests.servers import ROOT

SEED = 20261130
TRIES = 10_000


def with_bare_line_ends(data: bytes) -> Scope | None:
    """Takes a CR for a line end."""
    return read(re.sub(rb"\r(?!\n)", b"\r\n", data))


def with_any_length(data: bytes) -> Scope | None:
    """Passes over a body."""
    return read(re.sub(rb"\r\nContent-Length: [0-9]+", b"", data))


def with_the_first_origin(data: bytes) -> Scope | None:
    """Passes over an `Origin` behind another one."""
    before, origin, behind = data.partition(b"\r\nOrigin: ")
    return read(before + origin + re.sub(rb"\r\nOrigin: [!-~]*", b"", behind))


def test_no_change_to_the_corpus_is_read_in_two_ways() -> None:
    found = explore(SEED, until=lambda tried: tried == TRIES)
    assert found.tried == TRIES, f"seed {SEED}"
    assert found.taken > TRIES // 20, f"seed {SEED}"


def test_every_head_of_the_corpus_is_taken() -> None:
    assert len(corpus()) == len(list(CORPUS.iterdir())) > 3
    assert all(read(data) is not None for data in corpus())


@pytest.mark.parametrize("reader", [with_bare_line_ends, with_any_length, with_the_first_origin])
def test_reader_that_is_too_kind_is_found_out(reader: Callable[[bytes], Scope | None]) -> None:
    with pytest.raises(AssertionError, match="read in two ways: b'GET"):
        explore(SEED, until=lambda tried: tried == 20 * TRIES, reader=reader)


def test_target_runs_alone_for_as_long_as_asked() -> None:
    command = [sys.executable, "fuzzing/fuzz_head.py", "--seconds", "1"]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=90, check=False)
    assert finished.returncode == 0, finished.stderr
    assert re.search(r"^[1-9][0-9]* heads, |Done [1-9][0-9]* runs", finished.stdout + finished.stderr, re.MULTILINE)
