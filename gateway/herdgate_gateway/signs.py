"""Signs to stop: they wait from the start of a process until somebody can heed them, as before that they kill it."""

import signal

__all__ = ["STOP_SIGNS", "hold", "let_in"]

STOP_SIGNS = (signal.SIGINT, signal.SIGTERM)


def hold() -> None:
    """Let signs to stop wait, in this thread and those it starts; processes it starts must not be started meanwhile."""
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNS)


def let_in() -> None:
    """Take them from now on, one that was held first."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNS)
