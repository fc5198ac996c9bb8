"""The client's connection until it becomes a WebSocket: uvicorn's HTTP protocol, which leaves no cycle behind.

It and its parser hold each other. Only a garbage collection would free them, and one over the sockets of a crowd stops
the process for half a second, so that it is made rare (`herdgate_gateway.serve`).

Built on uvicorn 0.54 (the class below it is not its public API).
"""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["HttpLeg"]


class HttpLeg(HttpToolsProtocol):
    """The class for `uvicorn.Config(http=...)`."""

    def handle_websocket_upgrade(self) -> None:
        super().handle_websocket_upgrade()
        self._let_go()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._let_go()

    def _let_go(self) -> None:
        without_parser: Any = None
        self.parser = without_parser
