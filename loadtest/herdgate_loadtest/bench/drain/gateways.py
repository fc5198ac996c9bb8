"""A gateway that is drained: `herdgate serve`, on ports that it has again when it is started again."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from herdgate_loadtest.bench.drain.balancer import GROUP
from herdgate_loadtest.errors import CrowdError
from herdgate_loadtest.servers.children import HOST, dies_with_us, free_port

__all__ = ["DrainSettings", "DrainedGateway", "LogLine"]

_TOKEN = "the benchmark's"  # noqa: S105 - guards nothing
_ANSWER_S = 10.0
_LOOK_S = 1
_LINE = re.compile(r"drain, ([0-9.]+) s, ([0-9]+) sockets open: (.*)")


@dataclass(frozen=True, slots=True)
class DrainSettings:
    """The table `[drain]` of its settings."""

    sigterm_s: float
    call_s: float
    sign_s: float
    settle_s: float = 0.5
    max_draining: int = 1


@dataclass(frozen=True, slots=True)
class LogLine:
    """One step of a drain, as the gateway's log has it."""

    since_s: float
    open: int
    what: str


class DrainedGateway:
    """One.

    Args:
        name: of its files.
        settings: TOML, all but where it listens.
        aws: where ELBv2 is asked; it knows the gateway as `HOST:PORT` in `GROUP`.

    Attributes:
        port, admin: where clients connect, and where it is asked.
    """

    def __init__(self, name: str, folder: Path, settings: str, drain: DrainSettings, aws: str) -> None:
        self.port, self.admin = free_port(), free_port()
        self._name, self._folder = name, folder
        self._log = folder / f"{name}.log"
        self._environ = {"AWS_ENDPOINT_URL": aws, "AWS_ACCESS_KEY_ID": name, "AWS_SECRET_ACCESS_KEY": name}
        table = "\n".join(f"{key} = {value!r}" for key, value in asdict(drain).items())
        (folder / f"{name}.toml").write_text(
            f'listen = ["{HOST}:{self.port}"]\n{settings}\n[drain]\n{table}\n'
            f'[drain.aws]\ntarget_groups = ["{GROUP}"]\ntarget = "{HOST}:{self.port}"\nevery_s = {_LOOK_S}\n'
            f'[admin]\nlisten = "{HOST}:{self.admin}"\ntoken = "{_TOKEN}"\n'
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        """It has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; it serves some time later."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith("HERDGATE_")}
        command = [sys.executable, "-m", "herdgate", "serve", "--config", str(self._folder / f"{self._name}.toml")]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [*dies_with_us(), *command], stdout=log, stderr=log, env=environ | self._environ
            )

    def terminate(self) -> None:
        """SIGTERM."""
        self._running().send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def drain(self, deadline_s: float | None = None) -> None:
        """Tell it to drain, as `herdgate drain` does.

        Raises:
            CrowdError: it does not answer.
        """
        self._ask("POST", "/drain", urlencode({} if deadline_s is None else {"deadline": deadline_s}))

    def status(self) -> dict[str, Any]:
        """As `/status.json` has it.

        Raises:
            CrowdError: it does not answer.
        """
        return self._ask("GET", "/status.json")

    def is_drained(self) -> bool:
        """It says so."""
        return (self.status()["drain"] or {}).get("state") == "drained"

    def steps(self) -> list[LogLine]:
        """Of the drain of its latest life."""
        lines = _LINE.findall(self._log.read_text())
        return [LogLine(float(since), int(sockets), what) for since, sockets, what in lines]

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, f"{self._name} does not run"
        return self._process

    def _ask(self, method: str, path: str, form: str | None = None) -> dict[str, Any]:
        connection = HTTPConnection(HOST, self.admin, timeout=_ANSWER_S)
        try:
            connection.request(method, path, form, {"authorization": f"Bearer {_TOKEN}"})
            body = connection.getresponse().read()
            answer: dict[str, Any] = json.loads(body)
        except (OSError, HTTPException, ValueError) as error:
            raise CrowdError(f"{self._name} does not answer ({error}): run it again") from error
        finally:
            connection.close()
        return answer
