"""Gates of one fleet in this process, for what needs no sockets."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from herdgate import Gate, Limits
from herdgate.fleet import Fleet
from herdgate_loadtest.errors import CrowdError

__all__ = ["fallen_out", "open_gates", "watched"]

_UP_S = 10.0
_LOOK_S = 0.01
_WATCH_S = 0.05
_MOST_ALONE = 0.02


@asynccontextmanager
async def open_gates(count: int, limits: Limits, fleet: Fleet) -> AsyncIterator[list[Gate]]:
    """Gates that know each other; they leave the fleet with the block.

    Raises:
        CrowdError: they do not find each other.
    """
    gates = [Gate(limits, fleet=fleet) for _ in range(count)]
    try:
        for gate in gates:
            gate.start()
        await _meet(gates)
        yield gates
    finally:
        await asyncio.gather(*(gate.aclose() for gate in gates))


def fallen_out(gates: Sequence[Gate]) -> list[str]:
    """A reason if gates decide alone now, as Redis did not answer in time: then the figure is not the fleet's."""
    alone = sum(not _is_in(gate, 1) for gate in gates)
    return (
        [f"{alone} of {len(gates)} gates had no answer from Redis in time: this machine is too busy"] if alone else []
    )


@asynccontextmanager
async def watched(gates: Sequence[Gate]) -> AsyncIterator[list[str]]:
    """Looks at gates twenty times a second; after the block the list has a reason if they decided alone too often."""
    reasons: list[str] = []
    looks: list[bool] = []
    watching = asyncio.create_task(_watch(gates, looks))
    try:
        yield reasons
    finally:
        watching.cancel()
        share = sum(looks) / max(1, len(looks))
        if share > _MOST_ALONE:
            reasons.append(
                f"gates had no answer from Redis in time in {share:.0%} of the run: this machine is too busy"
            )


async def _watch(gates: Sequence[Gate], looks: list[bool]) -> None:
    while True:
        await asyncio.sleep(_WATCH_S)
        looks.append(bool(fallen_out(gates)))


async def _meet(gates: Sequence[Gate]) -> None:
    end = time.monotonic() + _UP_S
    while not all(_is_in(gate, len(gates)) for gate in gates):
        if time.monotonic() > end:
            raise CrowdError(f"the gates did not find each other through Redis in {_UP_S:g} s: run it again")
        await asyncio.sleep(_LOOK_S)


def _is_in(gate: Gate, gateways: int) -> bool:
    fleet = gate.snapshot().fleet
    return fleet is not None and fleet.is_up and fleet.gateways >= gateways
