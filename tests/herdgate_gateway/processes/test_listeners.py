"""Several processes on other listeners than plain TCP."""

import os
import signal

import trustme
from websockets.asyncio.client import unix_connect

from tests.herdgate_gateway.gateways import echo_worker
from tests.herdgate_gateway.processes.children import all_ready, ask_control, pids
from tests.herdgate_gateway.test_serve_listeners import check_echo, client, listening, listening_with_tls, trusting
from tests.wire import WAIT_S, eventually

TWO = "rate = 1000\nprocesses = 2"


async def test_every_child_serves_tls_and_one_that_cannot_start_is_tried_again() -> None:
    authority = trustme.CA()
    async with echo_worker() as worker, listening_with_tls(authority, worker.url, TWO) as gateway:
        await all_ready(gateway)
        url, trust = f"wss://localhost:{gateway.port}/ws", trusting(authority)
        settings = (gateway.folder / "herdgate.toml").read_text()
        key = settings.partition("key = '")[2].partition("'")[0]
        os.rename(key, f"{key}.away")  # noqa: PTH104
        os.kill((await pids(gateway))[0], signal.SIGKILL)

        async def has_failed() -> bool:
            return "child 1 (pid" in gateway.log() and "has ended with code 1" in gateway.log()

        await eventually(has_failed, "it cannot start", within_s=WAIT_S)
        assert "herdgate: tls.certificate: got" in gateway.log()
        assert "Traceback" not in gateway.log()
        assert (await ask_control(gateway, "/readyz")).text.startswith("ready, but child 1 is ")
        for _ in range(5):
            async with client(url, ssl=trust) as connected:
                await check_echo(connected)
        os.rename(f"{key}.away", key)  # noqa: PTH104
        await all_ready(gateway)


async def test_children_share_all_listeners() -> None:
    async with echo_worker() as worker, listening(["127.0.0.1:0", "unix:FOLDER/s"], worker.url, TWO) as gateway:
        await all_ready(gateway)
        async with client(f"ws://127.0.0.1:{gateway.port}/ws") as connected:
            await check_echo(connected)
        async with unix_connect(str(gateway.folder / "s"), "ws://localhost/ws", open_timeout=WAIT_S) as connected:
            await check_echo(connected)
