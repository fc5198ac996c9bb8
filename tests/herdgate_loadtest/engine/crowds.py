"""Crowds for tests: small, quick, at a server that the test owns."""

from collections.abc import Callable
from typing import Any

from herdgate_loadtest.engine import Crowd, CrowdConfig, Record
from tests.herdgate_loadtest.engine.servers import Peer, Server

__all__ = ["Once", "admit", "close_codes", "crowd_of", "say_nothing", "spoiled"]


def crowd_of(server: Server, count: int = 1, *, behaviour: str = "obey", **settings: Any) -> Crowd:
    observe = settings.pop("observe", None)
    settings = {"spread_s": 0.0, "timeout_s": 2.0} | settings
    return Crowd(CrowdConfig(urls=(server.url,), clients={behaviour: count}, **settings), observe)


def admit(peer: Peer) -> None:
    peer.admit()


def say_nothing(peer: Peer) -> None:
    """Leave the handshake unanswered."""
    assert peer.request


class Once:
    """Does `first` with the first handshake of every client (or the first `times`), and admits the others."""

    def __init__(self, first: Callable[[Peer], None], *, times: int = 1) -> None:
        self.first = first
        self.times = times
        self.left = times

    def __call__(self, peer: Peer) -> None:
        if self.left:
            self.left -= 1
            self.first(peer)
        else:
            peer.admit()


def close_codes(peer: Peer) -> list[int]:
    """Codes of the close frames the client sent, which are all it ever sends here."""
    frames, codes = peer.received, []
    while frames:
        size = frames[1] & 0x7F
        mask, payload = frames[2:6], frames[6 : 6 + size]
        if frames[0] & 0x0F == 8:
            codes.append(int.from_bytes(bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload)), "big"))
        frames = frames[6 + size :]
    return codes


def spoiled(record: Record) -> list[str]:
    """Why the record is not valid, apart from a test machine that was busy."""
    assert record.valid is not bool(record.reasons)
    return [reason for reason in record.reasons if "scheduler lag" not in reason]
