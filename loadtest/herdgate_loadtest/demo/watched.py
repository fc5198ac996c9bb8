"""Two things that go on beside what is played: a picture of it, and a watch over the processes it needs."""

import asyncio
from collections.abc import Coroutine
from typing import Any, NoReturn, TypeVar

__all__ = ["beside", "watched"]

_END_S = 0.5
_T = TypeVar("_T")


async def watched(play: Coroutine[Any, Any, _T], watch: Coroutine[Any, Any, NoReturn]) -> _T:
    """Play, until it is over or `watch` raises; that is raised first: whatever else failed, failed because of it."""
    playing, watching = asyncio.ensure_future(play), asyncio.ensure_future(watch)
    try:
        await asyncio.wait((playing, watching), return_when=asyncio.FIRST_COMPLETED)
        if playing.done() and playing.exception() is not None:
            await asyncio.wait((watching,), timeout=_END_S)  # a process that is ending closes its sockets first
        if watching.done():
            watching.result()
        return playing.result()
    finally:
        playing.cancel()
        watching.cancel()
        await asyncio.gather(playing, watching, return_exceptions=True)


async def beside(picture: Coroutine[Any, Any, None], phase: Coroutine[Any, Any, _T]) -> _T:
    """Draw a picture until the phase is over."""
    drawing = asyncio.ensure_future(picture)
    try:
        return await phase
    finally:
        drawing.cancel()
        await asyncio.gather(drawing, return_exceptions=True)  # its last frame, before anything else is said
