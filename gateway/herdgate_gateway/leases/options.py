"""Options that commands about leases share, and checks of what is given."""

import re
from typing import Annotated

import typer

from herdgate_gateway.errors import ConfigurationError
from herdgate_gateway.leases.acts import LAST_GENERATION
from herdgate_gateway.leases.dynamo import Place

__all__ = [
    "EndpointOption",
    "FleetOption",
    "GenerationOption",
    "JsonOption",
    "LeaseOption",
    "RedisOption",
    "RegionOption",
    "TableOption",
    "check_fleet",
    "check_name",
    "place_of",
]

TableOption = Annotated[str, typer.Option("--table", envvar="HERDGATE_LEASES__TABLE", help="Name of the table.")]
RegionOption = Annotated[
    str | None,
    typer.Option("--region", envvar="HERDGATE_LEASES__REGION", help="AWS region. Default: as AWS's own tools find it."),
]
EndpointOption = Annotated[
    str | None,
    typer.Option("--endpoint-url", envvar="HERDGATE_LEASES__ENDPOINT_URL", help="Another endpoint than the region's."),
]
FleetOption = Annotated[
    str, typer.Option("--fleet", envvar="HERDGATE_FLEET__NAME", help="Fleet whose workers and shards are meant.")
]
RedisOption = Annotated[
    str | None,
    typer.Option("--redis", envvar="HERDGATE_FLEET__REDIS", help="URL for news between workers. Default: none."),
]
LeaseOption = Annotated[float, typer.Option("--lease-s", min=0.3, max=600, help="Seconds; a beat is a third.")]
# Not HERDGATE_LEASES__*: gateways read those too, and refuse what is none of theirs.
GenerationOption = Annotated[
    int,
    typer.Option(
        "--generation",
        envvar="HERDGATE_WORKER__GENERATION",
        min=0,
        max=LAST_GENERATION,
        help="Of all epochs; one more after each restore of the table from a backup.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, and nothing else.")]

_NAME = re.compile("[A-Za-z0-9_.-]{1,64}")


def place_of(table: str, region: str | None, endpoint_url: str | None) -> Place:
    """Where the table is.

    Raises:
        ConfigurationError: one of them cannot be right; it names the option.
    """
    try:
        return Place(table, region, endpoint_url)
    except ConfigurationError as error:
        given = {"table": table, "region": region, "endpoint_url": endpoint_url}
        option = "--" + error.field.replace("_", "-")
        raise ConfigurationError(option, given[error.field], error.way_out) from None


def check_fleet(fleet: str) -> None:
    """Check a fleet's name.

    Raises:
        ConfigurationError: it cannot be one.
    """
    check_name("--fleet", fleet)


def check_name(option: str, name: str) -> None:
    """Check the name of a fleet or a worker.

    Raises:
        ConfigurationError: it cannot be one.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(option, name, "write 1 to 64 letters, digits, ., - and _")
