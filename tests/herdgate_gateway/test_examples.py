"""The examples of the documentation as real fleets: a chat room, and a transcript that nobody may lose a line of.

Table, Redis, workers and gateway are processes; the source of the transcript and its reader are in the test.
"""

import asyncio
import contextlib
import json
import os
import random
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, WebSocketException

import herdgate_client
from herdgate_gateway.leases.dynamo import Place
from tests.dynamodb import dynamodb
from tests.herdgate_gateway.leases.conftest import place
from tests.herdgate_gateway.serving import HERDGATE, Serving, herdgate, serving
from tests.redis_servers import RedisServer, redis_server
from tests.servers import ROOT, poll
from tests.wire import open_socket

__all__ = ["dynamodb", "place"]

SEED = 7
LEASE_S = "1.5"
WAIT_S = 60.0
WORKERS = ("one", "two", "three")


def example(page: str, words: str) -> str:
    """The only Python example of a page with these words in it."""
    (found,) = [
        code
        for code in re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)
        if words in code
    ]
    return str(found)


@dataclass
class Site:
    """A fleet of these workers and one gateway.

    Attributes:
        arguments: of each worker, behind the command.
        workers: those that run, by name.
    """

    place: Place
    redis: RedisServer
    folder: Path
    arguments: Sequence[str]
    workers: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def table(self) -> list[str]:
        """Options that say where the table is."""
        url = str(self.place.endpoint_url)
        return ["--table", self.place.table, "--region", str(self.place.region), "--endpoint-url", url]

    def start(self, name: str) -> None:
        """Start a worker, which may be one that was killed."""
        options = ["--name", name, "--listen", "127.0.0.1:0", "--redis", self.redis.url, "--lease-s", LEASE_S]
        with (self.folder / f"{name}.log").open("ab") as log:
            command = [*HERDGATE, "worker", *self.arguments, *self.table, *options]
            environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(self.folder)))}
            self.workers[name] = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, env=environ, process_group=0
            )

    def child(self, name: str) -> int:
        """Process id of the worker itself; its parent is the guardian."""
        pid = self.workers[name].pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()[0])

    def kill(self, name: str) -> None:
        """SIGKILL of the worker; its guardian says so and ends."""
        os.kill(self.child(name), signal.SIGKILL)
        self.workers.pop(name).wait(WAIT_S)

    def owners(self) -> dict[str, int]:
        """How many shards each worker that lives owns."""
        done = herdgate("leases", "owners", "--json", *self.table)
        assert done.returncode == 0, done.stderr
        return {name: len(shards) for name, shards in json.loads(done.stdout)["owners"].items()}

    def log(self) -> str:
        """What the workers have said."""
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("*.log")))


@contextmanager
def site(place: Place, folder: Path, arguments: Sequence[str]) -> Iterator[Site]:
    """Three workers, as soon as each owns a part."""
    with redis_server() as redis:
        fleet = Site(place, redis, folder, arguments)
        try:
            for name in WORKERS:
                fleet.start(name)
            poll(
                lambda: len(fleet.owners()) == 3 and sum(fleet.owners().values()) == 1_024, "all is owned", within_s=60
            )
            yield fleet
        finally:
            for guardian in fleet.workers.values():
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(os.getpgid(guardian.pid), signal.SIGTERM)
            for guardian in fleet.workers.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    guardian.wait(WAIT_S)


def settings(fleet: Site, path: str) -> str:
    return f"""\
rate = 200.0

[leases]
table = "{fleet.place.table}"
region = "{fleet.place.region}"
endpoint_url = "{fleet.place.endpoint_url}"

[fleet]
redis = "{fleet.redis.url}"

[[routes]]
name = "only"
paths = ["{path}/*"]
connection_id = {{ path = 2 }}
"""


@dataclass
class Source:
    """What is transcribed: lines by number, as many as are asked for, behind the one that is named."""

    port: int = 0
    lines: int = 1_000_000

    async def speak(self, socket: ServerConnection) -> None:
        """One listener."""
        at = int(await socket.recv())
        with contextlib.suppress(ConnectionClosed):
            while at < self.lines:
                at += 1
                await socket.send(json.dumps({"number": at, "text": f"line {at}"}))
                await asyncio.sleep(0.01)
            await socket.wait_closed()


@asynccontextmanager
async def source() -> AsyncIterator[Source]:
    """One on a free port."""
    speaking = Source()
    async with serve(speaking.speak, "127.0.0.1", 0) as server:
        speaking.port = next(iter(server.sockets)).getsockname()[1]
        yield speaking


