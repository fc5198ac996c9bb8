"""JWT authentication (RFC 7519, RFC 8725) as an ASGI wrapper: a request without a good token goes no further.

A token is good if its algorithm is one of those allowed, a key that fits both algorithm and key id verifies it, it has
not expired and says when it will, is already valid, and names the audience and issuer that are asked for. An audience
in a token where none is configured is refused, as RFC 7519 section 4.1.3 demands.

A token is left where it is: the worker gets it too. One in a query ends up in the logs of whoever logs queries.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jwt

from herdgate import ConfigurationError, Refused
from herdgate.asgi import ASGIApp, Receive, Scope, Send
from herdgate.core.numbers import check_number
from herdgate_gateway.auth.jwks import KeyFile, KeySource, KeysUnavailableError, KeyUrl
from herdgate_gateway.auth.keys import ALGORITHMS, Key
from herdgate_gateway.auth.token_source import Place, find_token

__all__ = ["Claims", "Jwt", "JwtSettings"]

Claims = Mapping[str, Any]

MOST_TOKEN = 16_384  # characters
_NAMES: Mapping[Place, str] = {"header": "authorization", "query": "access_token", "cookie": "access_token"}


@dataclass(frozen=True, kw_only=True)
class JwtSettings:
    """What makes a token good, and where it is.

    Attributes:
        keys: path of a JWKS or PEM file, read once, or the URL of a JWKS.
        algorithms: those allowed; HMAC (HS...) not beside others, and not with a URL.
        audience: one of these has to be in the token; empty: the token may name none.
        issuer: has to be the token's; None: any.
        leeway_s: seconds that clocks may differ, 0 to 300.
        place: where the token is.
        name: of the header, parameter or cookie; None: `authorization`, otherwise `access_token`.

    Raises:
        ConfigurationError: one of these cannot be right.
    """

    keys: str
    algorithms: Sequence[str] = ("RS256", "ES256")
    audience: Sequence[str] = ()
    issuer: str | None = None
    leeway_s: float = 10.0
    place: Place = "header"
    name: str | None = None

    def __post_init__(self) -> None:
        unknown = [name for name in self.algorithms if name not in ALGORITHMS]
        if unknown or not self.algorithms or isinstance(self.algorithms, str):
            way_out = f"write a list of {', '.join(sorted(ALGORITHMS))}"
            raise ConfigurationError("jwt.algorithms", self.algorithms, way_out)
        secret = [name for name in self.algorithms if name.startswith("HS")]
        if secret and len(secret) < len(self.algorithms):
            way_out = "write HS... alone: a public key must never pass as a secret"
            raise ConfigurationError("jwt.algorithms", self.algorithms, way_out)
        if secret and self.is_url:
            raise ConfigurationError("jwt.keys", self.keys, "give a file for HS...: a secret does not belong on a URL")
        if isinstance(self.audience, str):
            raise ConfigurationError("jwt.audience", self.audience, 'write a list, as in ["chat"]')
        if self.place not in _NAMES:
            raise ConfigurationError("jwt.from", self.place, 'write "header", "query" or "cookie"')
        if self.name is not None and not (self.name and self.name.isascii()):
            raise ConfigurationError("jwt.name", self.name, "write the name of a header, parameter or cookie")
        check_number("jwt.leeway_s", self.leeway_s, least=0, most=300, unit="seconds")

    @property
    def is_url(self) -> bool:
        """True if the keys are at a URL."""
        return "://" in self.keys

    @property
    def found_under(self) -> str:
        """The name that counts."""
        name = self.name or _NAMES[self.place]
        return name.lower() if self.place == "header" else name


class _Shown(NamedTuple):
    """A token, and what its header claims, not verified."""

    token: str
    kid: str | None
    algorithm: str


class Jwt:
    """Lets through requests with a good token, with its claims in `scope["state"]["claims"]`.

    `Jwt(settings)(app)` is the wrapped app. Others are refused: 401, or `auth_busy` while no keys can be had.

    Args:
        settings: what makes a token good.

    Raises:
        ConfigurationError: the key file cannot be used, or none of its keys fits the algorithms.
    """

    def __init__(self, settings: JwtSettings) -> None:
        self._settings = settings
        self._keys = _open_keys(settings)

    def __call__(self, app: ASGIApp) -> ASGIApp:
        async def checked(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] in ("websocket", "http"):
                scope.setdefault("state", {})["claims"] = await self._check(scope)
            await app(scope, receive, send)

        return checked

    def client_key(self, claim: str) -> Callable[[Scope], str | None]:
        """A `client_key` for `AdmissionMiddleware`: the verified claim, or None.

        It runs before the admission, so it only uses the keys at hand and asks nobody.

        Args:
            claim: whose text or number identifies a client, such as `sub`.
        """

        def key(scope: Scope) -> str | None:
            shown = self._read(scope)
            claims = self._verify(shown, self._keys.held(shown.kid, shown.algorithm)) if shown else None
            value = claims.get(claim) if claims else None
            return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None

        return key

    async def aclose(self) -> None:
        """Stop fetching keys."""
        await self._keys.aclose()

    async def _check(self, scope: Scope) -> Claims:
        shown = self._read(scope)
        if shown is None:
            raise Refused("auth", 401)
        try:
            keys = await self._keys.find(shown.kid, shown.algorithm)
        except KeysUnavailableError:
            raise Refused("auth_busy") from None
        claims = self._verify(shown, keys)
        if claims is None:
            raise Refused("auth", 401)
        return claims

    def _read(self, scope: Scope) -> _Shown | None:
        """What a request shows; None if there is nothing to verify."""
        token = find_token(scope, self._settings.place, self._settings.found_under)
        if token is None or len(token) > MOST_TOKEN or not token.isascii():
            return None
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError:
            return None
        algorithm = header.get("alg")
        if not isinstance(algorithm, str) or algorithm not in self._settings.algorithms:
            return None
        return _Shown(token, header.get("kid"), algorithm)

    def _verify(self, shown: _Shown, keys: Sequence[Key]) -> Claims | None:
        for key in keys:
            try:
                return jwt.decode(
                    shown.token,
                    key.material,
                    algorithms=[shown.algorithm],
                    audience=list(self._settings.audience) or None,
                    issuer=self._settings.issuer,
                    leeway=self._settings.leeway_s,
                    options={"require": ["exp"]},
                )
            except jwt.InvalidSignatureError:
                continue
            except (jwt.PyJWTError, ValueError, TypeError, RecursionError):  # whatever it holds, it is no good
                return None
        return None


def _open_keys(settings: JwtSettings) -> KeySource:
    if settings.is_url:
        return KeyUrl("jwt.keys", settings.keys)
    source = KeyFile("jwt.keys", settings.keys)
    if not any(key.algorithms.intersection(settings.algorithms) for key in source.keys):
        way_out = f"none of its keys is for {', '.join(settings.algorithms)}: give others, or change jwt.algorithms"
        raise ConfigurationError("jwt.keys", settings.keys, way_out)
    return source
