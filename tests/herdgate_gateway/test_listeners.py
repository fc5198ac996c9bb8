"""Listening sockets: every form, real binds, and what is said when one cannot be had."""

import asyncio
import os
import re
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate import ConfigurationError
from herdgate.asgi import Receive, Scope, Send
from herdgate_gateway.listeners import Inherited, Systemd, Tcp, Unix, open_listeners, read_listen, shown
from tests.apps import answer
from tests.herdgate_gateway.in_thread import serving
from tests.wire import WAIT_S, ask


@contextmanager
def opened(*specs: str, **options: object) -> Iterator[list[socket.socket]]:
    listeners = open_listeners(specs, **options)  # type: ignore[arg-type]
    try:
        yield listeners
    finally:
        for listener in listeners:
            listener.close()


def refused(*specs: str, **options: object) -> str:
    """The one line that is said; nothing stays open."""
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(ConfigurationError) as error:
        open_listeners(specs, **options)  # type: ignore[arg-type]
    assert set(Path("/proc/self/fd").iterdir()) <= before
    message = str(error.value)
    assert "\n" not in message
    assert specs[-1][:77] in message
    return message


def connects(family: int, address: object) -> bool:
    with socket.socket(family) as client:
        client.settimeout(WAIT_S)
        return client.connect_ex(address) == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spec", "listen"),
    [
        ("127.0.0.1:8000", Tcp("127.0.0.1", 8000)),
        ("0.0.0.0:0", Tcp("0.0.0.0", 0)),
        ("gateway-1.example:65535", Tcp("gateway-1.example", 65_535)),
        ("[::1]:8000", Tcp("::1", 8000)),
        ("[fe80::1%eth0]:8000", Tcp("fe80::1%eth0", 8000)),
        ("unix:/run/herdgate.sock", Unix("/run/herdgate.sock", 0o660)),
        ("unix:relative.sock", Unix("relative.sock")),
        ("unix:/run/a b.sock?mode=666", Unix("/run/a b.sock", 0o666)),
        ("unix:/run/herdgate.sock?mode=0600", Unix("/run/herdgate.sock", 0o600)),
        ("fd:3", Inherited(3)),
        ("systemd", Systemd()),
    ],
)
def test_every_form_is_read(spec: str, listen: object) -> None:
    assert read_listen(spec) == listen


@pytest.mark.parametrize(
    "spec",
    [
        *("", " ", "8000", ":8000", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:http"),
        *("::1:8000", "[::1]", "[]:8000", "[::1]8000", "http://127.0.0.1:8000", "127.0.0.1:8000/", " 127.0.0.1:8000"),
        *(
            "unix:",
            "unix:?mode=660",
            "unix:/a?mode=888",
            "unix:/a?mode=",
            "unix:/a?mod=660",
            "unix:/a\0b",
            "/run/a.sock",
        ),
        *("fd:", "fd:x", "fd:-1", "fd:9999999999", "systemd:web", "127.0.0.1:٨٠"),
    ],
)
def test_anything_else_is_refused_with_the_forms(spec: str) -> None:
    with pytest.raises(ConfigurationError, match=r'^admin\.listen: got .*; write "127\.0\.0\.1:8000"'):
        read_listen(spec, field="admin.listen")


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(spec: str) -> None:
    try:
        listen = read_listen(spec)
    except ConfigurationError:
        return
    assert isinstance(listen, Tcp | Unix | Inherited | Systemd)


def test_tcp_on_both_families_at_one_port() -> None:
    with opened("0.0.0.0:0") as (v4,):
        port = v4.getsockname()[1]
        with opened(f"[::]:{port}") as (v6,):
            assert (v4.family, v6.family) == (socket.AF_INET, socket.AF_INET6)
            assert connects(socket.AF_INET, ("127.0.0.1", port))
            assert connects(socket.AF_INET6, ("::1", port))


def test_sockets_are_non_blocking_and_not_inherited() -> None:
    with opened("127.0.0.1:0", "[::1]:0") as listeners:
        assert [listener.getblocking() for listener in listeners] == [False, False]
        assert [listener.get_inheritable() for listener in listeners] == [False, False]
        assert all(listener.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) for listener in listeners)


def test_name_opens_every_address_it_has_here() -> None:
    known = {entry[0] for entry in socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM)}
    with opened("localhost:0") as listeners:
        assert {listener.family for listener in listeners} == known


