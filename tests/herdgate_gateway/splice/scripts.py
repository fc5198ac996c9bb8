"""Workers and clients that end in ways of their own, and what they read."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from tests.herdgate_gateway.gateways import Visitor, frame
from tests.wire import WAIT_S, Raw

__all__ = ["Listener", "Script", "close_payload", "closing", "frames_of", "read_frames", "unmasked"]

Script = Callable[[Visitor], Awaitable[None]]


def close_payload(code: int, reason: str = "") -> bytes:
    """Of a close frame."""
    return code.to_bytes(2, "big") + reason.encode()


def closing(payload: bytes) -> Script:
    """A worker that closes at once, and waits for the end."""

    async def script(visit: Visitor) -> None:
        await visit.accept(then=frame(8, payload))
        await visit.reader.read()

    return script


@dataclass
class Listener:
    """A worker that sends what it is given, reads to the end, and keeps what it got.

    Attributes:
        got: bytes from the gateway.
        is_open: it has answered the handshake.
        ended: they have ended.
    """

    first: bytes = b""
    got: bytearray = field(default_factory=bytearray)
    is_open: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, visit: Visitor) -> None:
        """The script."""
        try:
            await visit.accept(then=self.first)
            self.is_open.set()
            while data := await visit.reader.read(65_536):
                self.got += data
        finally:
            self.ended.set()

    def frames(self) -> list[tuple[int, bytes]]:
        """What it got, as opcodes and payloads."""
        return frames_of(bytes(self.got), masked=True)


def frames_of(data: bytes, *, masked: bool) -> list[tuple[int, bytes]]:
    """Opcodes and payloads; the data has to be whole frames."""
    found, at = [], 0
    while at < len(data):
        length, start = data[at + 1] & 127, at + 2
        assert bool(data[at + 1] & 128) is masked
        if length > 125:
            more = 2 if length == 126 else 8
            length, start = int.from_bytes(data[start : start + more], "big"), start + more
        key = data[start : start + 4] if masked else b"\0\0\0\0"
        start += 4 if masked else 0
        payload = data[start : start + length]
        assert len(payload) == length, "a frame is not whole"
        found.append((data[at] & 0x0F, unmasked(payload, key)))
        at = start + length
    return found


def unmasked(payload: bytes, key: bytes) -> bytes:
    """The payload under this key."""
    return bytes(byte ^ key[place % 4] for place, byte in enumerate(payload)) if any(key) else payload


async def read_frames(client: Raw) -> list[tuple[int, bytes]]:
    """All that a client gets until its connection ends."""
    got = b""
    try:
        async with asyncio.timeout(WAIT_S):
            while data := await client.read():
                got += data
    except ConnectionResetError:
        pass
    return frames_of(got, masked=False)
