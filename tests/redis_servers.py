"""Real Redis servers for tests: alone, with a replica and a sentinel, as a cluster, with TLS.

    with redis_server() as redis:
        ... redis.url, redis.command("SET", "a", 1), redis.pause()

Rules: every server has a free port of 127.0.0.1 and a temporary folder, keeps nothing on disk, and is ended by its
process id (on Linux also when the test process dies). Where there is no redis-server tests are skipped (`tests.needs`).
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import trustme
from redis import Redis

from tests.child_servers import TRIES, ChildServer, free_port
from tests.needs import unmet
from tests.servers import poll

__all__ = ["RedisServer", "Sentinel", "redis_cluster", "redis_server", "redis_with_sentinel", "redis_with_tls"]

START_S = 10.0
END_S = 5.0
SLOTS = 16_384

MEMORY_ONLY = ("--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0")
SENTINEL = """\
port {port}
bind 127.0.0.1
dir {folder}
sentinel monitor fleet 127.0.0.1 {primary} 1
sentinel down-after-milliseconds fleet 300
sentinel failover-timeout fleet 2000
"""
SENTINEL_PASSWORD = """\
sentinel auth-pass fleet {password}
requirepass {password}
"""


class RedisServer(ChildServer):
    """One server process.

    Attributes:
        port: of 127.0.0.1; the same after a restart.
        password: of the default user, None if there is none.
    """

    def __init__(self, folder: Path, *options: str, password: str | None = None) -> None:
        super().__init__(folder)
        self._options = (*options, *(("--requirepass", password) if password else ()))
        self._binary = _binary("redis-server")
        self.password = password

    @property
    def url(self) -> str:
        """Where it is, with its password."""
        return f"redis://{self._secret}127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, again on the port it had; returns when it serves."""
        for _ in range(TRIES):
            port = self.port or free_port()
            if self._starts(self._command(port)):
                self.port = port
                return
        raise RuntimeError(f"redis did not start:\n{self.log()}")

    def stop(self) -> None:
        """Ask it to end, and wait for that: it closes its connections in good order."""
        os.kill(self.pid, signal.SIGTERM)
        assert self._process is not None
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        self.kill()

    def restart(self) -> None:
        """Start it anew on its port, empty; no script is known to it."""
        self.kill()
        self.start()

    def command(self, *words: str | bytes | float) -> Any:
        """Run one command on a connection of its own."""
        with Redis(port=self.port, password=self.password, socket_timeout=END_S) as client:
            return client.execute_command(*words)

    def flush(self) -> None:
        """Forget all keys and scripts."""
        self.command("FLUSHALL")
        self.command("SCRIPT", "FLUSH")

    def calls(self) -> int:
        """Scripts that clients have asked for since the last start (EVAL, EVALSHA)."""
        stats = self.command("INFO", "commandstats")
        return sum(stats.get(f"cmdstat_{name}", {}).get("calls", 0) for name in ("eval", "evalsha"))

    @property
    def _secret(self) -> str:
        return f":{self.password}@" if self.password else ""

    def _command(self, port: int) -> list[str]:
        place = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(self._folder)]
        return [self._binary, *place, *MEMORY_ONLY, *self._options]

    def _starts(self, command: list[str], ready: str = "Ready to accept connections") -> bool:
        """Start a process; True when it is ready, False if it ends instead."""
        return self._launch(command, lambda: ready in self.log(), START_S)


class Sentinel(RedisServer):
    """A sentinel that watches one primary, named `fleet`, and fails over within about a second."""

    def __init__(self, folder: Path, primary: RedisServer) -> None:
        super().__init__(folder)
        self.password = primary.password
        self._binary = _binary("redis-sentinel")
        self._primary = primary

    @property
    def url(self) -> str:
        """Where to ask for the primary."""
        return f"redis+sentinel://{self._secret}127.0.0.1:{self.port}/fleet"

    def primary_port(self) -> int:
        """Port of the primary, as the sentinel sees it."""
        return int(self.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "fleet")[1])

    def _command(self, port: int) -> list[str]:
        settings = self._folder / "sentinel.conf"
        text = SENTINEL + (SENTINEL_PASSWORD if self.password else "")
        values = {"port": port, "folder": self._folder, "primary": self._primary.port, "password": self.password}
        settings.write_text(text.format(**values))
        return [self._binary, str(settings)]

    def start(self) -> None:
        """Start it, and have it look ten times a second, not once in one, two or ten seconds."""
        super().start()
        periods = ("INFO-PERIOD", "PING-PERIOD", "PUBLISH-PERIOD", "ASK-PERIOD")
        self.command("SENTINEL", "DEBUG", *(word for period in periods for word in (period, 100)))

    def _starts(self, command: list[str], ready: str = "+monitor") -> bool:
        return super()._starts(command, ready)


