"""Where the keys for tokens come from: a file read once, or a URL that is asked now and then.

Rules of the URL: one fetch at a time, whoever waits for it; bounded in time and size. Keys older than `TTL_S` are
fetched again while the old ones serve; only after twice that does an arrival wait. An unknown key id asks again, at
most once in `REFETCH_S`. A fetch that fails keeps the keys there are, however old.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from herdgate import ConfigurationError
from herdgate_gateway.auth.keys import BadKeysError, Key, matching, read_keys
from herdgate_gateway.auth.outbound import outbound_client, read_bounded, read_url, shown

__all__ = ["KeyFile", "KeySource", "KeyUrl", "KeysUnavailableError"]

TTL_S = 300.0
REFETCH_S = 30.0
FIRST_RETRY_S = 1.0  # seconds between tries while there are no keys at all
FETCH_S = 5.0
MOST_BYTES = 256 * 1024

_logger = logging.getLogger("herdgate.gateway")


class KeysUnavailableError(Exception):
    """The keys cannot be had at the moment: nobody knows whether a token is good."""


class KeySource(Protocol):
    """Gives the keys that may have signed a token."""

    def held(self, kid: str | None, algorithm: str) -> tuple[Key, ...]:
        """Those at hand."""

    async def find(self, kid: str | None, algorithm: str) -> tuple[Key, ...]:
        """Those there are; may have to ask.

        Raises:
            KeysUnavailableError: it cannot be known.
        """

    async def aclose(self) -> None:
        """End what is in progress."""


class KeyFile:
    """Keys from a file, JWKS or PEM.

    Raises:
        ConfigurationError: it cannot be read, or holds no usable key.
    """

    def __init__(self, field: str, path: str) -> None:
        try:
            self.keys = read_keys(Path(path).read_bytes())
        except OSError as error:
            raise ConfigurationError(field, path, f"{error.strerror}: give a file with a JWKS or PEM") from None
        except BadKeysError as error:
            raise ConfigurationError(field, path, f"{error}: give a file with a JWKS or PEM of public keys") from None

    def held(self, kid: str | None, algorithm: str) -> tuple[Key, ...]:
        return matching(self.keys, kid, algorithm)

    async def find(self, kid: str | None, algorithm: str) -> tuple[Key, ...]:
        return self.held(kid, algorithm)

    async def aclose(self) -> None:
        pass


class KeyUrl:
    """Keys from a URL, usually the `jwks_uri` of an issuer.

    Args:
        field: the setting's name, for messages.
        url: http or https.
        clock: seconds, monotonic.

    Raises:
        ConfigurationError: it is no URL.
    """

    def __init__(self, field: str, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = read_url(field, url)
        self._client = outbound_client(1, FETCH_S)
        self._clock = clock
        self._keys: tuple[Key, ...] = ()
        self._fetched_at = self._tried_at = float("-inf")
        self._failing = False
        self._fetching: asyncio.Task[None] | None = None

    def held(self, kid: str | None, algorithm: str) -> tuple[Key, ...]:
        return matching(self._keys, kid, algorithm)

    async def find(self, kid: str | None, algorithm: str) -> tuple[Key, ...]:
        age = self._clock() - self._fetched_at
        if age > TTL_S:
            self._start_fetch()
        if age > 2 * TTL_S:
            await self._fetched()
        found = self.held(kid, algorithm)
        if not found:
            self._start_fetch()
            await self._fetched()
            found = self.held(kid, algorithm)
        if not found and self._failing:
            raise KeysUnavailableError
        return found

    async def aclose(self) -> None:
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait((self._fetching,))
        await self._client.aclose()

    def _start_fetch(self) -> None:
        between = REFETCH_S if self._keys else FIRST_RETRY_S
        if self._fetching is None and self._clock() - self._tried_at >= between:
            self._tried_at = self._clock()
            self._fetching = asyncio.create_task(self._fetch())

    async def _fetched(self) -> None:
        """Wait for the fetch in progress; leaving early does not end it, others wait too."""
        if self._fetching is not None:
            await asyncio.wait((self._fetching,))

    async def _fetch(self) -> None:
        try:
            async with asyncio.timeout(FETCH_S):
                self._keys = read_keys(await self._download())
        except Exception as error:  # noqa: BLE001 - whatever fails, the old keys stay
            self._failing = True
            kept = "the keys there are stay" if self._keys else "tokens cannot be checked"
            _logger.warning("no keys from %s (%s); %s", shown(self._url), str(error) or type(error).__name__, kept)
        else:
            self._failing = False
            self._fetched_at = self._clock()
        finally:
            self._fetching = None

    async def _download(self) -> bytes:
        async with self._client.stream("GET", self._url) as response:
            if response.status_code != 200:
                raise BadKeysError(f"status {response.status_code}")
            body = await read_bounded(response, MOST_BYTES)
        if body is None:
            raise BadKeysError(f"more than {MOST_BYTES} bytes")
        return body
