"""Whether shards are served: a handshake for each, again and again until it is let in.

Rules: no task each, as for the crowd. Half of the shards are asked for at one gateway, half at the other; each four
times a second, at a moment of its own. A try that has no answer for two seconds is given up.
"""

import asyncio
import base64
import random
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import count

from herdgate_loadtest.bench.crowds import until
from herdgate_loadtest.engine.agenda import Agenda
from herdgate_loadtest.engine.dialer import Dialer, reset
from herdgate_loadtest.engine.poller import Poller
from herdgate_loadtest.engine.target import Target
from herdgate_loadtest.engine.wire import Handshake, parse_response
from herdgate_loadtest.errors import WireError
from herdgate_loadtest.servers.lease_table import shard_of

__all__ = ["EVERY_S", "ids_in", "reached"]

EVERY_S = 0.25

_PATIENCE_S = 2.0
_READ_SIZE = 16 * 1024


async def reached(urls: Sequence[str], shards: Iterable[int], source: str, within_s: float) -> dict[int, float]:
    """Ask until every shard is served, or the time is over.

    Args:
        urls: of gateways; `{id}` in each stands for a connection id.
        source: address of this machine to dial from.
        within_s: seconds.

    Returns:
        The moment of the first 101 by shard, monotonic seconds; those that were never served are left out.
    """
    loop, poller, dialer = asyncio.get_running_loop(), Poller(asyncio.get_running_loop()), Dialer((source,))
    agenda: Agenda[_Probe] = Agenda(loop, lambda probe: probe.turn())
    ids, began = ids_in(shards), time.monotonic()
    probes = [
        _Probe(shard, Target.of(urls[number % len(urls)].replace("{id}", name)), dialer, poller)
        for number, (shard, name) in enumerate(ids.items())
    ]
    for number, probe in enumerate(probes):
        probe.begin(agenda, began + EVERY_S * number / len(probes))
    await until(lambda: all(probe.served_at is not None for probe in probes), within_s)
    for probe in probes:
        probe.end()
    agenda.replace(())
    poller.close()
    return {probe.shard: probe.served_at for probe in probes if probe.served_at is not None}


def ids_in(shards: Iterable[int]) -> Mapping[int, str]:
    """A connection id for each shard."""
    wanted, found = set(shards), dict[int, str]()
    for number in count():
        if not wanted:
            return found
        if (shard := shard_of(f"probe-{number}")) in wanted:
            wanted.remove(shard)
            found[shard] = f"probe-{number}"
    raise AssertionError


class _Probe:
    """Of one shard; the owner of its socket, as `engine.poller.Ready`."""

    def __init__(self, shard: int, target: Target, dialer: Dialer, poller: Poller) -> None:
        self.shard = shard
        self.served_at: float | None = None
        self._target, self._dialer, self._poller = target, dialer, poller
        key = base64.b64encode(random.randbytes(16))
        self._request = Handshake(target.host, target.path).build(0, key)
        self._sock: socket.socket | None = None
        self._unread = b""
        self._dialled = 0.0

    def begin(self, agenda: "Agenda[_Probe]", when: float) -> None:
        """Ask for the first time at this moment."""
        self._agenda, self._due = agenda, when
        agenda.put(when, self)

    def turn(self) -> None:
        """Ask, unless the last answer is still to come."""
        if self.served_at is not None:
            return
        now = time.monotonic()
        self._due = max(self._due + EVERY_S, now)
        self._agenda.put(self._due, self)
        if self._sock is None or now > self._dialled + _PATIENCE_S:
            self.end()
            self._dial(now)

    def on_ready(self) -> None:
        """Read what there is."""
        if self._sock is None:
            return
        try:
            data = self._sock.recv(_READ_SIZE)
            response = parse_response(self._unread + data, ended=not data)
        except BlockingIOError:
            return
        except (OSError, WireError):
            self.end()
            return
        if response is None:
            self._unread += data
            return
        if response.status == 101:
            self.served_at = time.monotonic()
        self.end()

    def end(self) -> None:
        """Hang up, if there is a socket."""
        if self._sock is not None:
            self._poller.forget(self._sock)
            reset(self._sock)
            self._sock, self._unread = None, b""

    def _dial(self, now: float) -> None:
        self._dialled = now
        try:
            self._sock = self._dialer.open(self._target, 0)
            self._poller.watch(self._sock, self)
            self._sock.send(self._request)
        except OSError:  # out of something, or nobody listens: the next turn tries again
            self.end()
