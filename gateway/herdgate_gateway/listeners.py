"""Listening sockets from their specifications.

| spec | opens |
|---|---|
| `127.0.0.1:8000`, `localhost:8000` | TCP on IPv4; a name: on every address it has here |
| `[::1]:8000` | TCP on IPv6, and only on that: `[::]:8000` and `0.0.0.0:8000` go together |
| `unix:/run/herdgate.sock`, `unix:/run/herdgate.sock?mode=666` | a Unix socket, mode 660 unless given, in octal |
| `fd:3` | a listening stream socket inherited from the parent process |
| `systemd` | every socket that systemd passes (sd_listen_fds(3)) |

All or none: if one cannot be opened, the others are closed again. The socket file of a process that is gone is
replaced, one that somebody answers on is an error. The file of a socket made here goes when that is closed.
"""

import errno
import os
import re
import socket
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from herdgate import ConfigurationError
from herdgate_gateway.unix_listener import UnixListener

__all__ = [
    "Inherited",
    "Listen",
    "Systemd",
    "Tcp",
    "Unix",
    "closing_listeners",
    "open_listeners",
    "read_listen",
    "shown",
]

BACKLOG = 4096
"""Connections that wait to be accepted; the system cuts it to net.core.somaxconn."""
FIRST_SYSTEMD_FD = 3  # SD_LISTEN_FDS_START

_TCP = re.compile(r"(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\[\]/\s]+)):(?P<port>[0-9]{1,5})", re.ASCII)
_UNIX = re.compile(r"unix:(?P<path>[^?\0]+)(?:\?mode=(?P<mode>[0-7]{3,4}))?")
_FD = re.compile(r"fd:(?P<fd>[0-9]{1,9})", re.ASCII)
_COUNT = re.compile(r"[1-9][0-9]{0,3}", re.ASCII)
_FAMILIES = (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX)
_FORMS = 'write "127.0.0.1:8000", "[::1]:8000", "unix:/run/herdgate.sock", "fd:3" or "systemd"'
_WAYS_OUT = {
    errno.EADDRINUSE: "the port is in use: choose another, or end who has it (`ss -ltnp` names it)",
    errno.EADDRNOTAVAIL: "no interface here has that address: choose one of `ip address`",
    errno.EAFNOSUPPORT: "this machine has no IPv6: write an IPv4 address",
    errno.EACCES: "no permission: choose a port from 1024 on, grant CAP_NET_BIND_SERVICE, or let systemd open it",
}
_OTHER = "choose another address"
_UNIX_WAYS_OUT = {
    errno.EACCES: "no permission: let this user write to the directory (and the socket that is there)",
    errno.ENOENT: "its directory is missing: make it",
    errno.ENOTDIR: "its directory is a file: choose another path",
    errno.EROFS: "a read-only file system: choose another path",
}


class _CannotOpenError(Exception):
    """Holds the way out."""


