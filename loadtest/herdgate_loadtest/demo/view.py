"""The live picture of a recovery: who is back, who waits, and a bar against the ideal."""

import asyncio
import math
from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from herdgate_loadtest.counted import counted
from herdgate_loadtest.demo.fleet import WORKERS
from herdgate_loadtest.demo.rounds import Plan, Round
from herdgate_loadtest.engine import Crowd, Record, Snapshot

__all__ = ["View", "back_line", "crowd_frame", "draw", "lost_line", "tries_line"]

_FRAME_S = 0.1
_BAR = 48


class View:
    """Draws the phases of the rounds of one plan."""

    def __init__(self, plan: Plan, console: Console) -> None:
        self._plan = plan
        self._console = console

    async def watch(self, phase: str, crowd: Crowd) -> None:
        """Draw one phase, until cancelled."""
        await draw(self._console, lambda: self._frame(phase, crowd.snapshot()), stays=phase == "cut off")

    def introduce(self, *, goes_on: bool) -> None:
        """Say what there is to see, and how to end a demo that goes on and on."""
        ending = "; Ctrl-C ends it" if goes_on else ""
        self._console.print(f"a gateway in front of {counted(WORKERS, 'worker')}{ending}")

    def conclude(self, played: Round) -> None:
        """Say what came of a round."""
        record = played.record
        if (lost := lost_line(record)) is not None:
            self._console.print(lost, style="red")
        else:
            for line in (back_line(record), tries_line(record), _busiest(played)):
                self._console.print(line)
        for reason in record.reasons:
            self._console.print(f"not a valid run: {reason}", style="yellow")

    def _frame(self, phase: str, now: Snapshot) -> Table:
        return crowd_frame(self._plan, phase, now, is_recovery=phase == "cut off")


async def draw(console: Console, frame: Callable[[], Table], *, stays: bool) -> None:
    """Draw a frame ten times a second, until cancelled; `stays`: the last one is left on the screen."""
    with Live(console=console, refresh_per_second=1 / _FRAME_S, transient=not stays) as live:
        try:
            while True:
                await asyncio.sleep(_FRAME_S)
                live.update(frame())
        finally:
            live.update(frame())
            live.stop()
            if not console.is_terminal and not live.transient:  # on a terminal, Live ends the line itself
                console.line()


def crowd_frame(plan: Plan, phase: str, now: Snapshot, *, is_recovery: bool) -> Table:
    """Where a crowd is, beside where it would be at best: it comes up, or those that were cut off come back."""
    stayed, at_once = (now.clients - now.cut_off, plan.burst) if is_recovery else (0, 0.0)
    ideal = min(1.0, (stayed + at_once + now.elapsed_s * plan.rate) / now.clients)
    frame = Table.grid(padding=(0, 2))
    frame.add_row(phase, _bar(now.open / now.clients, "green"), f"{now.open:,} of {now.clients:,} in")
    frame.add_row("ideal", _bar(ideal, "blue"), f"{math.floor(ideal * now.clients):,} of {now.clients:,} in")
    frame.add_row("elapsed", f"{now.elapsed_s:.1f} s")
    waiting = now.clients - now.open
    frame.add_row("clients", f"{waiting:,} waiting")
    frame.add_row("tries", f"{now.tries:,}, of them {now.denied:,} denied, {now.failed:,} failed")
    return frame


def lost_line(record: Record) -> str | None:
    """Who did not come back; None: nobody."""
    lost = sum(kind.clients - kind.back for kind in record.behaviours.values())
    if not lost:
        return None
    is_one = record.clients == 1
    return "the one client did not come back" if is_one else f"{lost:,} of {record.clients:,} clients did not come back"


def back_line(record: Record) -> str:
    """How long it took, where all came back."""
    who = "the one client is" if record.clients == 1 else f"all {record.clients:,} clients are"
    tries, each = record.attempts_per_client, "" if record.clients == 1 else " each"
    count = f"{tries:g}" if tries.is_integer() else f"{tries:.2f}"
    noun = "try" if tries == 1 else "tries"
    return f"{who} back in {record.t100_s:.1f} s (ideal {record.ideal_s:.1f} s), {count} {noun}{each}"


def tries_line(record: Record) -> str:
    """What their tries came to."""
    was = "was" if record.denied == 1 else "were"
    return f"{counted(record.denied, 'try', 'tries')} {was} told when to come, {record.failed:,} failed"


def _busiest(played: Round) -> str:
    record, beyond = played.record, played.beyond_burst
    judged = "within" if beyond <= record.rate else "above"
    return f"busiest second, beyond the burst of {record.burst:g}: {beyond:g}, {judged} the rate of {record.rate:g}"


def _bar(share: float, colour: str) -> Text:
    filled = round(share * _BAR)
    return Text("█" * filled, style=colour) + Text("░" * (_BAR - filled), style="dim")