class Reader:
    """The reader of the documentation, who writes down what he reads."""

    def __init__(self) -> None:
        self.read: list[int] = []

    async def run(self, url: str) -> None:
        """Read, until cancelled."""
        at = 0
        async for gateway in herdgate_client.connect(url, base_s=0.2, cap_s=1.0):
            with contextlib.suppress(ConnectionClosed):
                await gateway.send(str(at))
                async for line in gateway:
                    at = json.loads(line)["number"]
                    self.read.append(at)
                    await gateway.send(str(at))

    async def reads_on(self, fleet: Site) -> None:
        """Wait until he has read more than so far."""
        so_far, end = len(self.read), asyncio.get_running_loop().time() + WAIT_S
        while len(self.read) <= so_far:
            assert asyncio.get_running_loop().time() < end, f"nothing behind line {so_far}\n{fleet.log()[-3000:]}"
            await asyncio.sleep(0.02)


async def read_through_kills(place: Place, folder: Path, kills: int) -> None:
    """Kill the worker that serves the transcript, or another one, again and again; nothing may be lost or twice."""
    rng = random.Random(SEED)
    (folder / "feed.py").write_text(example("connections.md", "def transcribe"))
    with ExitStack() as stack:
        fleet = stack.enter_context(site(place, folder, ["feed:app", "--dial", "feed:transcribe"]))
        gateway: Serving = stack.enter_context(serving(settings(fleet, "/read")))
        async with source() as speaking:
            attrs = json.dumps({"source": f"ws://127.0.0.1:{speaking.port}/talk"})
            started = herdgate(
                "connections", "start", "talk", "--attrs", attrs, "--redis", fleet.redis.url, *fleet.table
            )
            assert started.returncode == 0, started.stderr
            reader = Reader()
            reading = asyncio.ensure_future(reader.run(f"ws://127.0.0.1:{gateway.port}/read/talk"))
            for _ in range(kills):
                await reader.reads_on(fleet)
                await asyncio.sleep(rng.uniform(0, 0.5))
                victim = await asyncio.to_thread(_who, fleet, rng)
                await asyncio.to_thread(fleet.kill, victim)
                await asyncio.to_thread(fleet.start, victim)
            await reader.reads_on(fleet)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
    assert reader.read == list(range(1, len(reader.read) + 1)), f"seed {SEED}"


def _who(fleet: Site, rng: random.Random) -> str:
    """Mostly the owner of the transcript: killing others proves little."""
    shown = herdgate("connections", "show", "talk", "--json", *fleet.table)
    assert shown.returncode == 0, shown.stderr
    owner: str = json.loads(shown.stdout)["owner"]
    return owner if rng.random() < 0.8 else rng.choice(sorted(fleet.workers))


@pytest.mark.timeout(300)
async def test_a_transcript_loses_no_line_and_repeats_none_when_its_workers_are_killed(
    place: Place, tmp_path: Path
) -> None:
    await read_through_kills(place, tmp_path, kills=3)


@pytest.mark.soak
@pytest.mark.timeout(1_200)
async def test_a_transcript_loses_no_line_and_repeats_none_through_twenty_kills(place: Place, tmp_path: Path) -> None:
    await read_through_kills(place, tmp_path, kills=20)


@pytest.mark.timeout(300)
async def test_those_in_a_room_meet_whoever_serves_it_and_meet_again_when_he_dies(place: Place, tmp_path: Path) -> None:
    (tmp_path / "chat.py").write_text(example("workers.md", "def join"))
    with ExitStack() as stack:
        fleet = stack.enter_context(site(place, tmp_path, ["chat:app"]))
        gateways: list[Serving] = [stack.enter_context(serving(settings(fleet, "/chat"))) for _ in range(2)]

        async def everybody_hears() -> None:
            async with (
                open_socket(gateways[0].port, "/chat/garden") as one,
                open_socket(gateways[1].port, "/chat/garden") as two,
                open_socket(gateways[0].port, "/chat/cellar") as elsewhere,
            ):
                await one.send("hello")
                assert [await one.recv(), await two.recv()] == ["hello", "hello"]
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(elsewhere.recv(), 0.2)

        await at_last(everybody_hears, fleet)
        for name in sorted(fleet.workers)[:2]:
            await asyncio.to_thread(fleet.kill, name)
        await at_last(everybody_hears, fleet)


async def at_last(act: Callable[[], Awaitable[None]], fleet: Site) -> None:
    """Do it until it goes well, as clients do."""
    end = asyncio.get_running_loop().time() + WAIT_S
    while True:
        try:
            await act()
        except (OSError, TimeoutError, WebSocketException):
            assert asyncio.get_running_loop().time() < end, fleet.log()[-3000:]
            await asyncio.sleep(0.2)
        else:
            return
