"""One gateway of a fleet with leases: `herdgate serve`, with settings of its own.

Rules: it keeps its port when it is started again. Its bucket is small and its handshakes are held as in the demo, for
the same reasons. Who comes from `PROBE` is let past the calendar, and is not counted by it.
"""

import json
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from herdgate_loadtest.demo.gateway import Gateway, burst_of
from herdgate_loadtest.demo.process import Process, listening
from herdgate_loadtest.servers.children import HOST, free_port
from herdgate_loadtest.servers.emulator import REGION, aws_environment
from herdgate_loadtest.servers.lease_table import FLEET, TABLE, Place

__all__ = ["PROBE", "OwnedGateway"]

PROBE = "127.200.0.1"
"""The address of who only looks whether somebody serves."""


class OwnedGateway:
    """A gateway; a context manager that starts and ends it.

    Args:
        name: what people read.
        folder: where its settings are written.
        rate: admissions per second of the whole fleet.

    Attributes:
        name: as given.
        port: where clients connect.
    """

    def __init__(self, name: str, folder: Path, place: Place, rate: float) -> None:
        self.name = name
        self.port = free_port()
        self._file = folder / f"{name.replace(' ', '-')}.toml"
        self._place, self._rate = place, rate
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """Where a crowd goes: each client has an id of its own, `c0`, `c1`, ..."""
        return f"ws://{HOST}:{self.port}/?id=c{{n}}"

    @property
    def is_up(self) -> bool:
        """It was started, and not killed since."""
        return self._process is not None

    @property
    def running(self) -> Gateway:
        """As the demo's, to be asked for its counts."""
        assert self._process is not None, f"{self.name} does not run"
        return Gateway(self._process, self.url)

    def start(self) -> None:
        """Start it; it serves some time later.

        Raises:
            OSError: somebody has taken its port.
        """
        clients = socket.create_server((HOST, self.port), backlog=4096)
        with clients, listening() as admin:
            self._file.write_text(self._settings(clients.fileno(), admin.fileno()))
            arguments = ["herdgate", "serve", "--config", str(self._file)]
            self._process = Process(self.name, arguments, [clients, admin], environ=aws_environment())

    def check(self) -> None:
        """See that it runs, if it should.

        Raises:
            CrowdError: it has ended.
        """
        if self._process is not None:
            self._process.check()

    def is_ready(self) -> bool:
        """It says so itself: it has read the owners."""
        return self._process is not None and self._process.is_ready()

    def kill(self) -> None:
        """End it at once (SIGKILL), if it runs."""
        if self._process is not None:
            process, self._process = self._process, None
            with process:
                process.kill()

    def _settings(self, clients: int, admin: int) -> str:
        return f"""\
listen = ["fd:{clients}"]
rate = {self._rate!r}
burst = {burst_of(self._rate)!r}
max_wait_s = 3.0
exempt_networks = ["{PROBE}/32"]

[[routes]]
name = "default"
connection_id = {{ query = "id" }}

[leases]
table = "{TABLE}"
region = "{REGION}"
endpoint_url = {json.dumps(self._place.endpoint)}

[fleet]
redis = {json.dumps(self._place.redis)}
name = "{FLEET}"

[admin]
listen = "fd:{admin}"
"""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.kill()
