"""Can this machine carry the crowd? Asked before the first socket is opened.

Rules: figures first. One source address reaches one listener from as many ports as the ephemeral range has, about
28,000 on Linux; a process holds as many sockets as its descriptor limit. The soft limit is raised to the hard one where
that is enough. Ports that earlier runs left in TIME_WAIT count as taken unless the kernel reuses them (tcp_tw_reuse).
"""

import resource
from dataclasses import dataclass
from pathlib import Path

from herdgate_loadtest.counted import counted
from herdgate_loadtest.errors import PreflightError

__all__ = ["Limits", "check_limits", "preflight", "read_limits"]

_SPARE_DESCRIPTORS = 64
_PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_SOCKSTAT = Path("/proc/net/sockstat")
_REUSE = Path("/proc/sys/net/ipv4/tcp_tw_reuse")
_REUSE_ALL, _REUSE_LOOPBACK = 1, 2
_IANA_RANGE = (49_152, 65_535)  # what systems without /proc use


@dataclass(frozen=True, slots=True)
class Limits:
    """What this machine has.

    Attributes:
        descriptors: soft limit of this process.
        most_descriptors: hard limit.
        ports: per source address and listener.
        time_wait: TCP connections in TIME_WAIT, left by earlier runs.
        reuse: the kernel's tcp_tw_reuse: 0 never, 1 always, 2 on loopback.
    """

    descriptors: int
    most_descriptors: int
    ports: int
    time_wait: int = 0
    reuse: int = 0

    def ports_lost(self, *, loopback: bool) -> int:
        """Ports that TIME_WAIT may keep from us."""
        reused = self.reuse == _REUSE_ALL or (self.reuse == _REUSE_LOOPBACK and loopback)
        return 0 if reused else self.time_wait


def read_limits() -> Limits:
    """Ask the system."""
    soft, hard = (_endless(limit) for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
    first, last = _port_range()
    return Limits(soft, hard, last - first + 1, _time_wait(), _reuse())


def preflight(clients: int, *, sources: int = 1, listeners: int = 1, loopback: bool = False) -> list[str]:
    """Check, and raise the soft descriptor limit if that is what it takes.

    Args:
        clients: sockets held at the same time.
        sources: addresses they are dialled from.
        listeners: different addresses they are dialled to.
        loopback: all of those are on this machine.

    Returns:
        Warnings: the run can start, but may be disturbed.

    Raises:
        PreflightError: the run cannot work; one line with the figures and the way out.
    """
    limits = read_limits()
    warnings = check_limits(clients, limits, sources=sources, listeners=listeners, loopback=loopback)
    needed = clients + _SPARE_DESCRIPTORS
    if needed > limits.descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    return warnings


def check_limits(
    clients: int, limits: Limits, *, sources: int = 1, listeners: int = 1, loopback: bool = False, processes: int = 1
) -> list[str]:
    """The pure part of `preflight`; descriptors are those of one of so many processes that share the clients."""
    ports = limits.ports * listeners
    crowd, problems = counted(clients, "client"), []
    if clients > ports * sources:
        problems.append(
            f"they need {clients:,} ports, {_addresses(sources)} {ports * sources:,} ({ports:,} each):"
            f" use {counted(-(-clients // ports), 'source address', 'source addresses')}"
        )
    room, most = limits.most_descriptors - _SPARE_DESCRIPTORS, -(-clients // processes)
    if most > room:
        more = f" or use {counted(-(-clients // room), 'process', 'processes')}" if room > 0 else ""
        they = "they" if processes == 1 else f"{most:,} of them in a process"
        problems.append(
            f"{they} need {most + _SPARE_DESCRIPTORS:,} descriptors, the hard limit is {limits.most_descriptors:,}:"
            f" raise it (ulimit -Hn){more}"
        )
    if problems:
        raise PreflightError(f"{crowd} will not do: {'; '.join(problems)}")
    lost = limits.ports_lost(loopback=loopback)
    if clients + lost > ports * sources:
        are = "connection is" if lost == 1 else "connections are"
        return [f"{lost:,} {are} in TIME_WAIT: ports may run out; wait a minute or add sources"]
    return []


def _addresses(count: int) -> str:
    return "one source address has" if count == 1 else f"{count:,} source addresses have"


def _endless(limit: int) -> int:
    return 1 << 31 if limit == resource.RLIM_INFINITY else limit


def _port_range() -> tuple[int, int]:
    try:
        first, last = _PORT_RANGE.read_text().split()
    except OSError:
        return _IANA_RANGE
    return int(first), int(last)


def _reuse() -> int:
    try:
        return int(_REUSE.read_text())
    except OSError:
        return 0


def _time_wait() -> int:
    try:
        words = _SOCKSTAT.read_text().split()
    except OSError:
        return 0
    return int(words[words.index("tw") + 1])
