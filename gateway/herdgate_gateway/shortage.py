"""A worker that could not be dialled for want of descriptors: nobody's fault but ours, so the answer is `full`.

It comes with a time to come back, like every denial, and the log says once what to raise. The dial itself tells neither
apart: to its caller, a worker that cannot be reached is `upstream`, whatever the system said.
"""

from herdgate import Refused
from herdgate.asgi import ASGIApp, Receive, Scope, Send
from herdgate_gateway.descriptors import OUT_OF_ROOM, say_out_of_room

__all__ = ["full_if_ours", "with_shortages"]


def full_if_ours(refused: Refused) -> Refused:
    """The same refusal, or `full`, if it comes of a system without room for one more socket."""
    error: BaseException | None = refused
    while error is not None:
        if isinstance(error, OSError) and error.errno in OUT_OF_ROOM:
            say_out_of_room()
            return Refused("full")
        error = error.__cause__ or error.__context__
    return refused


def with_shortages(app: ASGIApp) -> ASGIApp:
    """An app whose refusals are `full` where that is the truth."""

    async def told(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except Refused as refused:
            raise full_if_ours(refused) from refused

    return told
