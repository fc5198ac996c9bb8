"""The lease table in DynamoDB.

    expressions, items, errors   what goes there and comes back, in its words (pure)
    client                       what is used of the SDK, and how it is opened
    leases                       `DynamoLeases`: the writes and reads
    schema                       how the table is made

Nothing here imports the SDK before it is needed: that takes a second.
"""

from herdgate_gateway.leases.dynamo.client import Place
from herdgate_gateway.leases.dynamo.errors import SetupError
from herdgate_gateway.leases.dynamo.leases import DynamoLeases

__all__ = ["DynamoLeases", "Place", "SetupError"]
