"""The duty of a worker that clients come in to: an ASGI app under uvicorn, behind the gate of stamps."""

import asyncio
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import uvicorn

from herdgate import Fleet
from herdgate.asgi import ASGIApp
from herdgate_gateway.errors import HerdgateError
from herdgate_gateway.log_lines import log_config
from herdgate_gateway.quiet import be_quiet
from herdgate_gateway.worker_kit.duty import Parts
from herdgate_gateway.worker_kit.gate import StampGate
from herdgate_gateway.worker_kit.line import Line, hidden
from herdgate_gateway.worker_kit.reported import Reported
from herdgate_gateway.worker_kit.sockets import APP_S

__all__ = ["Serving"]

_LOOK_S, _LOOKS = 0.02, 50


class Serving:
    """See above; a `duty.Duty`.

    Args:
        app: what is served.
        listeners: open already; closed with it.
        capacity: sockets at once.
        addr: what the gateways call this worker.
        redis: URL of the fleet's Redis, which is told the load; None: nobody is.

    Raises:
        ConfigurationError: the URL is wrong.
    """

    def __init__(
        self,
        parts: Parts,
        app: ASGIApp,
        *,
        listeners: Sequence[socket.socket],
        capacity: int,
        addr: str,
        redis: str | None,
    ) -> None:
        self._report = None
        app = hidden(app)
        if redis is not None:
            app = self._report = Reported(app, Fleet(redis, parts.fleet), name=addr, capacity=capacity)
        self._gate = StampGate(app, parts, capacity=capacity)
        self._listeners = list(listeners)
        self._server = _Server(_config(self._gate))
        be_quiet()

    def gained(self, shard: int, epoch: int) -> None:
        """Sockets of the shard may come in."""
        self._gate.gained(shard, epoch)

    def lost(self, shard: int, epoch: int) -> None:
        """Its sockets are closed."""
        self._gate.lost(shard, epoch)

    def wants_changed(self, shards: Iterable[int]) -> None:
        """Clients come by themselves."""

    def weights(self) -> Mapping[int, int]:
        """Sockets by shard."""
        return self._gate.sockets.weights()

    def load(self) -> int:
        """Sockets."""
        return self._gate.sockets.count

    async def start(self) -> None:
        """Start the app, then serve.

        Raises:
            HerdgateError: the app's startup failed.
        """
        await self._server.begin(self._listeners)

    async def release(self, shard: int) -> None:
        """There is nothing to write."""

    async def run(self) -> None:
        """Until cancelled."""
        await self._server.main_loop()

    async def aclose(self) -> None:
        """Let closes go through, close what is left with 1012, shut the app down."""
        if self._server.started:
            await self._server.end(self._listeners)
        for listener in self._listeners:
            listener.close()
        if self._report is not None:
            await self._report.aclose()


class _Server(uvicorn.Server):
    """uvicorn, piece by piece; signals are not its business."""

    async def begin(self, listeners: list[socket.socket]) -> None:
        self.config.load()
        self.lifespan = self.config.lifespan_class(self.config)
        try:
            await self.startup(sockets=listeners)
        except SystemExit:
            raise HerdgateError("the app's startup failed: what it said of it is above") from None

    async def end(self, listeners: list[socket.socket]) -> None:
        await self._wait_for_closes()
        await self.shutdown(sockets=listeners)

    async def _wait_for_closes(self) -> None:
        """A close that is cut short loses what it says."""
        for _ in range(_LOOKS):
            if not any(isinstance(each, Line) for each in self.server_state.connections):
                return
            await asyncio.sleep(_LOOK_S)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _config(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app, ws=Line, access_log=False, log_config=log_config(), timeout_graceful_shutdown=round(APP_S) + 1
    )
