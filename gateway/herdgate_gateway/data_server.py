"""The server for clients: uvicorn with our protocol classes, on listeners that are open already.

uvicorn asks its configuration for each connection which HTTP protocol it gets, so that one can be replaced while it
serves; so can the certificate (`certificates`). What the WebSocket protocol is given at the start stays.

Built on uvicorn 0.54.
"""

import asyncio
import signal
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from herdgate.asgi import ASGIApp
from herdgate_gateway.certificates import LiveCertificate, read_certificate
from herdgate_gateway.client_leg import client_leg_class
from herdgate_gateway.http_leg import HttpLeg
from herdgate_gateway.log_lines import log_config
from herdgate_gateway.proxy_protocol import proxy_protocol_class
from herdgate_gateway.quiet import be_quiet
from herdgate_gateway.settings import Settings

__all__ = ["BACKLOG", "STOP_SIGNS", "DataServer"]

BACKLOG = 4096
STOP_SIGNS = (signal.SIGINT, signal.SIGTERM)


class DataServer(uvicorn.Server):
    """Serves an app as the settings say. A sign to stop ends it and not the process: there is more to close.

    Args:
        who: stands before each line of the log; see `log_config`.

    Raises:
        ConfigurationError: the certificate cannot be used.
    """

    def __init__(self, app: ASGIApp, settings: Settings, *, who: str = "") -> None:
        context = _certificate(settings)
        self._certificate = None if context is None else LiveCertificate(context)
        self._tls = settings.tls
        super().__init__(_config(app, settings, self._certificate, who))
        self.config.load()
        be_quiet()

    def plan(self, settings: Settings) -> Callable[[], None]:
        """Make ready what may fail, for the result to make it so: PROXY protocol, trusted proxies, certificate.

        It may run in another thread. TLS is neither switched on nor off.

        Raises:
            ConfigurationError: the certificate cannot be used.
        """
        protocol = _http_class(settings)
        # The very same table is one that stays until a restart: its files may be gone by now.
        context = None if settings.tls is self._tls else _certificate(settings)

        def take() -> None:
            self.config.http_protocol_class = protocol
            self._tls = settings.tls
            if self._certificate is not None and context is not None:
                self._certificate.replace(context)

        return take

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for sign in STOP_SIGNS:
            loop.add_signal_handler(sign, self.handle_exit, sign, None)
        try:
            yield
        finally:
            for sign in STOP_SIGNS:
                loop.remove_signal_handler(sign)


def _config(app: ASGIApp, settings: Settings, certificate: LiveCertificate | None, who: str) -> uvicorn.Config:
    relay = settings.relay.settings()
    return uvicorn.Config(
        app,
        http=_http_class(settings),
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
        timeout_graceful_shutdown=10,
    )


def _http_class(settings: Settings) -> type[HttpToolsProtocol]:
    if not settings.proxy_protocol:
        return HttpLeg
    return proxy_protocol_class(HttpLeg, settings.trusted_proxies)


def _certificate(settings: Settings) -> ssl.SSLContext | None:
    if settings.tls.certificate is None or settings.tls.key is None:
        return None
    return read_certificate(settings.tls.certificate, settings.tls.key)
