"""What a gateway needs before it can serve, and settings alone do not tell: a rate, workers, files that are there."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from herdgate.core.errors import ConfigurationError
from herdgate.core.tiers import fleet_scopes
from herdgate.stores.redis.pem_files import check_files
from herdgate_gateway.auth import Jwt
from herdgate_gateway.certificates import read_certificate
from herdgate_gateway.listeners import Unix, read_listen
from herdgate_gateway.settings.faults import relocated, with_source
from herdgate_gateway.settings.model import Settings
from herdgate_gateway.settings.tables import TlsTable

__all__ = ["missing_for_serving"]


def missing_for_serving(settings: Settings) -> list[ConfigurationError]:
    """All that keeps these settings from being served, by dotted field. Reads files; opens no socket."""
    faults = [
        *_needs(settings),
        *_scopes(settings),
        *_redis(settings),
        *_sdk(settings),
        *_tls(settings.tls),
        *_key_files(settings),
        *_socket_folders(settings),
    ]
    return [with_source(fault, settings.sources.get(fault.field, "default")) for fault in faults]


def _needs(settings: Settings) -> Iterator[ConfigurationError]:
    if settings.rate is None:
        yield ConfigurationError("rate", "nothing", "write the admissions per second that the workers can bear")
    if not settings.workers and settings.leases.table is None:
        yield ConfigurationError("workers", "nothing", 'write where they listen, as in ["ws://127.0.0.1:9001"]')
    if len(settings.routes) > 1:
        for name in ("max_open", "max_pending"):
            if getattr(settings, name) is not None:
                yield ConfigurationError(name, getattr(settings, name), "write it at each of the routes")


def _scopes(settings: Settings) -> Iterator[ConfigurationError]:
    if settings.fleet.redis is not None:
        return
    for position, route in enumerate(settings.routes):
        for name in fleet_scopes(settings.route_limits(route)):
            way_out = 'write "process", or name the Redis of the fleet in fleet.redis'
            yield ConfigurationError(f"routes[{position}].{name}.scope", "fleet", way_out)


def _redis(settings: Settings) -> Iterator[ConfigurationError]:
    address = settings.fleet.address()
    if address is None:
        return
    try:
        address.connection()  # without redis-py there is none
        check_files(address, "fleet.redis")
    except ConfigurationError as error:
        yield relocated(error, () if error.field == "fleet.redis" else ("fleet",))


def _sdk(settings: Settings) -> Iterator[ConfigurationError]:
    way_out = "install what it needs: pip install 'herdgate[worker]'"
    if settings.leases.table is not None and find_spec("aioboto3") is None:
        yield ConfigurationError("leases.table", settings.leases.table, way_out)
    if (aws := settings.drain.aws.settings()) is not None and find_spec("botocore") is None:
        field = "ecs" if aws.ecs else "target_groups"
        yield ConfigurationError(f"drain.aws.{field}", getattr(aws, field), way_out)


def _tls(tls: TlsTable) -> Iterator[ConfigurationError]:
    if tls.certificate is None or tls.key is None:
        return
    unread = [*_unreadable("tls.certificate", tls.certificate), *_unreadable("tls.key", tls.key)]
    yield from unread
    if unread:
        return
    try:
        read_certificate(tls.certificate, tls.key)
    except ConfigurationError as error:
        yield error


def _key_files(settings: Settings) -> Iterator[ConfigurationError]:
    for position, route in enumerate(settings.routes):
        jwt = route.auth.jwt.settings() if route.auth and route.auth.jwt else None
        if jwt is None or jwt.is_url:
            continue
        try:
            Jwt(jwt)
        except ConfigurationError as error:
            yield relocated(error, ("routes", position, "auth", "jwt"))


def _socket_folders(settings: Settings) -> Iterator[ConfigurationError]:
    places = [("listen", spec) for spec in settings.listen]
    if settings.admin.listen is not None:
        places.append(("admin.listen", settings.admin.listen))
    paths = [(field, listen.path) for field, spec in places if isinstance(listen := read_listen(spec), Unix)]
    if settings.admin.socket is not None:
        paths.append(("admin.socket", str(settings.admin.socket)))
    for field, path in paths:
        if not os.access(Path(path).parent, os.W_OK | os.X_OK):
            yield ConfigurationError(field, path, "make its folder first, one that this user may write to")


def _unreadable(field: str, path: Path) -> Iterator[ConfigurationError]:
    try:
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        yield ConfigurationError(field, path, f"give a file that can be read ({error.strerror})")
