"""The SDK: what is used of its client, and how one is opened.

Nothing is tried twice by it: the protocol has to know of each write. Loading it takes a second, in a thread; the first
client holds the event loop up for some 0.2 s.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

from herdgate_gateway.errors import ConfigurationError

__all__ = ["DynamoClient", "Place", "Reply", "opened"]

OPEN_S = 10.0
_CONNECTIONS = 128  # more than are claimed at once by who dials out: beats and hand overs do not wait for these
_TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")

_REGION = re.compile(r"[a-z0-9-]{1,63}")

Reply = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """Where the table is.

    Attributes:
        table: its name.
        region: None: as AWS's own tools find it.
        endpoint_url: of an emulator, or a VPC endpoint; None: the region's.

    Raises:
        ConfigurationError: a name or URL that cannot be one.
    """

    table: str
    region: str | None = None
    endpoint_url: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.table, str) or not _TABLE_NAME.fullmatch(self.table):
            raise ConfigurationError(
                "table", self.table, "write 3 to 255 letters, digits, dots, hyphens or underscores"
            )
        if self.region is not None and (not isinstance(self.region, str) or not _REGION.fullmatch(self.region)):
            raise ConfigurationError("region", self.region, "write its name, as in eu-west-1")
        if self.endpoint_url is not None and not _is_url(self.endpoint_url):
            raise ConfigurationError("endpoint_url", self.endpoint_url, "write http://host:port or https://host")

    def __str__(self) -> str:
        """For people."""
        at = self.endpoint_url or self.region
        return f"table {self.table} at {at}" if at else f"table {self.table}"


class DynamoClient(Protocol):
    """The operations that are used. All raise botocore's errors."""

    async def update_item(self, **request: Any) -> Reply: ...
    async def get_item(self, **request: Any) -> Reply: ...
    async def batch_get_item(self, **request: Any) -> Reply: ...
    async def query(self, **request: Any) -> Reply: ...
    async def create_table(self, **request: Any) -> Reply: ...
    async def describe_table(self, **request: Any) -> Reply: ...
    async def describe_time_to_live(self, **request: Any) -> Reply: ...
    async def update_time_to_live(self, **request: Any) -> Reply: ...


@asynccontextmanager
async def opened(place: Place, *, timeout_s: float) -> AsyncIterator[DynamoClient]:
    """A client, credentials at hand. It belongs to the running event loop.

    Args:
        place: where the table is; credentials are found as by AWS's own tools.
        timeout_s: to connect, and for each reply.
    """
    from botocore.exceptions import NoCredentialsError

    session = await asyncio.to_thread(_session, place.region)
    async with asyncio.timeout(OPEN_S):
        credentials = await session.get_credentials()
        if credentials is None:
            raise NoCredentialsError
        await credentials.get_frozen_credentials()  # here, as a call has no time to ask for them
    async with session.client("dynamodb", endpoint_url=place.endpoint_url, config=_config(timeout_s)) as client:
        yield client


def _session(region: str | None) -> Any:
    import aioboto3

    return aioboto3.Session(region_name=region)


def _config(timeout_s: float) -> Any:
    from botocore.config import Config

    return Config(
        connect_timeout=timeout_s,
        read_timeout=timeout_s,
        retries={"total_max_attempts": 1},
        max_pool_connections=_CONNECTIONS,
    )


def _is_url(text: object) -> bool:
    if not isinstance(text, str):
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        return False
