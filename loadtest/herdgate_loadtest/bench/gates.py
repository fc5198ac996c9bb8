"""Gates of one fleet in this process, for what needs no sockets."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from herdgate import Gate, Limits
from herdgate.fleet import Fleet
from herdgate_loadtest.errors import CrowdError

__all__ = ["fallen_out", "open_gates"]

_UP_S = 10.0
_LOOK_S = 0.01


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


async def _meet(gates: Sequence[Gate]) -> None:
    end = time.monotonic() + _UP_S
    while not all(_is_in(gate, len(gates)) for gate in gates):
        if time.monotonic() > end:
            raise CrowdError(f"the gates did not find each other through Redis in {_UP_S:g} s: run it again")
        await asyncio.sleep(_LOOK_S)


def _is_in(gate: Gate, gateways: int) -> bool:
    fleet = gate.snapshot().fleet
    return fleet is not None and fleet.is_up and fleet.gateways >= gateways
