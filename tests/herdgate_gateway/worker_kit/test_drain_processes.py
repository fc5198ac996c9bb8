"""`herdgate worker` that is drained, and one whose client does not go: real processes, a real table, a real Redis."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from herdgate_gateway.leases.rows import SHARDS
from tests.dynamodb import dynamodb
from tests.herdgate_gateway.leases.conftest import place
from tests.herdgate_gateway.test_pid_one import WARNING, WORDS, contained, said
from tests.herdgate_gateway.worker_kit.serving_worker import closed, stamp, until
from tests.herdgate_gateway.worker_kit.test_processes import owns_all, site
from tests.herdgate_gateway.worker_kit.worker_processes import APP, Site, WorkerProcess, worker_process
from tests.wire import Pairs, handshake, knock, open_socket, raw

__all__ = ["dynamodb", "place", "site"]

pytestmark = pytest.mark.xdist_group("worker-processes")

TASK = "arn:aws:ecs:us-east-1:123456789012:task/herd/0123456789abcdef0123456789abcdef"


async def test_file_drains_a_worker_which_stays_with_nothing_until_sigterm(site: Site) -> None:
    file = site.folder / "drain"
    options = ("--drain-file", str(file), "--drain-s", "10")
    with worker_process(site, "one", *options) as one, worker_process(site, "other") as other:
        await asyncio.to_thread(owns_all, site, one, other)
        epochs = site.owned("one")
        shard = next(iter(epochs))
        client = await open_socket(one.port, "/", headers=stamp(shard, epochs[shard]))
        file.touch()
        assert await closed(client) == (1012, "shard moved")
        await _is_drained(site, one, other)
        assert "drain, 0.0 s, 1 sockets open: the file: to be over within 10 s" in one.log()
        await _ends_well(site, one, stamp(shard, epochs[shard]))
        after = site.owned("other")
        assert (await knock(other.port, "/", headers=stamp(shard, after[shard]))).status == 101


async def test_task_on_its_way_out_drains_a_worker(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with amazon() as aws:
        monkeypatch.setenv("ECS_CONTAINER_METADATA_URI_V4", f"{aws.url}/v4")
        monkeypatch.setenv("AWS_ENDPOINT_URL_ECS", aws.url)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "local")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "local")
        with worker_process(site, "one", "--drain-ecs", "--drain-s", "10") as one, worker_process(site, "other") as two:
            await asyncio.to_thread(owns_all, site, one, two)
            epochs = site.owned("one")
            await until(lambda: aws.asked > 1, "ECS is asked", within_s=30)
            assert one.guardian.poll() is None
            assert "drain" not in one.log(), "a task that runs is no sign"
            aws.status = "DEACTIVATING"
            await _is_drained(site, one, two)
            assert "an early sign: to be over within 10 s" in one.log()
            shard = next(iter(epochs))
            await _ends_well(site, one, stamp(shard, epochs[shard]))


async def _is_drained(site: Site, one: WorkerProcess, other: WorkerProcess) -> None:
    await until(lambda: ": drained: owns nothing" in one.log(), "it is drained", within_s=30)
    await asyncio.to_thread(owns_all, site, other)
    assert site.state("one")[0] == "DEAD"
    assert len(site.owned("other")) == SHARDS


async def _ends_well(site: Site, one: WorkerProcess, old_stamp: Pairs) -> None:
    """It still answers, though what it had is refused; then SIGTERM."""
    assert (await knock(one.port, "/", headers=old_stamp)).status == 421
    began = time.monotonic()
    one.guardian.terminate()
    assert await asyncio.to_thread(one.end) == 0
    assert time.monotonic() - began < 15
    assert "Traceback" not in one.log()


async def test_case_3_3_client_that_never_answers_its_close_frame_keeps_no_worker(site: Site) -> None:
    """The deadline of 5 s, literally: the process has ended 6 s after SIGTERM, and others own what it had."""
    with worker_process(site, "one", "--stop-s", "5") as one, worker_process(site, "other") as other:
        await asyncio.to_thread(owns_all, site, one, other)
        epochs = site.owned("one")
        shard = next(iter(epochs))
        async with raw(one.port, handshake("/", headers=stamp(shard, epochs[shard]))) as client:
            assert (await client.head())[0] == 101
            began = time.monotonic()
            one.guardian.terminate()
            opcode, payload = await client.frame()
            assert (opcode, payload[:2]) == (8, (1012).to_bytes(2))
            assert await asyncio.to_thread(one.end) == 0
            assert time.monotonic() - began <= 6
            assert await client.read() == b"", "its socket is gone"
        assert site.state("one")[0] == "DEAD"
        await asyncio.to_thread(owns_all, site, other)


def test_case_3_10_a_worker_below_a_shell_as_pid_1_says_so(site: Site) -> None:
    where = f"--table {site.place.table} --endpoint-url {site.place.endpoint_url} --region us-east-1"
    words = f"{WORDS} worker {APP} --listen 127.0.0.1:0 --name one {where}"
    with contained(f"{words}; true") as process:
        assert WARNING in said(process, WARNING)


class Amazon:
    """What one task is told of itself, and what ECS says of it, on one port.

    Attributes:
        status: of the task.
        asked: how often ECS was.
    """

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.status, self.asked = "RUNNING", 0


@contextmanager
def amazon() -> Iterator[Amazon]:
    """Serve it."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({"Cluster": "herd", "TaskARN": TASK, "Containers": []})

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            aws.asked += 1
            task = {"taskArn": TASK, "lastStatus": aws.status, "desiredStatus": "RUNNING"}
            self._answer({"tasks": [task], "failures": []})

        def _answer(self, told: object) -> None:
            body = json.dumps(told).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        aws = Amazon(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield aws
        finally:
            server.shutdown()
            thread.join()