def test_port_is_free_again_right_after_its_process_ended() -> None:
    with opened("127.0.0.1:0") as (listener,):
        address = listener.getsockname()
        client = socket.create_connection(address)
        listener.setblocking(True)
        served = listener.accept()[0]
    served.close()  # the side that closes first stays in TIME_WAIT
    client.close()
    with opened(f"127.0.0.1:{address[1]}"):
        pass


def test_port_in_use_says_so_and_what_to_do() -> None:
    with opened("127.0.0.1:0") as (listener,):
        message = refused("127.0.0.1:0", f"127.0.0.1:{listener.getsockname()[1]}")
    assert "in use" in message
    assert "ss -ltnp" in message


def test_address_of_another_machine_says_so() -> None:
    assert "no interface here" in refused("192.0.2.1:0")


def test_unknown_name_says_so() -> None:
    assert "nobody knows that name" in refused(f"{'a' * 64}.example:0")


def as_nobody(spec: str) -> str:
    """What an unprivileged process is told."""
    code = "import os, encodings.idna; from herdgate_gateway.listeners import *; os.geteuid() or os.setuid(65534)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; open_listeners([{spec!r}])"],
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.stderr.strip().rpartition("\n")[2]


def test_privileged_port_without_the_privilege_says_so() -> None:
    if int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text()) <= 1:
        pytest.skip("every port is free for all here")
    assert "CAP_NET_BIND_SERVICE" in as_nobody("127.0.0.1:1")


