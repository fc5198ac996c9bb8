"""TCP options."""

import socket

from herdgate_gateway.tcp_options import DEAD_AFTER_S, set_tcp_options


def test_a_quiet_peer_is_probed_and_given_up_after_a_minute() -> None:
    with socket.socket() as sock:
        set_tcp_options(sock)

        def option(name: int) -> int:
            return sock.getsockopt(socket.IPPROTO_TCP, name)

        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        quiet_s = option(socket.TCP_KEEPIDLE) + option(socket.TCP_KEEPINTVL) * option(socket.TCP_KEEPCNT)
        assert quiet_s == DEAD_AFTER_S == 60
        assert option(socket.TCP_USER_TIMEOUT) == 60_000


def test_small_messages_leave_at_once() -> None:
    with socket.socket() as sock:
        set_tcp_options(sock)

        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_unix_socket_is_left_as_it_is() -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        set_tcp_options(sock)

        assert not sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
