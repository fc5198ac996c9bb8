"""Runs nginx or haproxy, which ends with this process: `python -m herdgate_loadtest.bench.sides.peer FD COMMAND...`.

It serves on the listening socket FD, which it inherits.
"""

import os
import signal
import subprocess
import sys

__all__ = ["main"]


def main() -> None:
    """Run it until told to stop."""
    descriptor, *command = sys.argv[1:]
    os.set_blocking(int(descriptor), False)  # nginx takes for granted that it is
    environment = {**os.environ, "NGINX": f"{descriptor};"}  # how nginx is handed its listeners
    with subprocess.Popen(command, pass_fds=[int(descriptor)], env=environment) as server:  # noqa: S603
        signal.signal(signal.SIGTERM, lambda *_: server.terminate())
        sys.exit(server.wait())


if __name__ == "__main__":
    main()
