"""The calendar of a parent process on a Unix socket, for its children. Belongs to one event loop.

Rules: the socket is in a folder of its own that no other user may enter; a child whose connection ends is forgotten at
once, its sockets are gone with it; a call that makes no sense is an error to its caller; who sends what is no call at
all is hung up on.
"""

import asyncio
import json
import logging
import random
import struct
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from herdgate.core.errors import ConfigurationError
from herdgate.core.limits import Limits
from herdgate.core.numbers import check_number, check_rate
from herdgate.stores.links import PARENT_SCHEME
from herdgate.stores.parent.decide import MOST_SEED, ParentCalendar
from herdgate.stores.parent.frames import pack_frame, read_frame

__all__ = ["CalendarServer", "check_shared_rate", "remove_socket"]

LONGEST_STEP_S = 1.0
SLACK_S = 0.1
"""See `calendar.lua`."""

_logger = logging.getLogger("herdgate.parent")


class CalendarServer:
    """Serves one calendar.

    Args:
        limits: `rate` (not None), `burst`, the classes, the times and the admitted share.
        clock: monotonic seconds.
        wall_clock: Unix seconds, for tickets.

    Attributes:
        state: the calendar.

    Raises:
        ConfigurationError: there is no rate.
    """

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        check_shared_rate(limits.rate)
        self._clock = _FleetTime(clock)
        self.state = ParentCalendar(limits, random.randint(1, MOST_SEED), self._clock.time, int(wall_clock() * 1000))
        self._secrets: dict[bytes, bytes] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._server: asyncio.Server | None = None
        self._of: dict[str, asyncio.StreamWriter] = {}  # the connection each child called on last
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        """For `Fleet.redis`, once it has started."""
        return f"{PARENT_SCHEME}{self._path}"

    async def start(self) -> None:
        """Take calls from now on.

        Raises:
            OSError: there is no place for the socket.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="herdgate-")  # mode 700
        self._server = await asyncio.start_unix_server(self._serve, self._path)

    async def aclose(self) -> None:
        """Take no more calls, and remove the socket."""
        if self._server is not None:
            self._server.close()
        for writer in self._open:
            writer.close()
        if self._folder is not None:
            self._folder.cleanup()

    def set_rate(self, rate: float | None) -> None:
        """Change the rate of all processes, admissions per second, until settings come with another.

        Raises:
            ConfigurationError: None, negative, NaN, infinite or not a number.
        """
        self.state.set_rate(check_shared_rate(rate), self._clock.pass_time())

    def set_fraction(self, fraction: float) -> None:
        """Change the share of client keys let past, the same way.

        Raises:
            ConfigurationError: not a number from 0 to 1.
        """
        check_number("admit_fraction", fraction, least=0, most=1, unit="a share")
        self.state.fraction = fraction

    def configure(self, rate: float | None) -> None:
        """Settings come with this rate. Raises what `set_rate` raises."""
        self.state.configure(check_shared_rate(rate), self._clock.pass_time())

    @property
    def _path(self) -> Path:
        return Path(self._folder.name if self._folder else "") / "calendar"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            while True:
                writer.write(self._answer(await read_frame(reader), writer))
                await writer.drain()
        except (OSError, EOFError):
            pass  # the child has ended
        except ValueError as error:
            _logger.error("hung up on a child: %s", error)
        finally:
            self._open.discard(writer)
            self._forget(writer)
            writer.close()

    def _answer(self, call: list[bytes], writer: asyncio.StreamWriter) -> bytes:
        if len(call) < 3:
            raise ValueError("a call without key or argument")
        name, key, *args = call
        if name == b"decide" and len(args) == 2:
            return self._decide(args[0], args[1], writer)
        if name == b"secret":
            return pack_frame([b"bytes", self._secrets.setdefault(key, args[0])])
        return pack_frame([b"error", b"the parent holds a calendar and a secret, nothing else"])

    def _decide(self, text: bytes, batch: bytes, writer: asyncio.StreamWriter) -> bytes:
        try:
            head = json.loads(text)
            self._clock.pass_time(head.get("since_s", LONGEST_STEP_S) + SLACK_S)
            reply = self.state.decide(head, batch, self._clock.time)
        except (ConfigurationError, ValueError, LookupError, TypeError, AttributeError, struct.error) as error:
            return pack_frame([b"error", f"{type(error).__name__}: {error}".encode()])
        self._of[head["gateway"]] = writer
        return pack_frame([b"list", *reply])

    def _forget(self, writer: asyncio.StreamWriter) -> None:
        for name in [name for name, connection in self._of.items() if connection is writer]:
            del self._of[name]
            self.state.forget(name)


class _FleetTime:
    """Seconds, as `calendar.lua` counts them: what passes between two looks is a second at most.

    So a parent that was stopped gives out no more than that for a time in which its children have decided alone.

    Attributes:
        time: as of the last look.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._at = clock()
        self.time = 0.0

    def pass_time(self, most_s: float = LONGEST_STEP_S) -> float:
        """Look again; for who knows that no more can have passed than `most_s`."""
        before, self._at = self._at, self._clock()
        self.time += max(0.0, min(LONGEST_STEP_S, most_s, self._at - before))
        return self.time


def remove_socket(url: str) -> None:
    """Remove what a parent that was killed has left of its calendar; harmless to repeat."""
    path = Path(url.removeprefix(PARENT_SCHEME))
    with suppress(OSError):
        path.unlink(missing_ok=True)
        path.parent.rmdir()


def check_shared_rate(rate: float | None) -> float:
    """The rate, if several processes can share it.

    Raises:
        ConfigurationError: None, negative, NaN, infinite or not a number.
    """
    check_rate("rate", rate, unit="a number of admissions per second")
    if rate is None:
        way_out = "write a number: several processes without a rate have nothing to share"
        raise ConfigurationError("rate", None, way_out)
    return rate
