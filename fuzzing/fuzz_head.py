"""Fuzzes the front door's reading of heads: what it takes for a handshake, uvicorn must read as the very same one.

    python fuzzing/fuzz_head.py --seconds 60

With atheris installed (`pip install atheris`) coverage guides it; without, seeded random changes to the corpus do. A
finding is an AssertionError that holds the bytes.
"""

import argparse
import asyncio
import importlib
import logging
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from herdgate.asgi import Receive, Scope, Send
from herdgate_gateway.front_door.head import read_head

__all__ = ["CLIENT", "CORPUS", "SERVER", "Found", "Judge", "corpus", "explore", "read"]

CORPUS = Path(__file__).parent / "corpus"
CLIENT, SERVER = ("192.0.2.7", 50_000), ("192.0.2.1", 443)
MOST_CHANGES = 4

_PIECES = (
    *(
        b"\r\n",
        b"\n",
        b"\r",
        b"\r\n\r\n",
        b"\0",
        b"\t",
        b" ",
        b":",
        b": ",
        b",",
        b";",
        b"#",
        b"?",
        b"%00",
        b"%ff",
        b"//",
    ),
    *(b"\r\n ", b"\r\nA:b", b"\r\nConnection: close", b"\r\nUpgrade: h2c", b"\r\nContent-Length: 1", b"\r\nExpect: x"),
    *(
        b"\r\nTransfer-Encoding: chunked",
        b"\r\nHost: b",
        b"\r\nOrigin: null",
        b"\r\nSec-WebSocket-Protocol: a, b",
        b"upgrade",
    ),
    *(b"HTTP/1.0", b"POST", b"http://a", b"\xc3\xa9", b"\x7f", b"GET / HTTP/1.1\r\n", b"\r\nX: " + b"x" * 8_192),
)


def read(data: bytes, scheme: str = "ws") -> Scope | None:
    """What our own reader makes of these bytes."""
    return read_head(data, client=CLIENT, server=SERVER, scheme=scheme)


class _Wire(asyncio.Transport):
    """A connection that takes whatever is written."""

    def __init__(self, scheme: str) -> None:
        secure = object() if scheme == "wss" else None
        super().__init__({"peername": CLIENT, "sockname": SERVER, "sslcontext": secure})
        self._closing = False

    def write(self, data: object) -> None:
        pass

    def close(self) -> None:
        self._closing = True

    def is_closing(self) -> bool:
        return self._closing

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        pass

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


class Judge:
    """uvicorn, as the gateway sets it up, in a loop of its own; to be closed."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._seen: list[Scope] = []
        self._config = Config(
            self._app,
            interface="asgi3",
            http="httptools",
            ws="websockets-sansio",
            ws_per_message_deflate=False,
            ws_ping_interval=None,
            proxy_headers=False,
            log_config=None,
            lifespan="off",
        )
        self._config.load()

    def scope(self, data: bytes, scheme: str = "ws") -> Scope | None:
        """The scope that a WebSocket app gets for these bytes; None if none gets one."""
        logging.disable(logging.CRITICAL)  # of what uvicorn says about each head
        try:
            return self._loop.run_until_complete(self._scope(data, scheme))
        finally:
            logging.disable(logging.NOTSET)

    async def _scope(self, data: bytes, scheme: str) -> Scope | None:
        self._seen.clear()
        state = ServerState()
        protocol = HttpToolsProtocol(self._config, state, {})
        protocol.connection_made(_Wire(scheme))
        protocol.data_received(data)
        await asyncio.gather(*state.tasks)
        protocol._unset_keepalive_if_required()
        scopes = [scope for scope in self._seen if scope["type"] == "websocket"]
        return scopes[0] if scopes else None

    def check(self, data: bytes, reader: Callable[[bytes], Scope | None] = read) -> bool:
        """Whether the reader takes these bytes.

        Raises:
            AssertionError: it does, and uvicorn reads them in another way.
        """
        ours = reader(data)
        if ours is None:
            return False
        theirs = self.scope(data)
        if ours != theirs:
            raise AssertionError(f"read in two ways: {data!r}\n ours: {ours}\n uvicorn's: {theirs}")
        return True

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._seen.append(scope)

    def close(self) -> None:
        """Let go of the loop."""
        self._loop.close()


def corpus() -> list[bytes]:
    """The heads that changes begin with."""
    return [path.read_bytes() for path in sorted(CORPUS.iterdir())]


class Found(NamedTuple):
    """What a run came across.

    Attributes:
        tried: heads.
        taken: those our reader took.
    """

    tried: int
    taken: int


def explore(seed: int, *, until: Callable[[int], bool], reader: Callable[[bytes], Scope | None] = read) -> Found:
    """Try random changes to the corpus until so many are enough.

    Raises:
        AssertionError: a head that is read in two ways.
    """
    judge, tried, taken = Judge(), 0, 0
    try:
        for data in _changed(random.Random(seed)):
            if until(tried):
                break
            tried += 1
            taken += judge.check(data, reader)
    finally:
        judge.close()
    return Found(tried, taken)


def _changed(dice: random.Random) -> Iterator[bytes]:
    heads = corpus()
    while True:
        data = dice.choice(heads)
        for _ in range(dice.randint(1, MOST_CHANGES)):
            data = _change(dice, data, heads)
        yield data


def _change(dice: random.Random, data: bytes, heads: list[bytes]) -> bytes:
    start, end = sorted(dice.randint(0, len(data)) for _ in "ab")
    lines = data.split(b"\r\n")
    line = dice.randrange(len(lines))
    match dice.randrange(8):
        case 0:
            return data[:start] + dice.choice(_PIECES) + data[start:]
        case 1:
            return data[:start] + bytes([dice.randrange(256)]) + data[start + 1 :]
        case 2:
            return data[:start] + data[min(end, start + 8) :]
        case 3:
            return b"\r\n".join([*lines[:line], lines[line].swapcase(), *lines[line + 1 :]])
        case 4:
            return b"\r\n".join([*lines[:line], lines[line], *lines[line:]])
        case 5:
            return b"\r\n".join([*lines[:line], *lines[line + 1 :]])
        case 6:
            return b"\r\n".join([*lines[:line], lines[line] + dice.choice(_PIECES), *lines[line + 1 :]])
        case _:
            other = dice.choice(dice.choice(heads).split(b"\r\n"))
            return b"\r\n".join([*lines[:line], other, *lines[line:]])


def _guided(seconds: int, seed: int) -> None:
    atheris: Any = importlib.import_module("atheris")
    judge, heads = Judge(), corpus()
    atheris.instrument_func(read_head)

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        return _change(random.Random(seed), data, heads)[:most]

    with tempfile.TemporaryDirectory() as grown:
        settings = [f"-max_total_time={seconds}", f"-seed={seed}", "-max_len=17000", grown, str(CORPUS)]
        atheris.Setup([sys.argv[0], *settings], judge.check, custom_mutator=mutate)
        atheris.Fuzz()


def main() -> None:
    """Fuzz for as long as asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if find_spec("atheris") is not None:
        _guided(asked.seconds, asked.seed)
        return
    end = time.monotonic() + asked.seconds
    found = explore(asked.seed, until=lambda _: time.monotonic() >= end)
    sys.stdout.write(f"{found.tried} heads, {found.taken} of them taken, none in two ways (seed {asked.seed})\n")


if __name__ == "__main__":
    main()
