"""A DynamoDB of our own: ministack, on a free port of 127.0.0.1, with nothing on disk, ended with its block."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

from herdgate_loadtest.errors import CrowdError, PreflightError
from herdgate_loadtest.servers.children import HOST, dies_with_us, free_port

__all__ = ["REGION", "aws_environment", "emulator"]

REGION = "us-east-1"

_START_S = 30.0
_LOOK_S = 0.05
_BESIDE = Path(".emulator") / "bin" / "ministack"


@contextmanager
def emulator() -> Iterator[str]:
    """Its endpoint, while the block runs.

    Raises:
        PreflightError: it is not installed.
        CrowdError: it does not start.
    """
    found = shutil.which("ministack") or shutil.which(_BESIDE)
    if found is None:
        raise PreflightError("there is no ministack on the PATH or in .emulator: run scripts/setup")
    with tempfile.TemporaryDirectory(prefix="herdgate-dynamodb-") as folder:
        port = free_port()
        told = {"BIND_HOST": HOST, "GATEWAY_PORT": str(port), "SERVICES": "dynamodb", "LOG_LEVEL": "WARNING"}
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": folder, "TMPDIR": folder, **told}
        quiet = subprocess.DEVNULL
        command = [*dies_with_us(), str(Path(found).absolute())]
        with subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment, cwd=folder) as process:  # noqa: S603
            try:
                _wait(process, port)
                yield f"http://{HOST}:{port}"
            finally:
                process.kill()


def aws_environment() -> dict[str, str]:
    """Of whoever talks to it: credentials that it takes, and nothing of this user's."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "HERDGATE_"))}
    return {
        **others,
        "AWS_ACCESS_KEY_ID": "bench",
        "AWS_SECRET_ACCESS_KEY": "bench",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": HOST,
    }


def _wait(process: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + _START_S
    while not _answers(port):
        if process.poll() is not None or time.monotonic() > end:
            raise CrowdError("ministack does not start: run scripts/setup again, and try again")
        time.sleep(_LOOK_S)


def _answers(port: int) -> bool:
    connection = HTTPConnection(HOST, port, timeout=1.0)
    try:
        connection.request("GET", "/")
        connection.getresponse()
    except OSError:
        return False
    finally:
        connection.close()
    return True
