"""A worker that owns shards, `herdgate leases hold`, and what it says of them."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Any

from herdgate_loadtest.servers.children import child_of
from herdgate_loadtest.servers.emulator import aws_environment
from herdgate_loadtest.servers.lease_table import Place, leases_command

__all__ = ["Holder", "boot_time", "hold_command"]

_END_S = 20.0


def boot_time() -> float:
    """Seconds by the clock of leases."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def hold_command(place: Place, name: str, connections: Sequence[str] = ()) -> list[str]:
    """Of a worker."""
    named = [word for connection in connections for word in ("--connection", connection)]
    return leases_command("hold", name, *place.options, "--redis", place.redis, *named)


class Holder:
    """A running one, behind its guardian.

    Args:
        connections: ids that it acts on where they are its own.

    Attributes:
        held: its shards, with their epochs.
        gained, lost: moments of gains and losses by shard, the last ones.
        acted: connection, epoch, and epoch of the row, of each effect that was accepted.
        writes: sent by it so far.
    """

    def __init__(self, place: Place, name: str, connections: Sequence[str] = ()) -> None:
        self.held: dict[int, int] = {}
        self.gained: dict[int, float] = {}
        self.lost: dict[int, float] = {}
        self.acted: list[tuple[str, int, int]] = []
        self.writes = 0
        command = hold_command(place, name, connections)
        self._guardian = subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.PIPE, text=True, env=aws_environment(), process_group=0
        )
        self._listening = threading.Thread(target=self._listen, daemon=True)
        self._listening.start()

    def crash(self) -> float:
        """Kill the worker, not its guardian; the moment."""
        moment = boot_time()
        os.kill(self._worker(), signal.SIGKILL)
        self._guardian.wait(_END_S)
        return moment

    def die_with_host(self) -> float:
        """Kill both; the moment."""
        worker, moment = self._worker(), boot_time()
        self._guardian.kill()
        os.kill(worker, signal.SIGKILL)
        self._guardian.wait(_END_S)
        return moment

    def leave(self) -> None:
        """End it in good order."""
        self._guardian.terminate()
        self._guardian.wait(_END_S)

    def interrupt(self) -> None:
        """As Ctrl-C does, which reaches its whole group."""
        os.killpg(self._guardian.pid, signal.SIGINT)
        self._guardian.wait(_END_S)

    def pause(self) -> None:
        """SIGSTOP to the worker."""
        os.kill(self._worker(), signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT to the worker."""
        os.kill(self._worker(), signal.SIGCONT)

    def end(self) -> None:
        """At once, if it runs."""
        if self._guardian.poll() is None:
            self.die_with_host()
        self._listening.join(_END_S)

    def _worker(self) -> int:
        child = child_of(self._guardian.pid)
        assert child is not None, "it has ended"
        return child

    def _listen(self) -> None:
        assert self._guardian.stdout is not None
        with self._guardian.stdout as lines:
            for line in lines:
                self._hear(json.loads(line))

    def _hear(self, told: dict[str, Any]) -> None:
        at = told["at"]
        if "gained" in told:
            self.held[told["gained"]], self.gained[told["gained"]] = told["epoch"], at
        elif "lost" in told:
            self.held.pop(told["lost"], None)
            self.lost[told["lost"]] = at
        elif "acted" in told:
            self.acted.append((told["acted"], told["epoch"], told["row_epoch"]))
        else:
            self.writes = told["writes"]
