"""`herdgate leases`: makes the lease table, shows who is in it, fences a worker, and says what it costs."""

import json
import socket
from dataclasses import asdict
from typing import Annotated

import typer

from herdgate_gateway.errors import HerdgateError
from herdgate_gateway.leases import plan as planning
from herdgate_gateway.leases.acts import fence_child
from herdgate_gateway.leases.at_table import run, with_table
from herdgate_gateway.leases.dynamo import Place
from herdgate_gateway.leases.dynamo.schema import create_table
from herdgate_gateway.leases.listing import columns, owners_text, ownership, workers_text
from herdgate_gateway.leases.options import (
    EndpointOption,
    FleetOption,
    GenerationOption,
    JsonOption,
    LeaseOption,
    RedisOption,
    RegionOption,
    TableOption,
    check_fleet,
    check_name,
    place_of,
)
from herdgate_gateway.leases.rows import SHARDS, ShardRow, WorkerRow, shard_key, worker_key, worker_partitions
from herdgate_gateway.leases.table import Done, LeaseTable, Lost, Outcome

__all__ = ["fence", "hold", "init", "leases", "owners", "plan", "workers"]

leases = typer.Typer(no_args_is_help=True, help="The lease table of workers: make it, look into it, plan for it.")


@leases.command()
def init(*, table: TableOption, region: RegionOption = None, endpoint_url: EndpointOption = None) -> None:
    """Make the table, or check the one that is there; harmless to repeat."""
    place = place_of(table, region, endpoint_url)
    made = run(create_table(place))
    typer.echo(f"{place}: {'made' if made else 'is there'}, and ready")


