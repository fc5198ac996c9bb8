"""A herd in Locust: `SwarmUser` and `HerdShape`, for `locust -f` or to be imported by a locustfile of your own.

One `SwarmUser` runs in each of Locust's processes and holds many sockets: its crowd is a process of its own, as asyncio
does not survive gevent's patches. `HerdShape` runs in the master, and leads them all. What Locust's statistics show:

- `WS handshake`: tries that were answered, admitted or denied in order; failures are those that were not;
- `WS denied: <answer>`: the denials among them, by answer;
- `WS message`: from the moment a message was due to its echo; failures are those that did not come back;
- `HERD back: <behaviour>`: from a client's intended first try after the cut to its admission.

Rules: nothing here blocks a greenlet. The exit code is that of the herd, not of Locust's failures: 0 all back, valid
and within the bounds; 1 not; 2 nothing was run.
"""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from locust import LoadTestShape, User, events, task
from locust.exception import LocustError, StopUser
from locust.runners import WorkerRunner

from herdgate_loadtest.errors import LoadtestError
from herdgate_loadtest.herd.bounds import missed
from herdgate_loadtest.herd.clocks import boot_id
from herdgate_loadtest.herd.conductor import Conductor, Stage
from herdgate_loadtest.herd.gateways import Gateways
from herdgate_loadtest.herd.options import OPTIONS, SECRET, Wanted, wanted
from herdgate_loadtest.herd.report import write_report
from herdgate_loadtest.herd.run_locust import SIGNS

if TYPE_CHECKING:
    from locust.argument_parser import LocustArgumentParser
    from locust.env import Environment

__all__ = ["FailedTryError", "HerdShape", "SwarmUser"]

_ORDER, _NEWS = "herd_order", "herd_news"
_LEAVE_S = 3.0
_INTERRUPTED = 130
_FOR_LOCUST = frozenset(("attempts", "messages"))
_SWARM = (sys.executable, "-m", "herdgate_loadtest.herd.swarm")

log = logging.getLogger("herd")


class FailedTryError(LocustError):
    """A try that ended in neither admission nor orderly denial, or a message without an echo."""


class SwarmUser(User):
    """Holds this process's part of the sockets."""

    here: ClassVar["SwarmUser | None"] = None
    """The one of this process."""

    def __init__(self, environment: "Environment") -> None:
        super().__init__(environment)
        self._swarm: subprocess.Popen[str] | None = None
        self._is_cut = self._has_ended = False

    @task
    def hold_sockets(self) -> None:
        """From the first order to the last goodbye."""
        SwarmUser.here = self
        with subprocess.Popen(  # noqa: S603 - our own module
            _SWARM,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,  # Ctrl-C is Locust's business
        ) as self._swarm:
            try:
                for line in self._swarm.stdout or ():
                    self._pass_on(**json.loads(line))
                if not self._has_ended:
                    self._news("error", message="the process of a crowd has ended: run it again", code=1)
            finally:  # Locust stops a user by an exception: then the crowd leaves
                self._leave()
        raise StopUser

    def obey(self, order: dict[str, Any]) -> None:
        """An order from the conductor."""
        if order["order"] == "clock":
            self._news("clock", asked_at=order["asked_at"], now=time.monotonic())
        elif self._swarm is not None and self._swarm.stdin is not None and not self._has_ended:
            with contextlib.suppress(OSError):  # it has ended, as will be read
                self._swarm.stdin.write(json.dumps(order) + "\n")
                self._swarm.stdin.flush()

    def _leave(self) -> None:
        swarm = self._swarm
        assert swarm is not None
        if swarm.stdin is not None:
            with contextlib.suppress(OSError):
                swarm.stdin.close()
        try:
            swarm.wait(_LEAVE_S)
        except subprocess.TimeoutExpired:
            swarm.kill()

    def _pass_on(self, event: str, **fields: Any) -> None:
        if event == "attempts":
            for entry in fields["entries"]:
                self._report_try(*entry)
        elif event == "messages":
            for latency_s, why in fields["entries"]:
                self._fire("WS", "message", latency_s, why)
        else:
            self._is_cut = self._is_cut or event == "cut"
            self._has_ended = event in ("left", "error")
            self._news(event, **fields)
        time.sleep(0)  # patched by gevent: Locust's heartbeat has its turn

    def _report_try(self, behaviour: str, outcome: str, answer: str, latency_s: float, wait_s: float | None) -> None:
        self._fire("WS", "handshake", latency_s, answer if outcome == "failed" else "")
        if outcome == "denied":
            self._fire("WS", f"denied: {answer}", latency_s)
        if wait_s is not None and self._is_cut:
            self._fire("HERD", f"back: {behaviour}", wait_s)

    def _fire(self, kind: str, name: str, seconds: float, why: str = "") -> None:
        self.environment.events.request.fire(
            request_type=kind,
            name=name,
            response_time=seconds * 1e3,
            response_length=0,
            exception=FailedTryError(why) if why else None,
            context={},
        )

    def _news(self, event: str, **fields: Any) -> None:
        runner = self.environment.runner
        runner.send_message(_NEWS, {"name": runner.client_id, "event": event, **fields})


