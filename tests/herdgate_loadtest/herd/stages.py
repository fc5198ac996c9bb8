"""A stage for conductors: no processes, no clock but the test's."""

from collections.abc import Callable
from typing import Any

from herdgate_loadtest.engine import CrowdConfig
from herdgate_loadtest.errors import LoadtestError
from herdgate_loadtest.herd.conductor import Conductor, Stage
from herdgate_loadtest.herd.plan import Plan

__all__ = ["HERE", "Fake", "plan_of"]

HERE = "this machine"


def plan_of(**settings: Any) -> Plan:
    clients = settings.pop("clients", {"obey": 4})
    crowd = CrowdConfig(urls=("ws://127.0.0.1:9/",), clients=clients)
    return Plan(crowd, **({"rate": 10.0, "burst": 1.0, "ramp": 10.0} | settings))


class Fake:
    """Plays both sides: `step` moves time on, `say` is a process, `orders` is what was sent.

    Attributes:
        is_drained: what the gateway says.
        permits: that are taken at the gateways; None: not known yet; an error: no answer.
        drains: how often the gateway was told to drain.
    """

    def __init__(self, plan: Plan, processes: int = 2) -> None:
        self.time = 100.0
        self.orders: list[tuple[str, dict[str, Any]]] = []
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.killed: list[int] = []
        self.leads_s: list[float] = []
        self.kill: Callable[[int], None] = self.killed.append
        self.is_drained = False
        self.permits: int | LoadtestError | None = 0
        self.drains = 0
        stage = Stage(
            send=self._send,
            now=lambda: self.time,
            at=lambda moment, call: self.later.append((moment, call)),
            kill=self._kill,
            drain=self._drain,
            is_drained=lambda: self.is_drained,
            permits=self._permits,
            boot_id=HERE,
        )
        self.conductor = Conductor(plan, processes, stage)

    def _send(self, name: str, order: dict[str, Any]) -> None:
        self.orders.append((name, order))
        if "at" in order:
            self.leads_s.append(order["at"] - self.time)

    def _kill(self, pid: int) -> None:
        self.kill(pid)

    def _drain(self) -> None:
        if isinstance(self.permits, LoadtestError):
            raise self.permits
        self.drains += 1

    def _permits(self, _since: float) -> int | None:
        if isinstance(self.permits, LoadtestError):
            raise self.permits
        return self.permits

    def step(self, seconds: float = 1.0) -> bool:
        self.time += seconds
        return self.conductor.step()

    def say(self, name: str, event: str, **fields: Any) -> None:
        self.conductor.hear(name, event, **fields)

    def ready(self, *names: str, boot_id: str = HERE) -> None:
        for name in names:
            self.say(name, "ready", boot_id=boot_id)

    def sent(self, kind: str) -> list[tuple[str, dict[str, Any]]]:
        return [(name, order) for name, order in self.orders if order["order"] == kind]

    def snapshot(self, name: str, *, inside: int, cut_off: int, is_back: bool) -> None:
        self.say(name, "snapshot", open=inside, cut_off=cut_off, is_back=is_back)

    def cut(self, name: str, *, late_s: float = 0.0) -> float:
        """A process has cut; returns when."""
        (at,) = [order["at"] for whom, order in self.sent("cut")[-2:] if whom == name]
        self.say(name, "cut", began=at + late_s, took_s=0.01)
        return float(at + late_s)

    def told(self, name: str, *, began: float, back_s: float = 0.3, reasons: list[str] | None = None) -> None:
        recorded = {
            "began": began,
            "outcomes": [["obey", 1, back_s, back_s], ["obey", 2, back_s, back_s]],
            "tries": 3,
            "admitted": 2,
            "denied": 1,
            "failed": 0,
            "denials_s": [0.1],
            "admissions_s": [back_s, back_s],
            "reasons": reasons or [],
        }
        self.say(name, "told", recorded=recorded, answers={"101": 2}, series=[["denied", 0, 1]], lag_p99_ms=1.0)
