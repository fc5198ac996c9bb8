"""Why a server gives no service, and whether waiting helps: a wrong password is no outage.

What a server answers is known by its words. One that is asked in the wrong protocol mostly says nothing at all: a
plain Redis waits for the rest of what TLS sends it, and one with TLS hangs up on what is plain. It is asked once more
then, the other way.
"""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress

from herdgate.stores.redis.address import Address
from herdgate.stores.redis.errors import Cure, LinkDown
from herdgate.stores.redis.faults import reason_of
from herdgate.stores.redis.pem_files import file_fault

__all__ = ["diagnose"]

PROBE_S = 0.3

_TLS_AT_PLAIN = Cure("a server without TLS", "write redis:// instead of rediss://, or its port with TLS")
_PLAIN_AT_TLS = Cure("a server with TLS", "write rediss:// instead of redis://, or its port without TLS")
_CURES = [
    (re.compile(pattern, re.IGNORECASE), Cure(met, way_out))
    for pattern, met, way_out in (
        (
            r"^WRONGPASS|invalid password",
            "a wrong user or password",
            "write the right ones into its URL, as in redis://user:password@host",
        ),
        (
            r"^NOAUTH|Authentication required",
            "no password where one is asked for",
            "write it into the URL, as in redis://:password@host",
        ),
        (
            r"AUTH (?:<password>|called).* without any password",
            "a password where none is set",
            "take it out of the URL, or set requirepass there",
        ),
        (
            r"DB index is out of range|invalid DB index",
            "a database that it does not have",
            "write a lower one, as in /0",
        ),
        (r"SELECT is not allowed in cluster mode", "a node of a cluster", "write redis+cluster://host:port"),
        (
            r"unknown command .SENTINEL\b",
            "a server that is no sentinel",
            "write the port of the sentinels, or redis://host:port for this one server",
        ),
        (
            r"unknown command .CLUSTER\b|cluster support disabled",
            "a server that is no node of a cluster",
            "write redis://host:port",
        ),
        (
            r"unknown command .(?:EVAL|EVALSHA|SETRANGE)\b",
            "a server without scripts, as sentinels are",
            "write redis+sentinel://host:port/service to ask a sentinel for the primary",
        ),
        (
            r"certificate verify failed",
            "a certificate that is not trusted",
            "name its authority with ?ssl_ca_certs=/path/ca.pem, and the host as the certificate does",
        ),
        (
            r"certificate required|alert handshake failure",
            "a server that asks for a certificate",
            "name one with ?ssl_certfile=/path/cert.pem&ssl_keyfile=/path/key.pem",
        ),
    )
]
_NO_TLS = re.compile(r"wrong version number|record layer failure|http request|unexpected message", re.IGNORECASE)


async def diagnose(error: Exception, address: Address) -> LinkDown:
    """What to raise for an error of opening a channel; its cause is `error`."""
    told = LinkDown(str(address), reason_of(error, str(address)))
    told.__cause__ = error
    told.cure = _cure(told.reason, address) or await _other_protocol(told.reason, address)
    return told


def _cure(reason: str, address: Address) -> Cure | None:
    if address.has_tls and (fault := file_fault(address.options)):
        name, path, why = fault
        return Cure(f"{path} for {name}", f"give a file that can be read ({why})")
    return next((cure for pattern, cure in _CURES if pattern.search(reason)), None)


async def _other_protocol(reason: str, address: Address) -> Cure | None:
    if not address.nodes:
        return None
    if address.has_tls:
        is_plain = _NO_TLS.search(reason) or (reason == "no answer" and await _answers(_is_plain, address))
        return _TLS_AT_PLAIN if is_plain else None
    if re.search(r"connection (?:broke|closed)|closed by", reason, re.IGNORECASE) and await _answers(_has_tls, address):
        return _PLAIN_AT_TLS
    return None


async def _answers(ask: Callable[[str, int], Awaitable[bool]], address: Address) -> bool:
    host, port = address.nodes[0]
    with suppress(OSError, EOFError, ValueError):  # TimeoutError is an OSError
        async with asyncio.timeout(PROBE_S):
            return await ask(host, port)
    return False


async def _is_plain(host: str, port: int) -> bool:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(b"PING\r\n")
        return await reader.readexactly(1) in (b"+", b"-")
    finally:
        writer.close()


async def _has_tls(host: str, port: int) -> bool:
    """True for a handshake that gets as far as a certificate, whosever it is."""
    context = ssl.create_default_context()
    try:
        _, writer = await asyncio.open_connection(host, port, ssl=context)
    except ssl.SSLCertVerificationError:
        return True
    writer.close()
    return True
