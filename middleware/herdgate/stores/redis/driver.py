"""The parts of redis-py that are used here, and one clear line where it is missing.

Used are its connections (TCP, TLS, Unix socket: handshake and RESP) and its names for errors. Its pools, clients and
retries are not: they wait, retry and cancel in ways that a deadline of 50 ms cannot have.
"""

from herdgate.core.errors import ConfigurationError

try:
    from redis import exceptions
    from redis.asyncio.connection import (
        AbstractConnection,
        Connection,
        SSLConnection,
        UnixDomainSocketConnection,
        parse_url,
    )
    from redis.crc import key_slot
except ImportError:
    raise ConfigurationError("redis", "no redis-py to reach it with", "run: pip install 'herdgate[redis]'") from None

__all__ = [
    "AbstractConnection",
    "Connection",
    "SSLConnection",
    "UnixDomainSocketConnection",
    "exceptions",
    "key_slot",
    "parse_url",
]
