"""The splice: bytes of an admitted WebSocket pass between client and worker as they are.

    dial (upstream) -> the worker's 101 -> join (relay) -> Half | Half, each with its Scanner, in one Joint

Both ends negotiate with each other, extensions too; what passes is followed by its frame headers only, for limits and
for the places where a close frame or a message of our own may stand.
"""

from herdgate_gateway.splice.joint import Joint
from herdgate_gateway.splice.relay import SpliceRelay
from herdgate_gateway.splice.upstream import Upstream

__all__ = ["Joint", "SpliceRelay", "Upstream"]