@leases.command("list")
def workers(
    *,
    table: TableOption,
    region: RegionOption = None,
    endpoint_url: EndpointOption = None,
    fleet: FleetOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Show the workers of a fleet: who lives, who is draining, who is dead."""
    check_fleet(fleet)
    rows = with_table(place_of(table, region, endpoint_url), lambda table: _workers(table, fleet))
    typer.echo(json.dumps([asdict(row) for row in rows], indent=2) if as_json else workers_text(rows))


@leases.command()
def owners(
    *,
    table: TableOption,
    region: RegionOption = None,
    endpoint_url: EndpointOption = None,
    fleet: FleetOption = "default",
    as_json: JsonOption = False,
) -> None:
    """Show who owns which shards, and which belong to nobody who lives."""
    check_fleet(fleet)

    async def read(table: LeaseTable) -> tuple[list[ShardRow], list[WorkerRow]]:
        keys = [shard_key(fleet, shard) for shard in range(SHARDS)]
        items = await table.read_many(keys, strong=True)
        return [ShardRow.of(item) for item in items.values()], await _workers(table, fleet)

    found = ownership(*with_table(place_of(table, region, endpoint_url), read))
    typer.echo(json.dumps(found.as_dict(), indent=2) if as_json else owners_text(found))


@leases.command()
def fence(
    worker: Annotated[str, typer.Argument(help="Its name; only the life behind it now is declared dead.")],
    *,
    table: TableOption,
    region: RegionOption = None,
    endpoint_url: EndpointOption = None,
    fleet: FleetOption = "default",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Declare a worker dead, so that others take what it owns at once."""
    check_fleet(fleet)
    place = place_of(table, region, endpoint_url)
    item = with_table(place, lambda table: table.read(worker_key(fleet, worker), strong=True))
    if item is None:
        raise HerdgateError(f"{place}: no worker {worker} in fleet {fleet}; `herdgate leases list` shows who is there")
    row = WorkerRow.of(item)
    if row.st == "DEAD":
        typer.echo(f"{worker} is dead already (inc {row.inc})")
        return
    if not yes:
        typer.confirm(f"{_what_fencing_means(row)} Go on?", abort=True, err=True)
    outcome = with_table(place, lambda table: table.write(fence_child(fleet, worker, row.inc)))
    typer.echo(_fenced(outcome, row, place))


@leases.command()
def hold(
    worker: Annotated[str, typer.Argument(help="Its name; no other process may have it.")],
    *,
    table: TableOption,
    region: RegionOption = None,
    endpoint_url: EndpointOption = None,
    fleet: FleetOption = "default",
    redis: RedisOption = None,
    lease_s: LeaseOption = 3.0,
    generation: GenerationOption = 0,
    connections: Annotated[
        list[str] | None, typer.Option("--connection", help="Claim this one where it is owned; may be given again.")
    ] = None,
) -> None:
    """Own shards and do nothing with them, until Ctrl-C: to try a table and its permissions.

    Each gain and loss is a line of JSON, with the moment by the boot clock.
    """
    check_fleet(fleet)
    check_name("WORKER", worker)
    place_of(table, region, endpoint_url)  # what is wrong is told by the name of its option
    from herdgate_gateway.leases.holding import Holding
    from herdgate_gateway.leases.holding import hold as run
    from herdgate_gateway.leases.worker_process import Joining

    joining = Joining(table, region, endpoint_url, fleet, worker, socket.gethostname(), 1, redis, lease_s, generation)
    raise typer.Exit(run(Holding(joining, tuple(connections or ()))))


@leases.command()
def plan(
    connections: Annotated[int, typer.Argument(min=1, help="Connections held at the same time.")],
    *,
    per_worker: Annotated[int, typer.Option(min=1, help="Connections that one worker takes.")] = 4_000,
    checkpoints_per_s: Annotated[
        float, typer.Option(min=0, max=1_000, help="Checkpoints of one connection per second.")
    ] = 0.1,
    lease_s: Annotated[
        float,
        typer.Option(
            min=1, max=86_400, help="Lease of a connection in the design compared with, renewed thrice in it."
        ),
    ] = 20.0,
    write_price: Annotated[
        float,
        typer.Option(min=0, max=1_000, help="USD for a million write units; us-east-1, on demand, November 2024."),
    ] = 0.625,
    read_price: Annotated[float, typer.Option(min=0, max=1_000, help="The same for read units.")] = 0.125,
    as_json: JsonOption = False,
) -> None:
    """Print what DynamoDB bills for so many connections, and for a lease of each connection instead."""
    fleet = planning.Fleet(connections, per_worker)
    prices = planning.Prices(write_price, read_price)
    loads = {
        "leases of workers": planning.leases(fleet),
        "the same, with checkpoints": planning.with_checkpoints(fleet, checkpoints_per_s),
        "a lease per connection": planning.per_connection(fleet, lease_s),
    }
    if as_json:
        answer = {name: {**asdict(load), "usd_per_month": load.monthly(prices)} for name, load in loads.items()}
        typer.echo(json.dumps(answer, indent=2))
        return
    typer.echo(f"{connections:,} connections, {fleet.workers:,} worker{'' if fleet.workers == 1 else 's'}\n")
    rows = [
        (name, f"{load.writes_per_s:,.0f}", f"{load.reads_per_s:,.0f}", f"{load.monthly(prices):,.0f}")
        for name, load in loads.items()
    ]
    typer.echo(columns([("", "writes/s", "reads/s", "USD a month"), *rows]))
    if connections > (full := planning.full_at(lease_s)):
        typer.echo(f"\na lease per connection: one partition of its index is full at {full:,} connections")


async def _workers(table: LeaseTable, fleet: str) -> list[WorkerRow]:
    rows: list[WorkerRow] = []
    for partition in worker_partitions(fleet):
        rows += map(WorkerRow.of, await table.query(partition, strong=True))
    return sorted(rows, key=lambda row: row.worker)


def _what_fencing_means(row: WorkerRow) -> str:
    return (
        f"{row.worker} (inc {row.inc}) will be dead, and others take its shards at once. "
        f"If it lives after all, it may act on them beside their new owners for up to {row.lease_ms / 1_000:g} s."
    )


def _fenced(outcome: Outcome, row: WorkerRow, place: Place) -> str:
    """What to say; raises if it was not done."""
    match outcome:
        case Done():
            return f"{row.worker} is dead (inc {row.inc})"
        case Lost({"inc": row.inc}):
            return f"{row.worker} is dead already (inc {row.inc})"
        case Lost():
            raise HerdgateError(f"{place}: another life of {row.worker} has begun meanwhile; nothing was done")
        case _:
            raise HerdgateError(f"nobody can tell whether {row.worker} was fenced ({outcome.why}); look, and repeat")
