"""The engine: crowds of raw WebSocket clients, thousands of handshakes a second from one process.

Parts, from the wire up: `wire`, `frames` and `answer` read and write bytes; `dialer`, `poller` and `agenda` open
sockets, watch them and keep time; `client` is one socket's life; `behaviour` says how clients come back, `scheduler`
has them do it and counts; `crowd` is the whole run, `record` its result, `preflight` and `health` the watch over the
generator itself; `command` is `python -m herdgate_loadtest.engine`, `options` reads its command line.

Rules: standard library only; runs on asyncio and uvloop alike.
"""

from herdgate_loadtest.engine.behaviour import BEHAVIOURS, parse_behaviour, parse_clients
from herdgate_loadtest.engine.config import CrowdConfig, loopback_sources
from herdgate_loadtest.engine.crowd import Crowd, Cut, Snapshot
from herdgate_loadtest.engine.record import (
    BehaviourRecord,
    Outcome,
    Record,
    ServerCounts,
    compute_record,
)
from herdgate_loadtest.engine.scheduler import Attempt

__all__ = [
    "BEHAVIOURS",
    "Attempt",
    "BehaviourRecord",
    "Crowd",
    "CrowdConfig",
    "Cut",
    "Outcome",
    "Record",
    "ServerCounts",
    "Snapshot",
    "compute_record",
    "loopback_sources",
    "parse_behaviour",
    "parse_clients",
]
