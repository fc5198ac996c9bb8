"""Who sent a request: its address, or the better key that the user's own function finds."""

import logging
from collections.abc import Callable, Collection

from herdgate.asgi import Scope
from herdgate.core.clients import AddressRules, Client
from herdgate.core.errors import ConfigurationError
from herdgate.request import Request
from herdgate.settings import check_function, check_kind, check_texts

__all__ = ["ClientKey", "Identity"]

ClientKey = Callable[[Scope], str | None]

_logger = logging.getLogger("herdgate")


class Identity:
    """Finds the client of a request.

    Args:
        addresses: how its address is found.
        client_key: a better key, or None or an empty one for the address. If it raises, or returns no text, the
            address counts, and the first failure is logged.
        exempt_keys: keys from `client_key` that are let past and only counted.

    Raises:
        ConfigurationError: one of these is not of its kind.
    """

    def __init__(self, addresses: AddressRules, client_key: ClientKey | None, exempt_keys: Collection[str]) -> None:
        check_kind("addresses", addresses, AddressRules, "write AddressRules(trusted_proxies=[...])")
        if client_key is not None:
            check_function("client_key", client_key, "give a plain function of the scope that returns a key or None")
        check_texts("exempt_keys", exempt_keys, 'write a list of keys, as in ["health-check"]')
        if exempt_keys and client_key is None:
            way_out = "give client_key too, or for addresses write AddressRules(exempt_networks=[...])"
            raise ConfigurationError("exempt_keys", list(exempt_keys), way_out)
        self._addresses = addresses
        self._client_key = client_key
        self._exempt_keys = frozenset(exempt_keys)
        self._failed = False

    @property
    def forwarding_header(self) -> str:
        """The header to read for `client`."""
        return self._addresses.forwarding_header

    def client(self, scope: Scope, request: Request) -> Client:
        """The client behind a request."""
        peer = scope.get("client")
        client = self._addresses.client(peer[0] if peer else None, request.forwarded)
        key = self._key(scope)
        if not key:
            return client
        return client.identify(key, exempt=key in self._exempt_keys)

    def _key(self, scope: Scope) -> str | None:
        if self._client_key is None:
            return None
        try:
            key = self._client_key(scope)
            if key is not None and not isinstance(key, str):
                raise TypeError(f"client_key returned {type(key).__name__}, not str or None")
            return key
        except Exception:
            if not self._failed:
                self._failed = True
                _logger.exception("client_key failed; its clients count by address (said once)")
            return None
