"""What an app may meet when it asks the lease table for something.

Exception
├── NotOwnerError             the connection is served by another worker now: end, and leave it alone
├── UnknownOutcomeError       nobody knows whether it was done: try again
└── NoSuchConnectionError     there is no row for this connection, so nothing can be kept in it
"""

from herdgate_gateway.leases.effects import NotOwnerError, UnknownOutcomeError

__all__ = ["NoSuchConnectionError", "NotOwnerError", "UnknownOutcomeError"]


class NoSuchConnectionError(Exception):
    """There is no row of this connection in the lease table."""
