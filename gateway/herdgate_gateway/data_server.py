"""The server for clients: uvicorn with our protocol classes, on listeners that are open already.

uvicorn asks its configuration for each connection which HTTP protocol it gets, so that one can be replaced while it
serves; so can the certificate (`certificates`). What the WebSocket protocol is given at the start stays.

Built on uvicorn 0.54.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from herdgate_gateway.app import Gateway
from herdgate_gateway.certificates import LiveCertificate, read_certificate
from herdgate_gateway.client_leg import client_leg_class
from herdgate_gateway.close_codes import SERVICE_RESTART
from herdgate_gateway.drain.coordinator import Drain
from herdgate_gateway.drain.host import GatewayHost, turns_of
from herdgate_gateway.front_door.listener import OwnListener
from herdgate_gateway.front_door.protocol import FrontDoor, front_door_class
from herdgate_gateway.log_lines import log_config
from herdgate_gateway.proxy_protocol import proxy_protocol_class
from herdgate_gateway.quiet import be_quiet
from herdgate_gateway.settings import Settings
from herdgate_gateway.signs import STOP_SIGNS, hold, let_in

__all__ = ["BACKLOG", "DataServer"]

BACKLOG = 4096


class DataServer(uvicorn.Server):
    """Serves an app as the settings say. A sign to stop drains it first, and ends it and not the process: there is more
    to close.

    Args:
        who: stands before each line of the log; see `log_config`.
        group: the same in all processes of one gateway; None: it has one.

    Attributes:
        drain: its end.

    Raises:
        ConfigurationError: the certificate cannot be used.
    """

    def __init__(self, gateway: Gateway, settings: Settings, *, who: str = "", group: str | None = None) -> None:
        self._gateway, self._settings = gateway, settings
        self._own: OwnListener | None = None
        context = _certificate(settings)
        self._certificate = None if context is None else LiveCertificate(context)
        self._tls = settings.tls
        super().__init__(_config(gateway, settings, self._certificate, who))
        self.config.load()
        be_quiet()
        self._end_s = 0.0
        self.drain = Drain(GatewayHost(gateway, self), settings.drain.settings(), turns_of(gateway, settings, group))

    def plan(self, settings: Settings) -> Callable[[], None]:
        """Make ready what may fail, for the result to make it so: PROXY protocol, trusted proxies, certificate.

        It may run in another thread. TLS is neither switched on nor off.

        Raises:
            ConfigurationError: the certificate cannot be used.
        """
        protocol = _http_class(self._gateway, settings)
        # The very same table is one that stays until a restart: its files may be gone by now.
        context = None if settings.tls is self._tls else _certificate(settings)

        def take() -> None:
            self.config.http_protocol_class = protocol
            self._tls = settings.tls
            if self._certificate is not None and context is not None:
                self._certificate.replace(context)
            if self._own is not None:
                self._own.take(is_plain=not settings.proxy_protocol, tls_rate=settings.tls_rate)

        return take

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve."""
        if self._settings.listener != "own":
            await super().startup(sockets)
            return
        await self.lifespan.startup()
        self.servers = []
        self._own = OwnListener(
            sockets or [],
            self._gateway,
            self._make_door,
            context=None if self._certificate is None else self._certificate.context,
            is_plain=not self._settings.proxy_protocol,
            tls_rate=self._settings.tls_rate,
        )
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, and close what is open."""
        closing = [super().shutdown(sockets)]  # as was said to `end`
        if self._own is not None:
            self._own.close()
            closing.append(self._own.aclose())
        if self._gateway.splices is not None:
            closing.append(self._gateway.splices.aclose(SERVICE_RESTART, "", self._end_s))
        await asyncio.gather(*closing)

    def _make_door(self) -> FrontDoor:
        door: Any = self.config.http_protocol_class
        made: FrontDoor = door(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
        return made

    @property
    def connections(self) -> Collection[object]:
        """Those that are no relayed socket yet, or are one of messages."""
        return self.server_state.connections

    @property
    def is_taking(self) -> bool:
        """True while new arrivals should be sent here."""
        return self.started and self._gateway.is_ready and not self.drain.is_begun

    def end(self, within_s: float) -> None:
        """Stop serving; what is open may take so long."""
        self._end_s = within_s
        in_seconds: Any = within_s  # uvicorn waits for so long, whole or not
        self.config.timeout_graceful_shutdown = in_seconds
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for sign in STOP_SIGNS:
            loop.add_signal_handler(sign, self.drain.stop)
        let_in()
        try:
            yield
        finally:
            hold()
            for sign in STOP_SIGNS:
                loop.remove_signal_handler(sign)


def _config(gateway: Gateway, settings: Settings, certificate: LiveCertificate | None, who: str) -> uvicorn.Config:
    relay = settings.relay.settings()
    return uvicorn.Config(
        gateway,
        http=_http_class(gateway, settings),
        ws=client_leg_class(
            max_message_bytes=relay.max_message_bytes,
            max_fragment_bytes=relay.max_fragment_bytes or relay.max_message_bytes,
            close_s=relay.close_s,
        ),
        ws_max_size=relay.max_message_bytes,
        ws_ping_interval=None,
        ws_per_message_deflate=False,
        lifespan="off",
        proxy_headers=False,
        server_header=False,
        access_log=False,
        log_config=log_config(who),
        backlog=BACKLOG,
        ssl_context_factory=None if certificate is None else lambda _, __: certificate.context,
    )


def _http_class(gateway: Gateway, settings: Settings) -> type[HttpToolsProtocol]:
    door = front_door_class(gateway)
    return proxy_protocol_class(door, settings.trusted_proxies) if settings.proxy_protocol else door


def _certificate(settings: Settings) -> ssl.SSLContext | None:
    if settings.tls.certificate is None or settings.tls.key is None:
        return None
    return read_certificate(settings.tls.certificate, settings.tls.key)
