"""Rows as a test wants them to be."""

from collections.abc import Mapping
from typing import Any

from herdgate_gateway.leases.acts import Write
from herdgate_gateway.leases.conditions import ABSENT, PRESENT, Either
from herdgate_gateway.leases.rows import Item, Key
from herdgate_gateway.leases.table import Done, LeaseTable

__all__ = ["ANYHOW", "put"]

ANYHOW = Either((PRESENT, ABSENT))
"""A condition that always holds."""


async def put(table: LeaseTable, key: Key, attributes: Mapping[str, Any] | None) -> Item | None:
    """Make a new row of these attributes, and give it back whole; None: make none."""
    if attributes is None:
        return None
    outcome = await table.write(Write(key, ABSENT, attributes))
    assert isinstance(outcome, Done), outcome
    return outcome.item
