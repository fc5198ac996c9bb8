"""The live picture of a recovery: who is back, who waits, and a bar against the ideal."""

import asyncio

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from herdgate_loadtest.demo.rounds import Plan
from herdgate_loadtest.engine import Crowd, Record, Snapshot

__all__ = ["View"]

_FRAME_S = 0.1
_BAR = 48


class View:
    """Draws the phases of the rounds of one plan."""

    def __init__(self, plan: Plan, console: Console) -> None:
        self._plan = plan
        self._console = console

    async def watch(self, phase: str, crowd: Crowd) -> None:
        """Draw one phase, until cancelled."""
        with Live(console=self._console, refresh_per_second=1 / _FRAME_S, transient=phase != "cut off") as live:
            while True:
                await asyncio.sleep(_FRAME_S)
                live.update(self._frame(phase, crowd.snapshot()))

    def conclude(self, record: Record) -> None:
        """Say what came of a round."""
        lost = sum(kind.clients - kind.back for kind in record.behaviours.values())
        if lost:
            self._console.print(f"{lost:,} of {record.clients:,} did not come back", style="red")
        else:
            self._console.print(
                f"all {record.clients:,} back in {record.t100_s:.1f} s (ideal {record.ideal_s:.1f} s), "
                f"{record.attempts_per_client:.2f} tries each; {record.denied:,} were told when to come, "
                f"{record.failed:,} tries failed; busiest second {record.peak_admitted_per_s:g} admissions "
                f"at rate {record.rate:g}, burst {record.burst:g} taken off the first"
            )
        for reason in record.reasons:
            self._console.print(f"not a valid run: {reason}", style="yellow")

    def _frame(self, phase: str, now: Snapshot) -> Table:
        ideal = min(1.0, (self._plan.burst + now.elapsed_s * self._plan.rate) / now.clients)
        if phase != "cut off":
            ideal = min(1.0, now.elapsed_s * self._plan.rate / now.clients)
        frame = Table.grid(padding=(0, 2))
        frame.add_row(phase, _bar(now.open / now.clients, "green"), f"{now.open:,} of {now.clients:,} in")
        frame.add_row("ideal", _bar(ideal, "blue"), f"{now.elapsed_s:.1f} s")
        waiting = now.clients - now.open
        frame.add_row("", f"{waiting:,} waiting   {now.tries:,} tries   {now.denied:,} denied   {now.failed:,} failed")
        return frame


def _bar(share: float, colour: str) -> Text:
    filled = round(share * _BAR)
    return Text("█" * filled, style=colour) + Text("░" * (_BAR - filled), style="dim")
