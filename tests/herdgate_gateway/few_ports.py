"""A command where there are four ports to dial from: `python -m tests.herdgate_gateway.few_ports COMMAND...`

It runs in a network of its own, in which a worker listens on `WORKER`, takes every handshake, and hangs up at the
first word. What it has inherited, such as a listener, is of the network outside. Needs root.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
import threading
from base64 import b64encode
from hashlib import sha1
from pathlib import Path

__all__ = ["PORTS", "WORKER"]

PORTS = 4
WORKER = "ws://127.0.0.1:9001"

_CLONE_NEWNET = 0x4000_0000  # <linux/sched.h>
_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1  # netdevice(7)
_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455 section 1.3


def _enter() -> socket.socket:
    """A network with a loopback and few ports; returns the worker's listener."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text(f"40000 {40000 + PORTS - 1}")
    return socket.create_server(("127.0.0.1", 9001))


def _work(listener: socket.socket) -> None:
    """Take handshakes until the parent, which becomes the command, has ended."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_take, args=(connection,), daemon=True).start()


def _take(connection: socket.socket) -> None:
    """Take one handshake, and hang up at the first word."""
    with connection:
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(65536)
        key = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:"))
        accept = b64encode(sha1(key.partition(b":")[2].strip() + _MAGIC).digest())
        upgrade = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        connection.sendall(upgrade + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        connection.recv(1)


if __name__ == "__main__":
    listens = _enter()
    if os.fork() == 0:
        _work(listens)
    os.execvp(sys.argv[1], sys.argv[1:])
