"""The HTTP client that authentication asks with: plain, bounded, and without a memory.

It follows no redirect, reads no proxy or password from the environment, and keeps no cookie: one client's cookie must
never be sent for the next. Certificates are checked against the system's store (`SSL_CERT_FILE` names another one).
"""

import ssl
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from herdgate import ConfigurationError

__all__ = ["outbound_client", "read_bounded", "read_url", "shown"]

KEEPALIVE_S = 2.0  # seconds; less than any server's, which might close at the moment we write


def outbound_client(most_connections: int, timeout_s: float) -> httpx.AsyncClient:
    """A client for one service; the caller closes it.

    Args:
        most_connections: kept open between calls; how many there are at once is the caller's to bound.
        timeout_s: seconds for each single step (connect, read, write); the caller bounds the whole.
    """
    return httpx.AsyncClient(
        verify=ssl.create_default_context(),
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        headers={"user-agent": "herdgate", "accept": "*/*", "accept-encoding": "identity"},
        follow_redirects=False,
        trust_env=False,
        timeout=timeout_s,
        limits=httpx.Limits(
            max_connections=None, max_keepalive_connections=most_connections, keepalive_expiry=KEEPALIVE_S
        ),
    )


async def read_bounded(response: httpx.Response, most: int) -> bytes | None:
    """The body of a streamed response, as sent; None if it is longer than `most` bytes."""
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > most:
            return None
    return bytes(body)


def read_url(field: str, text: str) -> httpx.URL:
    """An absolute http or https URL.

    Raises:
        ConfigurationError: it is none.
    """
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, TypeError, ValueError):
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigurationError(field, text, 'write a URL such as "https://auth.example/check"')
    return url


def shown(url: httpx.URL) -> str:
    """The URL for a log: without password and query."""
    return f"{url.scheme}://{url.netloc.decode('ascii')}{url.path}"
