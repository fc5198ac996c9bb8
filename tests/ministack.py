"""ministack, an emulator of AWS: one process, with some of its services or all of them.

with ministack(AwsServer, services="elasticloadbalancing,ecs") as aws:
    aws.client("ecs").create_cluster(clusterName="chat")
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar

from botocore.session import Session

from tests.child_servers import TRIES, ChildServer, free_port
from tests.needs import unmet
from tests.servers import ROOT

__all__ = ["PROGRAM", "REGION", "START_S", "AwsServer", "ministack"]

PROGRAM = ROOT / ".emulator" / "bin" / "ministack"
REGION = "us-east-1"
START_S = 30.0

_Server = TypeVar("_Server", bound="AwsServer")


class AwsServer(ChildServer):
    """One server process.

    Attributes:
        port: of 127.0.0.1.
        services: those it has, by commas; "": all.
    """

    services = ""

    @property
    def url(self) -> str:
        """Its endpoint."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it on a free port; returns when it answers."""
        for _ in range(TRIES):
            self.port = free_port()
            if self._launch([str(PROGRAM)], self._answers, START_S, self._environment()):
                return
        raise RuntimeError(f"ministack did not start:\n{self.log()}")

    def client(self, service: str) -> Any:
        """A client of one of its services."""
        keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
        return Session().create_client(service, region_name=REGION, endpoint_url=self.url, **keys)

    def _environment(self) -> dict[str, str]:
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self._folder),
            "TMPDIR": str(self._folder),
            "BIND_HOST": "127.0.0.1",
            "GATEWAY_PORT": str(self.port),
            "LOG_LEVEL": "WARNING",
        }
        return environment | ({"SERVICES": self.services} if self.services else {})

    def _answers(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=1)
        try:
            connection.request("GET", "/")
            return connection.getresponse().status < 500
        except OSError:
            return False
        finally:
            connection.close()


@contextmanager
def ministack(kind: type[_Server], services: str = "") -> Iterator[_Server]:
    """A running one, with nothing in it."""
    if not PROGRAM.exists():
        unmet("ministack")
    with tempfile.TemporaryDirectory() as folder:
        server = kind(Path(folder))
        server.services = services
        server.start()
        try:
            yield server
        finally:
            server.kill()
