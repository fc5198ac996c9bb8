"""What the demo shows of a round, and says of it once it is over."""

import io

import pytest
from rich.console import Console

from herdgate_loadtest.demo.rounds import Plan, Round, busiest_beyond_burst
from herdgate_loadtest.demo.view import View
from herdgate_loadtest.engine import Outcome, Snapshot, compute_record


def back(count: int, attempts: int = 1) -> list[Outcome]:
    return [Outcome("obey", attempts, 0.5, 0.5)] * count


def console() -> Console:
    return Console(file=io.StringIO(), width=200)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def conclude(
    outcomes: list[Outcome], reasons: tuple[str, ...] = (), *, denied: int = 1, failed: int = 0, beyond: float = 0.0
) -> str:
    record = compute_record(
        outcomes, rate=20.0, burst=10.0, denied=denied, failed=failed, denials_s=[0.1], admissions_s=[], reasons=reasons
    )
    paper = console()
    View(Plan(len(outcomes), 20.0), paper).conclude(Round(record, beyond))
    return written(paper)


def test_clients_that_never_came_back_are_counted() -> None:
    said = conclude([*back(1), Outcome("obey", 3)])

    assert "1 of 2 clients did not come back" in said
    assert "the one client did not come back" in conclude([Outcome("obey", 3)])


def test_a_run_the_generator_spoiled_is_called_invalid_with_the_reason() -> None:
    said = conclude(back(1), reasons=("scheduler lag",))

    assert "not a valid run: scheduler lag" in said


@pytest.mark.parametrize(
    ("count", "attempts", "told"),
    [
        (1, 1, "the one client is back in 0.5 s (ideal 0.0 s), 1 try\n"),
        (1, 2, "the one client is back in 0.5 s (ideal 0.0 s), 2 tries\n"),
        (2, 1, "all 2 clients are back in 0.5 s (ideal 0.0 s), 1 try each\n"),
        (2000, 2, "all 2,000 clients are back in 0.5 s (ideal 99.5 s), 2 tries each\n"),
    ],
)
def test_one_is_not_spoken_of_as_many(count: int, attempts: int, told: str) -> None:
    assert conclude(back(count, attempts)).startswith(told)


def test_a_mean_of_tries_has_two_digits() -> None:
    assert "1.67 tries each" in conclude([*back(1), *back(2, attempts=2)])


def test_it_is_tries_that_are_told_when_to_come() -> None:
    assert "\n1 try was told when to come, 0 failed\n" in conclude(back(2))
    assert "\n3,000 tries were told when to come, 2 failed\n" in conclude(back(2), denied=3000, failed=2)


@pytest.mark.parametrize(("beyond", "judged"), [(0.0, "0, within"), (20.0, "20, within"), (21.0, "21, above")])
def test_busiest_second_is_judged_by_the_rate(beyond: float, judged: str) -> None:
    assert f"busiest second, beyond the burst of 10: {judged} the rate of 20\n" in conclude(back(2), beyond=beyond)


def test_burst_is_taken_off_the_busiest_second_whichever_it_is() -> None:
    first = [100.0 + i / 500 for i in range(500)]
    later = [101.0 + i / 400 for i in range(308)]

    assert busiest_beyond_burst(first, 100.0, 250.0) == 250.0
    assert busiest_beyond_burst(later, 100.0, 250.0) == 58.0
    assert busiest_beyond_burst(first + later, 100.0, 250.0) == 250.0
    assert busiest_beyond_burst([], 100.0, 250.0) == 0.0


def test_elapsed_time_has_a_row_of_its_own() -> None:
    now = Snapshot(
        elapsed_s=1.5,
        clients=100,
        open=25,
        cut_off=100,
        dialling=3,
        tries=80,
        tries_per_s=40,
        admitted=25,
        denied=50,
        failed=5,
        lost=0,
    )
    paper = console()
    paper.print(View(Plan(100, 20.0), paper)._frame("cut off", now))
    rows = {line.split("  ")[0]: line.split() for line in written(paper).splitlines()}

    assert list(rows) == ["cut off", "ideal", "elapsed", "clients", "tries"]
    assert rows["cut off"][-4:] == ["25", "of", "100", "in"]
    assert rows["ideal"][-4:] == ["31", "of", "100", "in"]
    assert rows["elapsed"][1:] == ["1.5", "s"]
    assert rows["clients"][1:] == ["75", "waiting"]
    assert rows["tries"][1:] == ["80,", "of", "them", "50", "denied,", "5", "failed"]
