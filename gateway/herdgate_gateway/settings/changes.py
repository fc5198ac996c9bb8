"""What differs between two settings, and what of it a running gateway can take. Pure.

A route is the same one wherever it stands, as long as it has its name.
"""

from collections.abc import Iterator, Sequence

from herdgate_gateway.settings.model import Settings
from herdgate_gateway.settings.routes import RouteTable
from herdgate_gateway.settings.table import Path, Table, dotted, key_of

__all__ = ["changes", "files", "takeable"]

_UNTIL_RESTART = ("listen", "listener", "processes", "admin", "relay", "breaker", "drain", "fleet", "leases")


def changes(old: Settings, new: Settings) -> list[str]:
    """The dotted fields whose values differ, never the values; positions are those in `new`."""
    return list(_changes(old, new, ()))


def takeable(running: Settings, new: Settings) -> Settings:
    """`new`, but with the values of `running` where a change takes a restart."""
    kept = {name: getattr(running, name) for name in _UNTIL_RESTART}
    if (running.tls.certificate is None) != (new.tls.certificate is None):
        kept["tls"] = running.tls
    return new.model_copy(update=kept)


def files(settings: Settings) -> list[str]:
    """The dotted fields that name files whose content counts."""
    found = [] if settings.tls.certificate is None else ["tls.certificate", "tls.key"]
    for position, route in enumerate(settings.routes):
        if route.auth and route.auth.jwt and not route.auth.jwt.settings().is_url:
            found.append(dotted(("routes", position, "auth", "jwt", "keys")))
    return found


def _changes(old: Table, new: Table, at: Path) -> Iterator[str]:
    for name, field in type(new).model_fields.items():
        was, now, path = getattr(old, name), getattr(new, name), (*at, key_of(name, field))
        if isinstance(was, Table) and isinstance(now, Table):
            yield from _changes(was, now, path)
        elif path == ("routes",):
            yield from _route_changes(was, now)
        elif was != now:
            yield dotted(path)


def _route_changes(old: Sequence[RouteTable], new: Sequence[RouteTable]) -> Iterator[str]:
    was, now = {route.name: route for route in old}, {route.name: route for route in new}
    yield from (f"route {name} removed" for name in was if name not in now)
    yield from (f"route {name} added" for name in now if name not in was)
    if [name for name in was if name in now] != [name for name in now if name in was]:
        yield "order of routes"
    for position, route in enumerate(new):
        if route.name in was:
            yield from _changes(was[route.name], route, ("routes", position))
