"""Settings of the gateway: a TOML file, then HERDGATE_* in the environment, then flags; checked as one, then frozen.

model            the tree, with its defaults; `tables` and `routes` are parts of it
fields, texts    what a value of each kind may be
table            what the tables have in common, and how to walk them
sources          reads file, environment and flags
load             puts these together; `agreement` checks what values ask of one another
faults           says what is wrong; `suggestion` what may have been meant
readiness        what serving needs beyond settings that can be right
shown            settings as TOML or JSON
changes          what differs between two, and what a running gateway takes of it
"""

from herdgate_gateway.settings.changes import changes, files, takeable
from herdgate_gateway.settings.load import load
from herdgate_gateway.settings.model import Settings
from herdgate_gateway.settings.readiness import missing_for_serving
from herdgate_gateway.settings.routes import (
    AuthTable,
    ClientKeyTable,
    ConnectionIdTable,
    JwtTable,
    RouteTable,
    TierTable,
)
from herdgate_gateway.settings.shown import as_json, as_toml
from herdgate_gateway.settings.sources import CONFIG_VARIABLE
from herdgate_gateway.settings.tables import AdminTable, BreakerTable, ClassTable, FleetTable, RelayTable, TlsTable

__all__ = [
    "CONFIG_VARIABLE",
    "AdminTable",
    "AuthTable",
    "BreakerTable",
    "ClassTable",
    "ClientKeyTable",
    "ConnectionIdTable",
    "FleetTable",
    "JwtTable",
    "RelayTable",
    "RouteTable",
    "Settings",
    "TierTable",
    "TlsTable",
    "as_json",
    "as_toml",
    "changes",
    "files",
    "load",
    "missing_for_serving",
    "takeable",
]
