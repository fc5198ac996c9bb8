"""Waiting for a reply until its deadline, in a loop that may itself be late."""

import asyncio

__all__ = ["settled"]

TURNS = 16
"""Of the loop, in which a reply that lies in the socket is read, deciphered and parsed."""


async def settled(call: asyncio.Task[object], within_s: float) -> bool:
    """Wait for a call; True if its reply is here. At the end of the time, what lies in the socket is read first."""
    await asyncio.wait({call}, timeout=within_s)
    for _ in range(TURNS):
        if call.done():
            break
        await asyncio.sleep(0)
    return call.done()
