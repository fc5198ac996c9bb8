"""Small files: whatever stands at a path, reading it ends, in bytes or in one line that says why not."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from herdgate.core.errors import printable
from herdgate_loadtest.errors import UnreadableError
from herdgate_loadtest.input_file import decoded, opened, read_file


def fault_of(file: Path | str) -> str:
    with pytest.raises(UnreadableError) as caught:
        read_file(str(file))
    (fault,) = caught.value.faults
    return fault


def test_what_cannot_be_opened_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert fault_of(tmp_path / "none") == "cannot be read: No such file or directory"
    assert fault_of(tmp_path) == "cannot be read: Is a directory"
    assert fault_of(tmp_path / "loop") == "cannot be read: Too many levels of symbolic links"
    assert fault_of("a\0b") == "cannot be read: embedded null byte"


def test_file_that_stops_being_read_is_a_fault() -> None:
    with pytest.raises(UnreadableError, match="cannot be read: Input/output error"), opened("/proc/self/mem") as stream:
        stream.read(1)


def test_one_mebibyte_is_read_and_a_byte_more_is_not(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b" " * 2**20)
    assert len(read_file(str(tmp_path / "large"))) == 2**20
    (tmp_path / "large").write_bytes(b" " * (2**20 + 1))
    assert fault_of(tmp_path / "large") == "is larger than 1 MiB; name the right file"
    assert fault_of("/dev/zero") == "is larger than 1 MiB; name the right file"


@pytest.mark.timeout(20)
def test_a_fifo_that_nobody_writes_to_is_empty(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert read_file(str(tmp_path / "fifo")) == b""


@pytest.mark.timeout(20)
def test_a_pipe_is_read_to_its_end_however_late_it_is_written() -> None:
    reader, writer = os.pipe()

    def write() -> None:
        with os.fdopen(writer, "wb") as written:
            written.write(b"a = 1")

    with os.fdopen(reader, "rb"):
        late = threading.Timer(0.2, write)
        late.start()
        assert read_file(f"/dev/fd/{reader}") == b"a = 1"
        late.join()


def test_a_closed_standard_input_is_a_fault() -> None:
    program = (
        "from herdgate_loadtest.input_file import read_standard_input as read\n"
        "try: read()\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    command = ["/bin/sh", "-c", '"$@" <&-', "sh", sys.executable, "-c", program]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert (finished.stdout, finished.stderr) == ("UnreadableError is closed\n", "")


def test_another_encoding_is_a_fault_and_a_mark_of_utf_8_is_none() -> None:
    assert decoded("\ufeffa = 1\r\n".encode()) == "a = 1\r\n"
    with pytest.raises(UnreadableError, match="is not UTF-8, from byte 0 on; save it as UTF-8"):
        decoded("a = 1".encode("utf-16"))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("zürich.json", "zürich.json"),
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\x9b2Jb", r"a\x9b2Jb"),
        ("a\nb", r"a\nb"),
        ("a\u202eb", r"a\u202eb"),
        ("a\udcffb", r"a\udcffb"),
    ],
)
def test_a_name_is_one_line_that_no_terminal_obeys(name: str, shown: str) -> None:
    assert printable(name) == shown
