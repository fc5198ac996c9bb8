"""The certificate that TLS listeners show, and how another one takes its place while they serve.

A listener keeps the context it was opened with. That one hands each new connection over to the latest, in the callback
for the server name (RFC 6066 section 3), which OpenSSL calls for clients that name no server as well. Loading a new
chain into the context itself would leave an old one with another kind of key beside it, and half a one if it failed.
"""

import ssl
from pathlib import Path

from herdgate.core.errors import ConfigurationError

__all__ = ["LiveCertificate", "read_certificate"]


def read_certificate(certificate: Path, key: Path) -> ssl.SSLContext:
    """A context for servers, with a chain and its key from PEM files.

    Raises:
        ConfigurationError: they cannot be read, or do not go together.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Without a function for the password, OpenSSL would ask for it on the terminal.
        context.load_cert_chain(certificate, key, password=lambda: "")
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or "unreadable"
        way_out = f"write PEM files of a chain and its own key, without a password ({reason})"
        raise ConfigurationError("tls.certificate", certificate, way_out) from None
    return context


class LiveCertificate:
    """What new connections are shown.

    Attributes:
        context: for the listeners.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = self._latest = context
        context.sni_callback = self._hand_over

    def replace(self, context: ssl.SSLContext) -> None:
        """Show another one from now on; connections there are go on."""
        self._latest = context

    def _hand_over(self, connection: ssl.SSLObject, _server_name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._latest
