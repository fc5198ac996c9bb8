"""What settings ask of one another: each is right on its own, and all of them have to go together."""

from collections.abc import Iterable, Iterator

from herdgate.core.errors import ConfigurationError
from herdgate.fleet import check_rate_min
from herdgate_gateway.listeners import Unix, read_listen
from herdgate_gateway.settings.faults import relocated
from herdgate_gateway.settings.model import Settings
from herdgate_gateway.settings.routes import RouteTable
from herdgate_gateway.settings.texts import is_any_port
from herdgate_gateway.workers import MOST_NAMES

__all__ = ["disagreements"]


def disagreements(settings: Settings) -> list[ConfigurationError]:
    """All faults, by dotted field, each once."""
    found = {str(fault): fault for check in _CHECKS for fault in check(settings)}
    return list(found.values())


def _check_core(settings: Settings) -> Iterator[ConfigurationError]:
    try:
        settings.address_rules()
    except ConfigurationError as error:
        yield error
    for route in settings.routes:
        try:
            settings.route_limits(route)
        except ConfigurationError as error:
            yield error


def _check_processes(settings: Settings) -> Iterator[ConfigurationError]:
    """Every limit that each process has its share of has to be large enough for that."""
    for position, route in enumerate(settings.routes):
        try:
            limits = settings.route_limits(route)
        except ConfigurationError:
            continue  # found by `_check_core`
        try:
            settings.process_limits(route)
        except ConfigurationError as error:
            name = error.field
            is_common = name in ("max_open", "max_pending") and getattr(route, name) != getattr(limits, name)
            yield relocated(error, () if is_common else ("routes", position))


def _check_routes(settings: Settings) -> Iterator[ConfigurationError]:
    names: set[str] = set()
    owners: dict[str, str] = {}
    for position, route in enumerate(settings.routes):
        if route.name in names:
            yield ConfigurationError(f"routes[{position}].name", route.name, "write a name that no other route has")
        names.add(route.name)
        if position and "*" in settings.routes[position - 1].paths and "*" not in route.paths:
            way_out = f"write it before route {settings.routes[position - 1].name}, which covers every path"
            yield ConfigurationError(f"routes[{position}].paths", list(route.paths), way_out)
        for path in route.paths:
            owner = owners.setdefault(path, route.name)
            if owner != route.name:
                way_out = f"leave it to route {owner}, or take it out there"
                yield ConfigurationError(f"routes[{position}].paths", path, way_out)
        for name, key in (("client_key", route.client_key), ("client_class", route.client_class)):
            if key and key.claim and not (route.auth and route.auth.jwt):
                way_out = "give the route auth.jwt, whose claims are verified"
                yield ConfigurationError(f"routes[{position}].{name}.claim", key.claim, way_out)
        if route.duplicates != "allow" and (lacking := _lacking_for_duplicates(settings, route)):
            yield ConfigurationError(f"routes[{position}].duplicates", route.duplicates, lacking)


def _lacking_for_duplicates(settings: Settings, route: RouteTable) -> str | None:
    if route.connection_id is None:
        return "say in connection_id where ids stand: one that is drawn never comes twice"
    if settings.leases.table is None:
        return "write leases.table: without leases two sockets of one connection may be at two workers"
    return None


def _check_listeners(settings: Settings) -> Iterator[ConfigurationError]:
    admin = settings.admin.listen
    if admin is not None and admin in settings.listen and not is_any_port(admin):
        yield ConfigurationError("admin.listen", admin, "write another one than in listen")
    if settings.proxy_protocol and not settings.trusted_proxies and not all(map(_is_local, settings.listen)):
        yield ConfigurationError("proxy_protocol", True, "name in trusted_proxies who sends it")
    if settings.listener != "own" and settings.tls.handshakes_per_s is not None:
        way_out = f'leave it out, or write listener = "own": {settings.listener} takes whoever comes at once'
        yield ConfigurationError("tls.handshakes_per_s", settings.tls.handshakes_per_s, way_out)
    if settings.health_path is not None and settings.health_path == settings.preflight_path:
        yield ConfigurationError("preflight_path", settings.preflight_path, "write another one than health_path")


def _check_fleet(settings: Settings) -> Iterator[ConfigurationError]:
    fleet = settings.fleet
    beside = {"redis", "name"} if settings.leases.table else {"redis"}  # a lease table has fleets, too
    if fleet.redis is None and fleet.model_fields_set - beside:
        others = _shown("fleet", fleet.model_fields_set - beside)
        yield ConfigurationError("fleet.redis", "nothing", f"write the URL of the fleet's Redis, or leave out {others}")
        return
    if (whole := fleet.fleet()) is not None:
        try:
            check_rate_min(whole, settings.rate, "fleet.rate_min")
        except ConfigurationError as error:
            yield error
    if (fleet.redis or settings.processes > 1) and len(settings.workers) > MOST_NAMES:
        way_out = f"write at most {MOST_NAMES}: a gateway of a fleet, or of several processes, can name no more"
        yield ConfigurationError("workers", len(settings.workers), way_out)


def _check_leases(settings: Settings) -> Iterator[ConfigurationError]:
    if settings.leases.table is None and settings.leases.model_fields_set - {"table"}:
        others = _shown("leases", settings.leases.model_fields_set - {"table"})
        yield ConfigurationError("leases.table", "nothing", f"write the name of the lease table, or leave out {others}")
    if settings.leases.table is not None and settings.workers:
        way_out = "leave it out, or workers: owners in a lease table say where they are"
        yield ConfigurationError("leases.table", settings.leases.table, way_out)


def _check_aws(settings: Settings) -> Iterator[ConfigurationError]:
    aws = settings.drain.aws
    if unused := aws.model_fields_set & aws.unused():
        way_out = f"write the target groups to watch, or leave out {_shown('drain.aws', unused)}"
        yield ConfigurationError("drain.aws.target_groups", "nothing", way_out)


def _shown(table: str, names: Iterable[str]) -> str:
    return ", ".join(f"{table}.{name}" for name in sorted(names))


def _is_local(spec: str) -> bool:
    return isinstance(read_listen(spec), Unix)


_CHECKS = (_check_core, _check_processes, _check_routes, _check_listeners, _check_fleet, _check_leases, _check_aws)