@contextmanager
def redis_server(*options: str, password: str | None = None) -> Iterator[RedisServer]:
    """One server.

    Args:
        options: further ones of redis-server (`"--maxclients", "1"`).
        password: that clients have to show.
    """
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(Path(folder), *options, password=password)
        server.start()
        try:
            yield server
        finally:
            server.kill()


@contextmanager
def redis_with_sentinel(password: str | None = None) -> Iterator[tuple[RedisServer, RedisServer, Sentinel]]:
    """A primary, its replica in step with it, and a sentinel that knows both; all with the same password, if any."""
    with ExitStack() as stack:
        shown = ("--masterauth", password) if password else ()
        primary = stack.enter_context(redis_server(*shown, password=password))
        following = ("--replicaof", f"127.0.0.1 {primary.port}", *shown)
        replica = stack.enter_context(redis_server(*following, password=password))
        sentinel = Sentinel(Path(stack.enter_context(tempfile.TemporaryDirectory())), primary)
        sentinel.start()
        stack.callback(sentinel.kill)
        poll(lambda: replica.command("INFO")["master_link_status"] == "up", "the replica in step", within_s=START_S)
        poll(lambda: f"127.0.0.1:{replica.port}" in sentinel.log(), "the sentinel has seen the replica", within_s=15)
        yield primary, replica, sentinel


@contextmanager
def redis_cluster(size: int = 3) -> Iterator[Sequence[RedisServer]]:
    """A cluster without replicas, all slots assigned in equal ranges. It takes 2 s to become one."""
    with ExitStack() as stack:
        nodes = [_ClusterNode(Path(stack.enter_context(tempfile.TemporaryDirectory()))) for _ in range(size)]
        for node in nodes:
            stack.callback(node.kill)
            node.start()
        for number, node in enumerate(nodes):
            first, last = SLOTS * number // size, SLOTS * (number + 1) // size - 1
            node.command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
            node.command("CLUSTER", "ADDSLOTSRANGE", first, last)
            if number:
                node.command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, nodes[0].bus_port)
        poll(lambda: all(_is_whole(node, size) for node in nodes), "the cluster is whole", within_s=20)
        yield nodes


@contextmanager
def redis_with_tls(authority: trustme.CA) -> Iterator[RedisServer]:
    """One server that speaks TLS only, with a certificate of `authority` for 127.0.0.1; `port` is that of TLS."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        leaf = authority.issue_cert("127.0.0.1")
        leaf.private_key_and_cert_chain_pem.write_to_path(place / "server.pem")
        authority.cert_pem.write_to_path(place / "ca.pem")
        files = ("--tls-cert-file", "server.pem", "--tls-key-file", "server.pem", "--tls-ca-cert-file", "ca.pem")
        server = _TlsServer(place, *files, "--tls-auth-clients", "no")
        server.start()
        try:
            yield server
        finally:
            server.kill()


class _TlsServer(RedisServer):
    @property
    def url(self) -> str:
        return f"rediss://127.0.0.1:{self.port}/0?ssl_ca_certs={self._folder / 'ca.pem'}"

    def _command(self, port: int) -> list[str]:
        return [*super()._command(0), "--tls-port", str(port)]


class _ClusterNode(RedisServer):
    def __init__(self, folder: Path) -> None:
        self.bus_port = free_port()
        settings = ("--cluster-enabled", "yes", "--cluster-port", str(self.bus_port), "--cluster-node-timeout", "1000")
        super().__init__(folder, *settings)


def _is_whole(node: RedisServer, size: int) -> bool:
    info = node.command("CLUSTER", "INFO").decode()
    return "cluster_state:ok" in info and f"cluster_known_nodes:{size}\r" in info


def _binary(name: str) -> str:
    return shutil.which(name) or unmet(name)
