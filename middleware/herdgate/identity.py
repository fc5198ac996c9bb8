"""Who sent a request and in which class it stands: its address, or what the user's own functions find."""

import logging
from collections.abc import Callable, Collection

from herdgate.asgi import Scope
from herdgate.core.classes import RESUME
from herdgate.core.clients import AddressRules, Client
from herdgate.core.errors import ConfigurationError
from herdgate.request import Request
from herdgate.settings import check_function, check_kind, check_texts

__all__ = ["ClientKey", "Identity"]

ClientKey = Callable[[Scope], str | None]

_logger = logging.getLogger("herdgate")


class Identity:
    """Finds the client of a request, and its class.

    Args:
        addresses: how its address is found.
        client_key: a better key, or None or an empty one for the address. If it raises, or returns no text, the
            address counts, and the first failure is logged.
        exempt_keys: keys from `client_key` that are let past and only counted.
        client_class: the name of its class, the same way; without one, a session token decides.
        is_session_token: whether a text is one. None: nothing is.

    Raises:
        ConfigurationError: one of these is not of its kind.
    """

    def __init__(
        self,
        addresses: AddressRules,
        client_key: ClientKey | None,
        exempt_keys: Collection[str],
        client_class: ClientKey | None = None,
        is_session_token: Callable[[str], bool] | None = None,
    ) -> None:
        check_kind("addresses", addresses, AddressRules, "write AddressRules(trusted_proxies=[...])")
        check_texts("exempt_keys", exempt_keys, 'write a list of keys, as in ["health-check"]')
        if exempt_keys and client_key is None:
            way_out = "give client_key too, or for addresses write AddressRules(exempt_networks=[...])"
            raise ConfigurationError("exempt_keys", list(exempt_keys), way_out)
        self._addresses = addresses
        self._key = _Asked("client_key", client_key, "its clients count by address")
        self._class = _Asked("client_class", client_class, "its clients count as without one")
        self._exempt_keys = frozenset(exempt_keys)
        self._is_session_token = is_session_token

    @property
    def forwarding_header(self) -> str:
        """The header to read for `client`."""
        return self._addresses.forwarding_header

    def client(self, scope: Scope, request: Request) -> Client:
        """The client behind a request."""
        peer = scope.get("client")
        client = self._addresses.client(peer[0] if peer else None, request.forwarded)
        key = self._key.of(scope)
        if not key:
            return client
        return client.identify(key, exempt=key in self._exempt_keys)

    def klass(self, scope: Scope, request: Request) -> str | None:
        """The name of its class; None: the last one."""
        named = self._class.of(scope)
        if named or not request.session or self._is_session_token is None:
            return named
        return RESUME if self._is_session_token(request.session) else None


class _Asked:
    """A function of the user's, which may fail without harm."""

    def __init__(self, name: str, function: ClientKey | None, instead: str) -> None:
        if function is not None:
            check_function(name, function, "give a plain function of the scope that returns a text or None")
        self._name = name
        self._function = function
        self._instead = instead
        self._failed = False

    def of(self, scope: Scope) -> str | None:
        """What it says; None if there is none, or if it fails."""
        if self._function is None:
            return None
        try:
            text = self._function(scope)
            if text is not None and not isinstance(text, str):
                raise TypeError(f"{self._name} returned {type(text).__name__}, not str or None")
            return text
        except Exception:
            if not self._failed:
                self._failed = True
                _logger.exception("%s failed; %s (said once)", self._name, self._instead)
            return None
