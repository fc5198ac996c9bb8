"""Runs a module in this process, which ends with its parent: `python -m herdgate_loadtest.demo.leash MODULE [ARG...]`.

Rules: the parent holds the other end of standard input, which ends with it, however it does. Only errors are logged:
denials are what the picture shows.
"""

import logging
import os
import runpy
import signal
import sys
import threading

__all__ = ["main"]


def main() -> None:
    """Run the module that the arguments name, as `python -m` would."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    logging.disable(logging.WARNING)  # whatever the module sets up
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def _end_with_parent() -> None:
    os.read(sys.stdin.fileno(), 1)  # not sys.stdin.read: its lock would be held when the interpreter ends
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