def test_directory_without_permission_says_so(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert "no permission" in as_nobody(f"unix:{tmp_path}/s")


@pytest.mark.parametrize(("suffix", "mode"), [("", 0o660), ("?mode=666", 0o666), ("?mode=0600", 0o600)])
def test_unix_socket_has_its_mode_whatever_the_umask(tmp_path: Path, suffix: str, mode: int) -> None:
    path = tmp_path / "s"
    before = os.umask(0o077)
    try:
        with opened(f"unix:{path}{suffix}"):
            assert stat.S_IMODE(path.stat().st_mode) == mode
            assert connects(socket.AF_UNIX, str(path))
    finally:
        os.umask(before)


def test_socket_file_of_a_dead_process_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    code = "import socket,sys,os; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); os._exit(0)"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert path.is_socket()
    assert not connects(socket.AF_UNIX, str(path))
    with opened(f"unix:{path}"):
        assert connects(socket.AF_UNIX, str(path))


def test_socket_file_of_a_live_process_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with opened(f"unix:{path}"):
        assert "another process listens there" in refused(f"unix:{path}")
        assert connects(socket.AF_UNIX, str(path))


def test_socket_file_goes_when_its_listener_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with opened(f"unix:{path}"):
        assert path.is_socket()
    assert not path.exists()


def test_socket_file_that_is_another_s_by_now_stays(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with opened(f"unix:{path}") as (first,):
        path.rename(tmp_path / "away")
        with opened(f"unix:{path}"):
            first.close()
            assert connects(socket.AF_UNIX, str(path))


def test_socket_file_goes_when_a_listener_after_it_cannot_be_had(tmp_path: Path) -> None:
    refused(f"unix:{tmp_path}/s", f"unix:{tmp_path}/missing/s")
    assert list(tmp_path.iterdir()) == []


def test_socket_file_of_an_inherited_listener_stays(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as inherited:
        inherited.bind(str(path))
        inherited.listen()
        with opened(f"fd:{os.dup(inherited.fileno())}"):
            pass
        assert path.is_socket()


def test_listener_is_shown_as_it_would_be_written(tmp_path: Path) -> None:
    with opened("127.0.0.1:0", "[::1]:0", f"unix:{tmp_path}/s?mode=600") as listeners:
        v4, v6 = (listener.getsockname()[1] for listener in listeners[:2])
        assert [shown(each) for each in listeners] == [f"127.0.0.1:{v4}", f"[::1]:{v6}", f"unix:{tmp_path}/s"]


def test_listener_without_a_file_is_shown_by_its_name() -> None:
    with socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0herdgate-{os.getpid()}")
        assert shown(abstract) == f"unix:@herdgate-{os.getpid()}"


def test_live_socket_with_a_full_backlog_is_alive(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with opened(f"unix:{path}", backlog=0), socket.socket(socket.AF_UNIX) as waiting:
        waiting.connect(str(path))
        assert "another process listens there" in refused(f"unix:{path}")
        assert path.is_socket()


def test_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("precious")
    assert "something else" in refused(f"unix:{path}")
    assert path.read_text() == "precious"


def test_dangling_link_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.symlink_to(tmp_path / "elsewhere")
    assert "something else" in refused(f"unix:{path}")
    assert path.is_symlink()


def test_path_that_cannot_be_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "directory is missing" in refused(f"unix:{tmp_path}/missing/s")
    assert "directory is a file" in refused(f"unix:{tmp_path}/file/s")
    with pytest.raises(ConfigurationError, match="too long"):
        open_listeners([f"unix:{tmp_path}/{'s' * 120}"])


def test_inherited_descriptor_is_used() -> None:
    passed = socket.create_server(("127.0.0.1", 0))
    passed.set_inheritable(True)
    address, fd = passed.getsockname(), passed.detach()
    with opened(f"fd:{fd}") as (listener,):
        assert (listener.fileno(), listener.getsockname()) == (fd, address)
        assert not listener.getblocking()
        assert not listener.get_inheritable()
        assert connects(socket.AF_INET, address)


def test_descriptor_that_is_no_listener_is_refused_and_left_open() -> None:
    one, other = socket.socketpair()
    read, write = os.pipe()
    with one, other, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        assert "does not listen" in refused(f"fd:{one.fileno()}")
        assert "does not listen" in refused(f"fd:{datagrams.fileno()}")
        assert "is no open socket" in refused(f"fd:{read}")
        one.send(b"still open")
    os.close(read)
    os.close(write)
    assert "is no open socket" in refused(f"fd:{read}")


def test_one_descriptor_twice_is_refused() -> None:
    fd = socket.create_server(("127.0.0.1", 0)).detach()
    with pytest.raises(ConfigurationError, match="listed twice"):
        open_listeners([f"fd:{fd}", f"fd:{fd}"])


def in_child(fds: Sequence[int], code: str, environ: dict[str, str]) -> str:
    """What a child prints that has `fds` as 3, 4, ...: as systemd starts one."""
    start = "import os,sys\nos.environ['LISTEN_PID'] = os.environ.get('LISTEN_PID') or str(os.getpid())\n"
    moves = "".join(f"os.dup2({fd}, {100 + number})\n" for number, fd in enumerate(fds))
    moves += "".join(f"os.dup2({100 + number}, {3 + number})\n" for number in range(len(fds)))
    done = subprocess.run(
        [sys.executable, "-c", f"{start}{moves}from herdgate_gateway.listeners import *\n{code}"],
        pass_fds=fds,
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **environ},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    return done.stdout + done.stderr


def test_sockets_of_systemd_are_used_in_order(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        unix.bind(str(tmp_path / "s"))
        unix.listen()
        code = "print(*(s.getsockname() for s in open_listeners(['systemd'])))"
        printed = in_child([tcp.fileno(), unix.fileno()], code, {"LISTEN_FDS": "2"})
        assert printed.strip() == f"{tcp.getsockname()} {tmp_path / 's'}"


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({}, "passes no sockets"),
        ({"LISTEN_FDS": "0", "LISTEN_PID": str(os.getpid())}, "passes no sockets"),
        ({"LISTEN_FDS": "x", "LISTEN_PID": str(os.getpid())}, "passes no sockets"),
        ({"LISTEN_FDS": "1"}, "to another process"),
        ({"LISTEN_FDS": "1", "LISTEN_PID": "1"}, "to another process"),
    ],
)
def test_without_sockets_from_systemd_it_says_what_is_missing(environ: dict[str, str], says: str) -> None:
    assert says in refused("systemd", environ=environ)


async def respond(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, {"server": scope["server"][0]})


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
async def test_uvicorn_serves_on_all_of_them(tmp_path: Path, loop: str) -> None:
    fd = socket.create_server(("127.0.0.1", 0)).detach()
    listeners = open_listeners(["127.0.0.1:0", "[::1]:0", f"unix:{tmp_path}/s", f"fd:{fd}"])
    v6, inherited = listeners[1].getsockname()[1], listeners[3].getsockname()[1]
    with serving(respond, *listeners, loop=loop) as v4:
        assert (await ask(v4, "/")).json() == (await ask(inherited, "/")).json() == {"server": "127.0.0.1"}
        for connection in (
            asyncio.open_connection("::1", v6),
            asyncio.open_unix_connection(f"{tmp_path}/s"),
        ):
            reader, writer = await connection
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            head = await asyncio.wait_for(reader.read(), WAIT_S)
            assert re.match(rb"HTTP/1.1 200", head)
            writer.close()
