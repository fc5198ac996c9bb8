"""A worker that could not be dialled for want of descriptors or ports: our fault alone, so the answer is `full`.

It comes with a time to come back, like every denial, and the log says once what to raise. The dial itself tells neither
apart: to its caller, a worker that cannot be reached is `upstream`, whatever the system said.
"""

import errno
import logging
from functools import cache

from herdgate import Refused
from herdgate.asgi import ASGIApp, Receive, Scope, Send
from herdgate_gateway.descriptors import OUT_OF_ROOM, say_out_of_room

__all__ = ["full_if_ours", "with_shortages"]

_logger = logging.getLogger("herdgate.gateway")


@cache
def _say_out_of_ports() -> None:
    """Log it, once in this process: about 28,000 sockets to one address of a worker are what Linux has ports for."""
    _logger.error(
        "out of ports to dial workers from: widen net.ipv4.ip_local_port_range, or give workers more addresses;"
        " or there is no route to one (said once)"
    )


_SAY = {**dict.fromkeys(OUT_OF_ROOM, say_out_of_room), errno.EADDRNOTAVAIL: _say_out_of_ports}


def full_if_ours(refused: Refused) -> Refused:
    """The same refusal, or `full`, if it comes of a system without room for one more socket."""
    error: BaseException | None = refused
    while error is not None:
        if isinstance(error, OSError) and error.errno in _SAY:
            _SAY[error.errno]()
            return Refused("full")
        error = error.__cause__ or error.__context__
    return refused


def with_shortages(app: ASGIApp) -> ASGIApp:
    """An app whose refusals are `full` where that is the truth."""

    async def told(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except Refused as refused:
            raise full_if_ours(refused) from refused

    return told
