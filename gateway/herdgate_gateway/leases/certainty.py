"""A write whose outcome has to be known: it is repeated, the very same, until the table says done or lost."""

from herdgate_gateway.leases.acts import Write
from herdgate_gateway.leases.clocks import Clock
from herdgate_gateway.leases.table import Done, LeaseTable, Lost, Unknown

__all__ = ["until_known"]

_AGAIN_S = 0.1


async def until_known(table: LeaseTable, clock: Clock, write: Write) -> Done | Lost:
    """Carry it out. Lost may mean that it was done the time before; what the row was then says so."""
    while isinstance(outcome := await table.write(write), Unknown):
        await clock.sleep(_AGAIN_S)
    return outcome
