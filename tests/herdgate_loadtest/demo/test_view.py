"""What the demo says of a round that went wrong."""

import io

from rich.console import Console

from herdgate_loadtest.demo.rounds import Plan
from herdgate_loadtest.demo.view import View
from herdgate_loadtest.engine import Outcome, compute_record


def conclude(outcomes: list[Outcome], reasons: tuple[str, ...] = ()) -> str:
    record = compute_record(
        outcomes, rate=1.0, burst=1.0, denied=1, failed=0, denials_s=[0.1], admissions_s=[0.5], reasons=reasons
    )
    console = Console(file=io.StringIO(), width=200)
    View(Plan(len(outcomes), 1.0), console).conclude(record)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_clients_that_never_came_back_are_counted() -> None:
    said = conclude([Outcome("obey", 1, 0.5, 0.5), Outcome("obey", 3)])

    assert "1 of 2 did not come back" in said


def test_a_run_the_generator_spoiled_is_called_invalid_with_the_reason() -> None:
    said = conclude([Outcome("obey", 1, 0.5, 0.5)], reasons=("scheduler lag",))

    assert "not a valid run: scheduler lag" in said


def test_a_crowd_within_the_burst_is_all_back() -> None:
    assert "all 1 back" in conclude([Outcome("obey", 1, 0.5, 0.5)])
