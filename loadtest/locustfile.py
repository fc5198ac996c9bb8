"""Locust front of the herd engine: `locust -f loadtest/locustfile.py --headless --host ws://127.0.0.1:8000/ws`.

One user is one crowd. Locust patches the interpreter for gevent, which asyncio does not survive, so the engine runs as
a process of its own and reports by JSON lines; each handshake and recovery becomes an entry of Locust's statistics:

- `WS handshake`: tries that were answered, admitted or denied in order; failures are those that were not.
- `WS denied: <answer>`: the denials among them, by answer.
- `HERD back: <behaviour>`: from a client's intended first try after the cut to its admission.
"""

import json
import logging
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from locust import User, events, task
from locust.exception import LocustError

if TYPE_CHECKING:
    from locust.argument_parser import LocustArgumentParser

log = logging.getLogger("herd")

_OPTIONS = (
    ("clients", "1000", "a number (they obey), or as in obey=900,hint=50,fixed:15=50"),
    ("rate", "500", "admissions per second the fleet may do"),
    ("cut", "reset", "who cuts the crowd off: close or reset (the clients), observe (the server)"),
    ("sources", "", "number of loopback source addresses, or addresses with commas; empty: the system chooses one"),
    ("deadline", "120", "seconds to come up, on top of the ramp, and to recover"),
)


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator] # Locust's events are not typed
def _add_options(parser: "LocustArgumentParser") -> None:
    group = parser.add_argument_group("herd")
    for name, default, text in _OPTIONS:
        group.add_argument(f"--herd-{name}", default=default, env_var=f"HERD_{name.upper()}", help=text)


class FailedTryError(LocustError):
    """A try that ended in neither admission nor orderly denial."""


class Herd(User):
    """Runs one crowd, reports it, and ends the test."""

    host = "ws://127.0.0.1:8000/ws"
    fixed_count = 1
    _cut = False

    @task
    def run_crowd(self) -> None:
        """One crowd, from the first dial to the last goodbye."""
        command = [sys.executable, "-m", "herdgate_loadtest.engine", "--json-lines", "--url", self.host]
        for name, _, _ in _OPTIONS:
            command += [f"--{name}", getattr(self.environment.parsed_options, f"herd_{name}")]
        self.environment.process_exit_code = 1  # until the run is over: one that was stopped proves nothing
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as engine:  # noqa: S603 - our own module
            try:
                for line in engine.stdout or ():
                    self._report(**json.loads(line))
            except BaseException:  # Locust stops a user by an exception: so stops the engine
                engine.terminate()
                raise
        self.environment.process_exit_code = engine.returncode
        self._end()

    def _end(self) -> None:
        runner = self.environment.runner
        if self.environment.web_ui is None:
            runner.quit()
        else:
            runner.stop()

    def _report(self, event: str, **fields: Any) -> None:
        if event == "attempt":
            self._report_try(**fields)
        elif event == "cut":
            self._cut = True
        elif event == "record":
            log.info("record %s", json.dumps(fields))

    def _report_try(self, behaviour: str, outcome: str, answer: str, latency_s: float, **fields: Any) -> None:
        failed = outcome == "failed"
        self._fire("WS", "handshake", latency_s, FailedTryError(answer) if failed else None)
        if outcome == "denied":
            self._fire("WS", f"denied: {answer}", latency_s)
        if outcome == "admitted" and self._cut:
            self._fire("HERD", f"back: {behaviour}", fields["wait_s"])

    def _fire(self, kind: str, name: str, seconds: float, error: Exception | None = None) -> None:
        self.environment.events.request.fire(
            request_type=kind,
            name=name,
            response_time=seconds * 1e3,
            response_length=0,
            exception=error,
            context={},
        )
