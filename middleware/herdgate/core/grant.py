"""What a calendar answers."""

from typing import NamedTuple

from herdgate.core.tickets import Ticket

__all__ = ["Grant"]


class Grant(NamedTuple):
    """The calendar's answer to one arrival.

    Attributes:
        admitted: a token or firm slot was taken for it.
        ticket: the promise to come back with; None if none was made.
        told_s: seconds until then.
        spent: the ticket shown was worth nothing, so it was answered as a newcomer.
        full: no worker of the fleet has room for it.
        worker: the worker of the fleet that has.
    """

    admitted: bool
    ticket: Ticket | None = None
    told_s: float = 0.0
    spent: bool = False
    full: bool = False
    worker: str | None = None
