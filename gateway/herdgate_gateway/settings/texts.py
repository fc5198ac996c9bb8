"""Kinds of settings that are texts, or lists of them: addresses, paths, names, secrets."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, SecretStr

from herdgate.core.answers import Reason
from herdgate.core.errors import ConfigurationError
from herdgate.core.limits import Limits
from herdgate.denial import read_statuses
from herdgate.gate import Gate
from herdgate.origins import OriginRules
from herdgate.paths import PathPatterns
from herdgate.stores.redis.address import Address
from herdgate_gateway.admin.access import check_token
from herdgate_gateway.listeners import Tcp, read_listen
from herdgate_gateway.settings.fields import address_limit, as_tuple, checked
from herdgate_gateway.workers import WorkerPool

__all__ = [
    "FilePath",
    "ListenSpec",
    "ListenSpecs",
    "Name",
    "Networks",
    "Origins",
    "Paths",
    "RedisUrl",
    "RouteName",
    "Secrets",
    "Statuses",
    "Texts",
    "Token",
    "UrlPath",
    "WorkerUrls",
    "is_any_port",
]

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # a token of RFC 9110 section 5.6.2


def _check_name(field: str, value: object) -> None:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise ConfigurationError(field, value, "write a name of letters, digits, - and _")


def _check_route_name(field: str, value: str) -> None:
    try:
        Gate(Limits(rate=None), route=value)
    except ConfigurationError as error:
        raise ConfigurationError(field, value, error.way_out) from None


def _check_origins(field: str, value: object) -> None:
    if value in ("same-host", "any"):
        return
    if not isinstance(value, tuple | list):
        raise ConfigurationError(field, value, 'write "same-host", "any", or a list of origins')
    OriginRules(value)


def _read_origins(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _check_url_path(field: str, value: object) -> None:
    if not isinstance(value, str) or not re.fullmatch(r"/[^\s?#*]*", value):
        raise ConfigurationError(field, value, 'write "/path", or "off"')


def _check_listen(field: str, value: object) -> None:
    if not isinstance(value, str):
        raise ConfigurationError(field, value, 'write a text, as in "127.0.0.1:8000"')
    read_listen(value, field)


def _check_listens(field: str, values: tuple[str, ...]) -> None:
    if not values:
        raise ConfigurationError(field, [], 'write at least one, as in ["127.0.0.1:8000"]')
    for position, value in enumerate(values):
        _check_listen(field, value)
        if value in values[:position] and not is_any_port(value):
            raise ConfigurationError(field, value, "write it once")


def is_any_port(spec: str) -> bool:
    """True for a listen spec that takes any free port, and a new one each time."""
    listen = read_listen(spec)
    return isinstance(listen, Tcp) and listen.port == 0


def _check_workers(field: str, values: tuple[object, ...]) -> None:
    for value in values:
        if not isinstance(value, str):
            raise ConfigurationError(field, value, 'write texts, as in ["ws://127.0.0.1:9001"]')
    WorkerPool([str(value) for value in values])


def _read_path(value: object) -> object:
    return Path(value) if isinstance(value, str) and value and "\0" not in value else value


def _check_secrets(_: str, values: tuple[str, ...]) -> None:
    Gate(Limits(rate=None), secrets=values)


def _check_token(field: str, value: object) -> None:
    if not isinstance(value, str):
        raise ConfigurationError(field, "something else", "write a text in quotes")
    check_token(field, value)


def _check_redis_url(field: str, value: object) -> None:
    if not isinstance(value, str):
        raise ConfigurationError(field, "something else", "write a URL in quotes")
    Address.parse(value, field)


FilePath = Annotated[Path, BeforeValidator(_read_path)]
ListenSpec = Annotated[str, checked(_check_listen)]
ListenSpecs = Annotated[tuple[str, ...], checked(_check_listens), as_tuple]
Name = Annotated[str, checked(_check_name)]
Networks = Annotated[tuple[str, ...], address_limit, as_tuple]
Origins = Annotated[
    tuple[str, ...] | Literal["same-host", "any"], BeforeValidator(_read_origins), checked(_check_origins)
]
Paths = Annotated[tuple[str, ...], checked(PathPatterns), as_tuple]
RedisUrl = Annotated[SecretStr, checked(_check_redis_url)]
RouteName = Annotated[str, checked(_check_route_name)]
Secrets = Annotated[tuple[SecretStr, ...], checked(_check_secrets), as_tuple]
Statuses = Annotated[Mapping[Reason, int], checked(lambda _, value: read_statuses(value))]
Texts = Annotated[tuple[str, ...], as_tuple]
Token = Annotated[SecretStr, checked(_check_token)]
UrlPath = Annotated[str, checked(_check_url_path)]
WorkerUrls = Annotated[tuple[str, ...], checked(_check_workers), as_tuple]
