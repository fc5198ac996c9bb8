"""Garbage collection for a process that holds the sockets of a crowd."""

import gc

__all__ = ["collect_in_small_lots"]

THRESHOLDS = (5_000, 10, 1_000)


def collect_in_small_lots() -> None:
    """Make full collections rare: each stops the process for half a second over the sockets of a crowd."""
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
