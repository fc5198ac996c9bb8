"""What uvicorn says of single clients is not logged: one that means harm would write the log.

Its protocol classes take a logger of ours, which passes errors on and drops the rest: lines for each client that is let
in, each handshake that is malformed, each request refused.
"""

import logging

__all__ = ["QUIET", "be_quiet"]

QUIET = logging.getLogger("uvicorn.error.clients")


def be_quiet() -> None:
    """Pass on errors only. To be called after uvicorn has set its loggers up, which sets the level of this one back."""
    QUIET.setLevel(logging.ERROR)
