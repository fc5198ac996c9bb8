"""SIGHUP after a certificate was replaced on disk."""

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trustme
from websockets.asyncio.client import connect

from tests.herdgate_gateway.gateways import echo_worker
from tests.herdgate_gateway.reloads import reload
from tests.herdgate_gateway.serving import Serving, launched
from tests.servers import START_S
from tests.wire import WAIT_S, eventually

TLS = 'rate = 1000\ntls = { certificate = "{folder}/c.pem", key = "{folder}/k.pem" }\n'


async def test_a_certificate_replaced_on_disk_is_shown_to_new_connections_while_old_ones_go_on() -> None:
    authority = trustme.CA()
    async with echo_worker() as worker:
        with _tls(worker.url, authority, trustme.KeyType.RSA) as gateway:
            await eventually(lambda: _serves(gateway, authority), "it serves TLS", within_s=START_S)
            async with _open(gateway, authority) as client:
                # Another kind of key: one that stayed beside it would still be shown to clients that like it better.
                new = _renew(gateway.folder, authority, trustme.KeyType.ECDSA)
                (line,) = await reload(gateway)
                assert (
                    line == "INFO:     settings reloaded, changed: nothing; files read again: tls.certificate, tls.key"
                )
                for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
                    assert await _shown(gateway, authority, version=version) == new
                    assert await _shown(gateway, authority, version=version, name=None) == new
                await client.send("still there")
                assert await asyncio.wait_for(client.recv(), WAIT_S) == "still there"
            async with _open(gateway, authority) as client:
                await client.send("hello")
                assert await asyncio.wait_for(client.recv(), WAIT_S) == "hello"


async def test_a_certificate_without_its_key_changes_nothing() -> None:
    authority = trustme.CA()
    async with echo_worker() as worker:
        with _tls(worker.url, authority) as gateway:
            await eventually(lambda: _serves(gateway, authority), "it serves TLS", within_s=START_S)
            old = await _shown(gateway, authority)
            key = (gateway.folder / "k.pem").read_bytes()
            new = _renew(gateway.folder, authority, trustme.KeyType.ECDSA)
            rest = (gateway.folder / "k.pem").read_bytes()
            (gateway.folder / "k.pem").write_bytes(key)
            (line,) = await reload(gateway, "rate = 1000", "rate = 0")
            assert "settings not reloaded, all stays as it was: tls.certificate: got" in line
            assert await _shown(gateway, authority) == old
            async with _open(gateway, authority):
                pass
            (gateway.folder / "k.pem").write_bytes(rest)
            await reload(gateway, "rate = 0", "rate = 1000")
            assert await _shown(gateway, authority) == new


async def test_switching_tls_off_takes_a_restart_even_when_its_files_are_gone() -> None:
    authority = trustme.CA()
    async with echo_worker() as worker:
        with _tls(worker.url, authority) as gateway:
            await eventually(lambda: _serves(gateway, authority), "it serves TLS", within_s=START_S)
            shown = await _shown(gateway, authority)
            tls = TLS.replace("{folder}", str(gateway.folder))
            (gateway.folder / "c.pem").unlink()
            lines = await reload(gateway, tls, "rate = 500\n", lines=2)
            assert lines == [
                "WARNING:  these settings take a restart, and stay as they were: tls.certificate, tls.key",
                "INFO:     settings reloaded, changed: rate",
            ]
            assert await _shown(gateway, authority) == shown


@contextmanager
def _tls(worker: str, authority: trustme.CA, kind: trustme.KeyType = trustme.KeyType.ECDSA) -> Iterator[Serving]:
    """A gateway that is about to serve TLS."""
    with launched(f"workers = ['{worker}']\n{TLS}", fill=lambda folder: _renew(folder, authority, kind)) as gateway:
        yield gateway


def _renew(folder: Path, authority: trustme.CA, kind: trustme.KeyType) -> bytes:
    """Write a chain and its key; the certificate, DER."""
    issued = authority.issue_cert("localhost", key_type=kind)
    chain = issued.cert_chain_pems[0].bytes()
    (folder / "c.pem").write_bytes(chain)
    (folder / "k.pem").write_bytes(issued.private_key_pem.bytes())
    return ssl.PEM_cert_to_DER_cert(chain.decode())


def _trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def _open(gateway: Serving, authority: trustme.CA) -> connect:
    return connect(
        f"wss://localhost:{gateway.port}/ws", host="127.0.0.1", ssl=_trusting(authority), proxy=None, ping_interval=None
    )


async def _shown(
    gateway: Serving,
    authority: trustme.CA,
    *,
    version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    name: str | None = "localhost",
) -> bytes | None:
    """The certificate a new connection gets; `name`: of the server, None to ask for none."""
    context = _trusting(authority)
    context.check_hostname = name is not None
    context.minimum_version = context.maximum_version = version
    opening = asyncio.open_connection("127.0.0.1", gateway.port, ssl=context, server_hostname=name or "")
    _, writer = await asyncio.wait_for(opening, WAIT_S)
    try:
        certificate: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return certificate
    finally:
        writer.transport.abort()


async def _serves(gateway: Serving, authority: trustme.CA) -> bool:
    try:
        await _shown(gateway, authority)
    except OSError:
        return False
    return True
