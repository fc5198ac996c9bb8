"""TCP options of both legs: no waiting before a small message leaves, and a peer that is gone for good is found.

- `TCP_NODELAY`: asyncio sets it only on sockets whose protocol number says TCP. One accepted by a listener made with
  `socket.socket()` has 0 there, and small messages would wait for delayed acknowledgements, some 40 ms each.
- Keepalive (RFC 9293 section 3.8.4) probes a quiet peer; the user timeout (RFC 5482), where the system has it, gives up
  one that owes an acknowledgement. Nothing of it is seen by the application.
"""

import socket

__all__ = ["DEAD_AFTER_S", "set_tcp_options"]

IDLE_S, INTERVAL_S, PROBES = 30, 10, 3
DEAD_AFTER_S = IDLE_S + INTERVAL_S * PROBES
"""Seconds until a connection to a peer that answers nothing is given up."""

_OPTIONS = {
    "TCP_NODELAY": 1,
    "TCP_KEEPIDLE": IDLE_S,
    "TCP_KEEPINTVL": INTERVAL_S,
    "TCP_KEEPCNT": PROBES,
    "TCP_USER_TIMEOUT": DEAD_AFTER_S * 1000,
}


def set_tcp_options(sock: socket.socket) -> None:
    """Set them on a TCP connection; other sockets are left as they are."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS.items():
        if (option := getattr(socket, name, None)) is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