class HerdShape(LoadTestShape):
    """Has every process hold, cut in the same instant, and recover, as often as asked for; then it ends the test."""

    use_common_options = True  # --run-time is kept

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Locust's
        self._wanted: Wanted | None = None
        self._conductor: Conductor | None = None
        self._told = ""
        self._is_stopped = False

    def tick(self) -> tuple[int, float] | None:
        """What Locust asks once a second: how many users; None: stop."""
        if self._is_stopped:
            return None
        processes: int = self._runner.worker_count
        try:
            conductor = self._conductor or self._begin(processes)
        except LoadtestError as error:
            self._exit_with(2, str(error))
            return None
        run_time = self._options.run_time
        if run_time and time.perf_counter() - self.start_time > run_time:
            self._exit_with(1, f"not over within --run-time, {run_time:g} s")
            return None
        goes_on = conductor.step()
        if conductor.phase != self._told:
            self._told = conductor.phase
            inside, cut_off = conductor.counts()
            log.info("%s: %d in, %d were cut off", conductor.phase, inside, cut_off)
        if goes_on:
            return processes, float(processes)
        self._conclude(conductor)
        return None

    def stop(self) -> None:
        """Nothing is to begin any more."""
        self._is_stopped = True

    def forget(self) -> None:
        """The test is over, or was stopped: the next one is another."""
        self._conductor, self._told = None, ""

    def hear(self, name: str, event: str, **fields: Any) -> None:
        """News from a process."""
        if self._conductor is not None:
            self._conductor.hear(name, event, **fields)

    @property
    def _options(self) -> Any:
        return self._runner.environment.parsed_options

    @property
    def _runner(self) -> Any:
        """Locust's: which of its classes it is, and so what it has, is not known to its types."""
        return self.runner

    def _begin(self, processes: int) -> Conductor:
        environment = self._runner.environment
        environment.process_exit_code = 1  # until it is over: a run that was stopped proves nothing
        given = {option.name: getattr(self._options, _attribute(option.name), None) for option in OPTIONS}
        self._wanted = wanted((environment.host or "").split(), given)
        for warning in self._wanted.plan.preflight(processes):
            log.warning("%s", warning)
        gateways = Gateways(self._wanted.plan.gateways, self._wanted.token)
        stage = Stage(
            send=lambda name, order: self._runner.send_message(_ORDER, order, name),
            now=time.monotonic,
            at=_call_at,
            kill=lambda pid: os.kill(pid, signal.SIGKILL),
            drain=gateways.drain,
            is_drained=gateways.is_drained,
            permits=gateways.permits,
            boot_id=boot_id(),
        )
        self._conductor = Conductor(self._wanted.plan, processes, stage)
        return self._conductor

    def _conclude(self, conductor: Conductor) -> None:
        assert self._wanted is not None
        records = [played.as_dict() for played in conductor.rounds]
        for record in records:
            log.info("record %s", json.dumps(record))
        if self._wanted.record:
            with Path(self._wanted.record).open("a") as file:
                file.writelines(json.dumps(record) + "\n" for record in records)
        lines = missed([played.record for played in conductor.rounds], self._wanted.most)
        if self._wanted.report and conductor.rounds:
            try:
                write_report(self._wanted.report, conductor, lines)
            except LoadtestError as error:  # the run itself is not lost by it
                lines.append(str(error))
        for line in (*conductor.warnings, *lines):
            log.warning("%s", line)
        for number, played in enumerate(conductor.rounds, 1):
            for reason in played.record.reasons:
                log.warning("INVALID, round %d: %s", number, reason)
        self._exit_with(conductor.exit_code or int(bool(lines)), conductor.error)

    def _exit_with(self, code: int, error: str) -> None:
        if error:
            log.error("%s", error)
        self._runner.environment.process_exit_code = code


def _call_at(moment: float, call: Callable[[], None]) -> None:
    threading.Timer(max(0.0, moment - time.monotonic()), call).start()  # patched by gevent, as all here


def _attribute(name: str) -> str:
    return f"herd_{name.replace('-', '_')}"


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator] # Locust's events are not typed
def _add_options(parser: "LocustArgumentParser") -> None:
    group = parser.add_argument_group("herd", "The herd, see docs/herd.md; --host takes several URLs with spaces")
    for name, default, text in OPTIONS:
        variable = _attribute(name).upper()
        option = group.add_argument(f"--herd-{name}", default=default, env_var=variable, help=text)
        option.include_in_web_ui, option.is_secret = True, name == SECRET  # of a group, Locust asks for neither


@events.init_command_line_parser.add_listener  # type: ignore[untyped-decorator]
def _heed_signs(**_: object) -> None:
    """SIGINT, which was held back: as long as nobody is there who could leave, it ends this process without a word."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNS)


def _stop(environment: "Environment") -> None:
    """SIGINT, in good order: Locust's own way raises an exception wherever it happens to be."""
    runner: Any = environment.runner
    environment.process_exit_code = 0 if isinstance(runner, WorkerRunner) else _INTERRUPTED
    if environment.web_ui is not None:
        environment.web_ui.stop()  # type: ignore[no-untyped-call]
    if isinstance(environment.shape_class, HerdShape):
        environment.shape_class.stop()
    options: Any = environment.parsed_options
    options.expect_workers = (
        0  # a master that waits for workers would do so for ever: it goes on, to a test that is over
    )
    runner.quit()


@events.init.add_listener  # type: ignore[untyped-decorator]
def _connect(environment: "Environment", **_: object) -> None:
    """Have orders and news find their way between Locust's processes."""
    runner: Any = environment.runner
    shape = environment.shape_class

    def on_order(msg: Any, **_: object) -> None:
        if SwarmUser.here is not None:
            SwarmUser.here.obey(msg.data)

    def on_news(msg: Any, **_: object) -> None:
        if isinstance(shape, HerdShape):
            shape.hear(**msg.data)

    signal.signal(signal.SIGINT, lambda *_: runner.greenlet.spawn(_stop, environment))
    runner.register_message(_ORDER, on_order)
    if not isinstance(runner, WorkerRunner):
        runner.register_message(_NEWS, on_news)
    if isinstance(shape, HerdShape):
        environment.events.test_stop.add_listener(lambda **_: shape.forget())  # type: ignore[no-untyped-call]
