"""Who may change something over a listener: whoever reaches the control socket, or who shows the token over HTTP.

Without a token there is no control over HTTP at all. A token is compared in constant time, and never shown.
"""

import hmac
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from herdgate_gateway.errors import ConfigurationError

__all__ = ["Access", "check_token", "everyone", "nobody", "token_holders"]

Access = Callable[[Request], Response | None]
"""The refusal of a request, or None: it may go on."""


def check_token(field: str, token: str) -> None:
    """Check that a header can carry a token.

    Raises:
        ConfigurationError: it cannot; the message never shows it.
    """
    if not token or not token.isprintable() or token != token.strip():
        raise ConfigurationError(field, "one that will not do", "write printable characters, no spaces around them")


def everyone(_request: Request) -> None:
    """For the control socket: its file mode has decided already."""
    return


def nobody(_request: Request) -> Response:
    """For HTTP without a token."""
    way_out = "set admin.token, or use the control socket (admin.socket)"
    return PlainTextResponse(f"control over HTTP is off; {way_out}\n", 403)


def token_holders(token: str) -> Access:
    """For HTTP with a token, shown as `Authorization: Bearer ...` (RFC 6750 section 2.1)."""
    expected = token.encode()

    def refuse(request: Request) -> Response | None:
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        # Starlette decodes headers as latin-1; the token is compared as the bytes that came.
        if scheme.lower() == "bearer" and hmac.compare_digest(shown.strip().encode("latin-1"), expected):
            return None
        way_out = "send 'Authorization: Bearer' and the value of admin.token"
        return PlainTextResponse(f"missing or wrong token; {way_out}\n", 401, {"www-authenticate": "Bearer"})

    return refuse
