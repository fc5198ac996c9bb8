"""`herdgate connections`: says which connections shall run, and shows how far they have come."""

import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Annotated, TypeVar

import typer

from herdgate_gateway.connections.limits import check_id, read_attrs
from herdgate_gateway.connections.listing import as_json as json_text
from herdgate_gateway.connections.listing import list_text, show_text, told, told_without_row
from herdgate_gateway.connections.store import Connections
from herdgate_gateway.errors import ConfigurationError, HerdgateError
from herdgate_gateway.leases.at_table import with_table
from herdgate_gateway.leases.channel import open_channel
from herdgate_gateway.leases.dynamo import Place
from herdgate_gateway.leases.options import (
    EndpointOption,
    FleetOption,
    JsonOption,
    RedisOption,
    RegionOption,
    TableOption,
    check_fleet,
    place_of,
)
from herdgate_gateway.leases.rows import ConnectionRow, ShardRow, Want, shard_key, shard_of
from herdgate_gateway.leases.table import LeaseTable

__all__ = ["connections", "list_", "show", "start", "stop"]

connections = typer.Typer(no_args_is_help=True, help="The connections that shall run: start, stop and see them.")

IdsArgument = Annotated[list[str], typer.Argument(metavar="ID...", help="Their ids; -: one a line, from stdin.")]

_MOST_NAMED = 5
_NOT_TOLD = (
    "herdgate: --redis: Redis does not answer, so workers hear of it within a minute only; "
    "the table has it, and nothing has to be repeated"
)
_T = TypeVar("_T")


@connections.command()
def start(
    ids: IdsArgument,
    *,
    attrs: Annotated[
        str | None, typer.Option("--attrs", help="A JSON object for who serves them. Default: those they have.")
    ] = None,
    table: TableOption,
    region: RegionOption = None,
    endpoint_url: EndpointOption = None,
    fleet: FleetOption = "default",
    redis: RedisOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have connections run, each in one worker; those that there are not are made."""
    names, given = _read_ids(ids), None if attrs is None else read_attrs(attrs, "--attrs")
    place = place_of(table, region, endpoint_url)
    rows = _with_store(place, fleet, redis, lambda store: store.start(names, given))
    _print_changed(rows, "started", as_json=as_json)


@connections.command()
def stop(
    ids: IdsArgument,
    *,
    table: TableOption,
    region: RegionOption = None,
    endpoint_url: EndpointOption = None,
    fleet: FleetOption = "default",
    redis: RedisOption = None,
    as_json: JsonOption = False,
) -> None:
    """Have connections not run any more; a day later they are forgotten."""
    names = _read_ids(ids)
    place = place_of(table, region, endpoint_url)
    rows = _with_store(place, fleet, redis, lambda store: store.stop(names))
    _print_changed(rows, "stopped", as_json=as_json)
    if missing := [name for name in names if name not in rows]:
        raise HerdgateError(f"no such connection in fleet {fleet}: {_named(missing)}")


@connections.command("list")
def list_(
    *,
    want: Annotated[str | None, typer.Option("--want", help="STARTED or STOPPED. Default: both.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="So many at most. Default: all.")] = None,
    table: TableOption,
    region: RegionOption = None,
    endpoint_url: EndpointOption = None,
    fleet: FleetOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Show the connections of a fleet."""
    wanted = _read_want(want)

    async def read(store: Connections) -> Sequence[ConnectionRow]:
        return [row async for row in store.list(wanted, limit)]

    rows = _with_store(place_of(table, region, endpoint_url), fleet, None, read)
    typer.echo(json_text([told(row) for row in rows]) if as_json else list_text(rows))


@connections.command()
def show(
    connection: Annotated[str, typer.Argument(metavar="ID")],
    *,
    table: TableOption,
    region: RegionOption = None,
    endpoint_url: EndpointOption = None,
    fleet: FleetOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Show one connection: what is wanted, how far it has come, and who owns its shard; that of any id, too."""
    check_id(connection)
    check_fleet(fleet)

    async def read(table: LeaseTable) -> tuple[ConnectionRow | None, ShardRow | None]:
        row = await Connections(table, fleet).get(connection)
        item = await table.read(shard_key(fleet, shard_of(connection)), strong=True)
        return row, None if item is None else ShardRow.of(item)

    row, owner = with_table(place_of(table, region, endpoint_url), read)
    if not as_json:
        typer.echo(show_text(connection, row, owner))
        return
    known = told_without_row(connection) if row is None else told(row)
    typer.echo(json_text({**known, "owner": None if owner is None else owner.owner}))


def _read_ids(given: Iterable[str]) -> list[str]:
    """Ids in their order, each once, with those of stdin where - stands."""
    ids: list[str] = []
    for word in given:
        ids += _read_lines() if word == "-" else [word]
    if not ids:
        raise ConfigurationError("ID", "nothing on stdin", "write one id a line")
    return [check_id(name) for name in dict.fromkeys(ids)]


def _read_lines() -> list[str]:
    """Those of stdin that are not blank. What is no UTF-8 in them is no id either."""
    text = sys.stdin.buffer.read().decode(errors="replace").replace("\r\n", "\n")
    return [line for line in text.split("\n") if line.strip()]


def _read_want(text: str | None) -> Want | None:
    match None if text is None else text.upper():
        case None:
            return None
        case "STARTED":
            return "STARTED"
        case "STOPPED":
            return "STOPPED"
        case _:
            raise ConfigurationError("--want", text, "write STARTED or STOPPED")


def _print_changed(rows: Mapping[str, ConnectionRow], what: str, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json_text([told(row) for row in rows.values()]))
        return
    for name in rows:
        typer.echo(f"{name}: {what}")


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _with_store(place: Place, fleet: str, redis: str | None, work: Callable[[Connections], Awaitable[_T]]) -> _T:
    async def run(table: LeaseTable) -> _T:
        store = Connections(table, fleet, None if redis is None else open_channel(redis, fleet, "--redis"))
        try:
            done = await work(store)
        finally:
            await store.aclose()
        if not store.could_tell:
            typer.echo(_NOT_TOLD, err=True)
        return done

    check_fleet(fleet)
    return with_table(place, run)
