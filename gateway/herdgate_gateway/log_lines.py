"""How the gateway's log is written: as uvicorn's, one line an event; and its first line."""

import copy
import socket
from collections.abc import Sequence
from typing import Any

from uvicorn.config import LOGGING_CONFIG

from herdgate_gateway.descriptors import most_sockets
from herdgate_gateway.listeners import shown
from herdgate_gateway.settings import Settings

__all__ = ["log_config", "start_line"]


def log_config(who: str = "") -> dict[str, Any]:
    """uvicorn's configuration, and the same for our own loggers, for `logging.config.dictConfig`.

    Args:
        who: stands before each line, where several processes write to one log.
    """
    config = copy.deepcopy(LOGGING_CONFIG)
    config["loggers"]["herdgate"] = dict(config["loggers"]["uvicorn"])
    if who:
        config["formatters"]["default"]["fmt"] = f"%(levelprefix)s {who}: %(message)s"
    return config


def start_line(settings: Settings, listeners: Sequence[socket.socket], admin_url: str | None) -> str:
    """What is served where.

    Args:
        listeners: those that were opened.
        admin_url: of the admin listener, with the port that was bound; None: it is not on TCP.
    """
    admin = admin_url or settings.admin.listen or settings.admin.socket
    parts = [
        f"serving on {', '.join(map(shown, listeners))}",
        f"room for {most_sockets() * settings.processes} sockets",
        settings.fleet.shown(),
        f"owners in {place}" if (place := settings.leases.place()) else "",
        f"admin {f'on {admin}' if admin else 'off'}",
    ]
    return "; ".join(part for part in parts if part)
