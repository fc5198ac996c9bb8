"""A uvicorn protocol that takes the client's address from the PROXY header of a trusted peer.

    Config(app, http=proxy_protocol_class(HttpToolsProtocol, ["10.0.0.0/8"]))

Rules:
- A trusted peer has to send a header, whole within `HEADER_S`, on every connection; else the connection is closed, for
  nobody knows whose it is.
- Anybody else's header is not read: the HTTP parser answers it with 400.
- A peer on a Unix socket is trusted: it has no address, and the mode of the socket file says who may connect.
- The header comes before TLS, so a listener that ends TLS itself cannot read one.

From the header on, everything on the connection is told the address: the HTTP protocol, and the WebSocket protocol
that takes over at the upgrade, which would ask the socket again.
"""

import asyncio
import logging
import socket
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, ClassVar, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from herdgate import AddressRules
from herdgate.core.clients import parse_address
from herdgate_gateway.proxy_header import BadProxyHeader, Endpoint, read_proxy_header

__all__ = ["HEADER_S", "proxy_protocol_class"]

HEADER_S = 5.0
"""Seconds from the connection to the end of its header."""

_logger = logging.getLogger("herdgate.gateway")


def proxy_protocol_class(base: type[HttpToolsProtocol], trusted: Sequence[str]) -> type[HttpToolsProtocol]:
    """A subclass of `base` for `uvicorn.Config(http=...)`.

    Args:
        base: uvicorn's own protocol or a subclass of it.
        trusted: networks whose PROXY headers are required and believed.

    Raises:
        ConfigurationError: one of them is no network.
    """
    rules = AddressRules(trusted_proxies=trusted)
    return cast("type[HttpToolsProtocol]", type(f"Proxied{base.__name__}", (_Proxied, base), {"rules": rules}))


class _Proxied(HttpToolsProtocol):
    """Stands before the base class: holds bytes back until the header has been read."""

    rules: ClassVar[AddressRules]
    complained: ClassVar[bool] = False
    _deadline: asyncio.TimerHandle | None = None  # while a header is awaited
    _proxied = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._held = bytearray()
        if self._is_trusted():
            self._deadline = self.loop.call_later(HEADER_S, self._reject, f"not whole within {HEADER_S:g} s")

    def data_received(self, data: bytes) -> None:
        if self._deadline is None:
            super().data_received(data)
        elif not self.transport.is_closing():
            self._held += data
            self._read_header()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        if self._proxied:
            asks_the_socket: Any = self.ws_protocol_class
            self.ws_protocol_class = partial(_told_class(asks_the_socket), told=self.client)  # type: ignore[assignment]
        super().handle_websocket_upgrade()

    def _is_trusted(self) -> bool:
        connection: socket.socket | None = self.transport.get_extra_info("socket")
        if connection is not None and connection.family == socket.AF_UNIX:
            return True
        address = parse_address(self.client[0]) if self.client else None
        return address is not None and self.rules.is_trusted(address)

    def _read_header(self) -> None:
        try:
            header = read_proxy_header(self._held)
        except BadProxyHeader as error:
            self._reject(str(error))
            return
        if header is None:
            return
        self._stop_waiting()
        if header.proxied:
            self.client, self._proxied = header.client, True
        rest = bytes(self._held[header.length :])
        self._held.clear()
        if rest:
            super().data_received(rest)

    def _reject(self, why: str) -> None:
        if not type(self).complained:
            type(self).complained = True
            peer = self.client[0] if self.client else "a Unix socket"
            _logger.warning("%s is trusted, but sent no good PROXY header (%s): closed (said once)", peer, why)
        self.transport.close()

    def _stop_waiting(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Told(asyncio.Protocol):
    """Stands before a WebSocket protocol class: its client is who it was told, not who holds the socket."""

    client: Endpoint | None

    def __init__(self, *, told: Endpoint | None, **settings: Any) -> None:
        super().__init__(**settings)
        self._told = told

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.client = self._told


@lru_cache
def _told_class(base: Any) -> type:
    return type(f"Told{base.__name__}", (_Told, base), {})
