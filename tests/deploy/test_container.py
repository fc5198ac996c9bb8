"""The image, built and run: what it is, that it answers, and that SIGTERM moves its clients."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.deploy.images import Box, Image, built, running
from tests.ministack import PROGRAM, REGION
from tests.needs import unmet
from tests.servers import ROOT, poll

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1_800), pytest.mark.xdist_group("image")]

SOCKETS = 40
RATE = 100
WORKER = "ws://127.0.0.1:9001"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    """Built once."""
    for tool in ("buildah", "debootstrap", "unshare", "nsenter", "ip"):
        if shutil.which(tool) is None:
            unmet(f"{tool} (apt-get install buildah debootstrap iproute2)")
    if os.geteuid() != 0:
        unmet("root")
    with built(tmp_path_factory.mktemp("image")) as image:
        yield image


@pytest.fixture
def gateway(image: Image, tmp_path: Path) -> Iterator[Box]:
    """Serving, with the image's own command and settings."""
    told = {"HERDGATE_RATE": str(RATE), "HERDGATE_WORKERS": WORKER, "HERDGATE_DRAIN__SETTLE_S": "0"}
    with running(image, tmp_path / "log", environ=told) as box:
        poll(lambda: box.process.poll() is not None or is_healthy(box), "it is healthy", within_s=30)
        assert box.process.poll() is None, box.log()
        yield box


def is_healthy(box: Box) -> bool:
    return box.run(*box.image.config["Healthcheck"]["Test"][1:]).returncode == 0


def test_image_is_small_in_rights(gateway: Box) -> None:
    status = Path(f"/proc/{gateway.pid}/status").read_text()
    assert "Uid:\t10001\t10001\t10001\t10001\n" in status
    command = Path(f"/proc/{gateway.pid}/cmdline").read_bytes().split(b"\0")
    assert command[0].endswith(b"python")
    assert command[1:3] == [b"/opt/herdgate/bin/herdgate", b"serve"]
    assert gateway.run("touch", "/etc/herdgate/more").returncode != 0
    assert gateway.run("touch", "/opt/herdgate/more").returncode != 0
    assert gateway.run("python3", "-m", "pip").returncode != 0


def test_image_can_be_looked_into_and_changed_from_inside(gateway: Box) -> None:
    assert gateway.run("herdgate", "rate", "50").stdout == "rate: 50/s\n"
    assert "50" in gateway.run("herdgate", "status").stdout


@pytest.fixture
def table(gateway: Box) -> Iterator[dict[str, str]]:
    """A DynamoDB beside the gateway, with a table; the variables that name it."""
    if not PROGRAM.exists():
        unmet("ministack")
    emulator = [f"BIND_HOST=127.0.0.1 GATEWAY_PORT=4566 SERVICES=dynamodb exec {PROGRAM}"]
    enter = ["nsenter", "--target", str(gateway.pid), "--net"]
    process = subprocess.Popen([*enter, "sh", "-c", *emulator], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    told = {
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_DEFAULT_REGION": REGION,
        "HERDGATE_LEASES__TABLE": "herd",
        "HERDGATE_LEASES__ENDPOINT_URL": "http://127.0.0.1:4566",
    }
    variables = [f"{name}={value}" for name, value in told.items()]
    make = ("/usr/bin/env", *variables, "herdgate", "leases", "init")
    try:
        poll(lambda: gateway.run(*make).returncode == 0, "the table is made", within_s=60)
        yield told
    finally:
        process.terminate()
        process.wait(10)


def test_the_same_image_is_a_worker_that_ends_well(gateway: Box, table: dict[str, str], tmp_path: Path) -> None:
    shutil.copy(ROOT / "k8s" / "base" / "app.py", gateway.image.root / "app" / "app.py")
    command = ("worker", "app:app", "--name", "one")
    with running(gateway.image, tmp_path / "worker", *command, environ=table, beside=gateway) as worker:
        poll(lambda: "UP" in worker.run("herdgate", "leases", "list").stdout, "the worker is up", within_s=60)
        assert Path(f"/proc/{worker.pid}/cmdline").read_bytes().split(b"\0")[2] == b"worker"
        os.kill(worker.pid, signal.SIGTERM)
        assert worker.process.wait(40) == 0, worker.log()
        variables = [f"{name}={value}" for name, value in table.items()]
        assert "DEAD" in gateway.run("/usr/bin/env", *variables, "herdgate", "leases", "list").stdout


@contextmanager
def visitors(box: Box) -> Iterator[IO[str]]:
    """Clients that are in, from inside its network; what they say when all are closed."""
    enter = ["nsenter", "--target", str(box.pid), "--net"]
    command = [*enter, sys.executable, "-m", "tests.deploy.visitors", str(SOCKETS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as crowd:
        assert crowd.stdout is not None
        assert crowd.stdout.readline() == "open\n", box.log()
        yield crowd.stdout


ALL_MOVED = {"codes": [1012], "closed": SOCKETS, "told": SOCKETS}


def test_sigterm_moves_every_client_and_ends_in_time(gateway: Box) -> None:
    with visitors(gateway) as crowd:
        os.kill(gateway.pid, signal.SIGTERM)
        assert json.loads(crowd.readline()) == ALL_MOVED
    assert gateway.process.wait(30) == 0, gateway.log()
    assert "drain" in gateway.log()


def test_prestop_moves_every_client_and_sigterm_ends_what_is_empty(gateway: Box) -> None:
    with visitors(gateway) as crowd:
        done = gateway.run("herdgate", "drain", "--wait", "--deadline", "20")
        assert done.returncode == 0, done.stderr
        assert json.loads(crowd.readline()) == ALL_MOVED
    assert gateway.process.poll() is None
    os.kill(gateway.pid, signal.SIGTERM)
    assert gateway.process.wait(10) == 0, gateway.log()


def test_second_command_of_the_image_is_the_given_one(image: Image, tmp_path: Path) -> None:
    with running(image, tmp_path / "log", "config", "show") as box:
        assert box.process.wait(30) == 0
        assert 'listen = ["0.0.0.0:8000"]  # file /etc/herdgate/herdgate.toml' in box.log()