@dataclass(frozen=True, slots=True)
class Tcp:
    """A TCP address; port 0: any free one."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Unix:
    """The path of a Unix socket, and the mode of its file."""

    path: str
    mode: int = 0o660


@dataclass(frozen=True, slots=True)
class Inherited:
    """A file descriptor that the parent process left open."""

    fd: int


@dataclass(frozen=True, slots=True)
class Systemd:
    """All that systemd passes."""


Listen = Tcp | Unix | Inherited | Systemd


def read_listen(spec: str, field: str = "listen") -> Listen:
    """What a specification asks for; opens nothing.

    Args:
        spec: one of the forms above.
        field: the setting it comes from, for the message.

    Raises:
        ConfigurationError: it has none of the forms.
    """
    if spec == "systemd":
        return Systemd()
    if match := _FD.fullmatch(spec):
        return Inherited(int(match["fd"]))
    if match := _UNIX.fullmatch(spec):
        return Unix(match["path"], int(match["mode"], 8)) if match["mode"] else Unix(match["path"])
    match = _TCP.fullmatch(spec)
    if match is None or int(match["port"]) > 65_535:
        raise ConfigurationError(field, spec, _FORMS)
    return Tcp(match["v6"] or match["host"], int(match["port"]))


def open_listeners(
    specs: Sequence[str],
    backlog: int = BACKLOG,
    *,
    field: str = "listen",
    environ: Mapping[str, str] = os.environ,
) -> list[socket.socket]:
    """Listening, non-blocking sockets, in the order of `specs`; the caller closes them.

    Args:
        specs: forms above; a name and `systemd` may give more than one socket.
        backlog: connections that wait to be accepted.
        field: the setting they come from, for the message.
        environ: where systemd says what it passes.

    Raises:
        ConfigurationError: one of them cannot be opened; the message says why and what to do. None is open then.
    """
    with ExitStack() as opened:
        listeners: list[socket.socket] = []
        for spec in specs:
            try:
                for listener in _open(read_listen(spec, field), backlog, environ):
                    if any(listener.fileno() == other.fileno() for other in listeners):
                        listener.detach()
                        raise _CannotOpenError("the same descriptor is listed twice: remove one")
                    listeners.append(opened.enter_context(listener))
            except _CannotOpenError as error:
                raise ConfigurationError(field, spec, str(error)) from None
        opened.pop_all()
        return listeners


@contextmanager
def closing_listeners(listeners: list[socket.socket]) -> Iterator[list[socket.socket]]:
    """Close them all at the end, however it comes."""
    try:
        yield listeners
    finally:
        for listener in listeners:
            listener.close()


def shown(listener: socket.socket) -> str:
    """Where a listener listens, as a specification would say it, with the port that was bound."""
    address = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return f"unix:{os.fsdecode(address)}".replace("\0", "@")  # a name without a file (unix(7))
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _open(listen: Listen, backlog: int, environ: Mapping[str, str]) -> Iterator[socket.socket]:
    match listen:
        case Tcp():
            yield from _open_tcp(listen, backlog)
        case Unix():
            yield _open_unix(listen, backlog)
        case Inherited():
            yield _adopt(listen.fd, backlog)
        case Systemd():
            for fd in _systemd_fds(environ):
                yield _adopt(fd, backlog)


def _open_tcp(listen: Tcp, backlog: int) -> Iterator[socket.socket]:
    try:
        found = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise _CannotOpenError("nobody knows that name: write an address of this machine") from None
    for family, address in dict.fromkeys((entry[0], entry[4]) for entry in found):
        with _opening(family, _WAYS_OUT) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind(address)
            listener.listen(backlog)
        yield listener


def _open_unix(listen: Unix, backlog: int) -> socket.socket:
    _clear_path(listen.path)
    with _opening(socket.AF_UNIX, _UNIX_WAYS_OUT) as listener:
        listener.bind(listen.path)
        Path(listen.path).chmod(listen.mode)  # nobody can connect before listen()
        listener.listen(backlog)
    return listener


@contextmanager
def _opening(family: int, ways_out: Mapping[int, str]) -> Iterator[socket.socket]:
    """A new socket, closed again if anything fails."""
    listener = None
    try:
        # Named, the protocol makes asyncio switch Nagle's algorithm off, which holds small messages back for 40 ms.
        protocol = 0 if family == socket.AF_UNIX else socket.IPPROTO_TCP
        kind = UnixListener if family == socket.AF_UNIX else socket.socket
        listener = kind(family, socket.SOCK_STREAM, protocol)
        listener.setblocking(False)
        yield listener
    except OSError as error:
        if listener is not None:
            listener.close()
        raise _CannotOpenError(ways_out.get(error.errno or 0, f"{error.strerror or error}: {_OTHER}")) from None


def _clear_path(path: str) -> None:
    """Remove the socket file of a process that is gone.

    Raises:
        _CannotOpenError: somebody answers on it, or it is something else.
    """
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise _CannotOpenError("something else has that path: choose another, or remove it")
        if _is_alive(path):
            raise _CannotOpenError("another process listens there: end it, or choose another path")
        Path(path).unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        raise _CannotOpenError(_UNIX_WAYS_OUT.get(error.errno or 0, f"{error.strerror}: {_OTHER}")) from None


def _is_alive(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return False
        except BlockingIOError:  # its backlog is full
            return True
    return True


def _adopt(fd: int, backlog: int) -> socket.socket:
    way_out = "pass a listening stream socket under that number, or write an address"
    try:
        listener = socket.socket(fileno=fd)
    except OSError:
        raise _CannotOpenError(f"descriptor {fd} is no open socket: {way_out}") from None
    try:
        if listener.type != socket.SOCK_STREAM or listener.family not in _FAMILIES:
            raise OSError
        listener.listen(backlog)  # fails for a connection; changes nothing but the backlog of a listener
    except OSError:
        listener.detach()  # not ours to close
        raise _CannotOpenError(f"descriptor {fd} does not listen: {way_out}") from None
    listener.setblocking(False)
    listener.set_inheritable(False)
    return listener


def _systemd_fds(environ: Mapping[str, str]) -> range:
    pid, count = environ.get("LISTEN_PID", ""), environ.get("LISTEN_FDS", "")
    if not _COUNT.fullmatch(count):
        raise _CannotOpenError("systemd passes no sockets: start this by a .socket unit, or write an address")
    if pid != str(os.getpid()):
        raise _CannotOpenError("systemd passes its sockets to another process: start this one with exec")
    return range(FIRST_SYSTEMD_FD, FIRST_SYSTEMD_FD + int(count))
