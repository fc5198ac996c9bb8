"""The live picture of a fleet that loses a process: who owns how many shards, who is back, who waits."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from herdgate_loadtest.demo.leased.losses import Loss, Round
from herdgate_loadtest.demo.rounds import Plan
from herdgate_loadtest.demo.view import back_line, crowd_frame, draw, lost_line, tries_line
from herdgate_loadtest.engine import Snapshot

__all__ = ["LeasedView", "Scene"]


@dataclass(frozen=True, slots=True)
class Scene:
    """The fleet now.

    Attributes:
        phase: what happens.
        is_recovery: something was killed, and clients come back.
        workers: shards of each; None: it was killed.
        gateways: whether each is there.
        unowned: shards of nobody.
        owned_s: seconds until every shard had an owner again; None: not yet, or nothing was lost.
        crowd: None before there is one.
    """

    phase: str
    is_recovery: bool
    workers: Mapping[str, int | None]
    gateways: Mapping[str, bool]
    unowned: int
    owned_s: float | None
    crowd: Snapshot | None


class LeasedView:
    """Draws the phases of the rounds of one plan."""

    def __init__(self, plan: Plan, console: Console) -> None:
        self._plan = plan
        self._console = console

    async def watch(self, scene: Callable[[], Scene], *, stays: bool) -> None:
        """Draw one phase, until cancelled; `stays`: its last picture is left on the screen."""
        await draw(self._console, lambda: self._frame(scene()), stays=stays)

    def introduce(self, *, goes_on: bool) -> None:
        """Say what there is to see, and how to end a demo that goes on and on."""
        ending = "; Ctrl-C ends it" if goes_on else ""
        self._console.print(f"a fleet that loses a worker, then a gateway{ending}")

    def conclude(self, played: Round) -> None:
        """Say what came of a round."""
        for loss in played.losses:
            self._conclude(loss)

    def _conclude(self, loss: Loss) -> None:
        record, lost = loss.record, lost_line(loss.record)
        self._console.print(_shards_line(loss))
        if lost is not None:
            self._console.print(lost, style="red")
        else:
            self._console.print(back_line(record))
            self._console.print(tries_line(record))
        for reason in record.reasons:
            self._console.print(f"not a valid run: {reason}", style="yellow")

    def _frame(self, scene: Scene) -> Table:
        if scene.crowd is None:
            frame = Table.grid(padding=(0, 2))
            frame.add_row(scene.phase)
        else:
            frame = crowd_frame(self._plan, scene.phase, scene.crowd, is_recovery=scene.is_recovery)
        frame.add_row("shards", ", ".join(map(_worker, scene.workers.items())))
        frame.add_row("", _whole(scene))
        frame.add_row(
            "gateways", ", ".join(f"{name}{'' if is_up else ' (killed)'}" for name, is_up in scene.gateways.items())
        )
        return frame


def _shards_line(loss: Loss) -> str:
    if loss.owned_s is None:
        return f"{loss.killed} was killed: shards kept their owners"
    if math.isinf(loss.owned_s):
        return f"{loss.killed} was killed: some of its shards have no owner yet"
    return f"{loss.killed} was killed: every shard had an owner again after {loss.owned_s:.1f} s"


def _worker(worker: tuple[str, int | None]) -> str:
    name, shards = worker
    return f"{name} (killed)" if shards is None else f"{name} {shards:,}"


def _whole(scene: Scene) -> str:
    if scene.unowned:
        return f"{scene.unowned:,} without an owner"
    return "all have an owner" if scene.owned_s is None else f"all have an owner again, after {scene.owned_s:.1f} s"
