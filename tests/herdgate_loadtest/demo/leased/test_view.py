"""What the demo shows of a fleet that loses a process, and says of it."""

import io
import math
from dataclasses import replace

import pytest
from rich.console import Console

from herdgate_loadtest.demo.leased.losses import Loss, Round
from herdgate_loadtest.demo.leased.view import LeasedView, Scene
from herdgate_loadtest.demo.rounds import Plan
from herdgate_loadtest.engine import Outcome, Record, Snapshot, compute_record

CROWD = Snapshot(
    elapsed_s=1.0,
    clients=100,
    open=75,
    cut_off=50,
    dialling=3,
    tries=80,
    tries_per_s=40,
    admitted=25,
    denied=50,
    failed=5,
    lost=50,
)
WHOLE = Scene(
    phase="connected",
    is_recovery=False,
    workers={"worker-1": 500, "worker-2": 524},
    gateways={"gateway-1": True, "gateway-2": True},
    unowned=0,
    owned_s=None,
    crowd=CROWD,
)
HURT = replace(WHOLE, phase="coming back", is_recovery=True, workers={"worker-1": 700, "worker-2": None}, unowned=324)


def record(*outcomes: Outcome, reasons: tuple[str, ...] = ()) -> Record:
    return compute_record(
        outcomes, rate=20.0, burst=1.0, denied=1, failed=0, denials_s=[0.1], admissions_s=[], reasons=reasons
    )


BACK = Outcome("obey", 2, 1.5, 1.5)
GONE = Outcome("obey", 3)


def view() -> tuple[LeasedView, Console]:
    paper = Console(file=io.StringIO(), width=200)
    return LeasedView(Plan(100, 20.0), paper), paper


def written(paper: Console) -> str:
    assert isinstance(paper.file, io.StringIO)
    return paper.file.getvalue()


def rows(scene: Scene) -> dict[str, str]:
    """Of the picture, by label."""
    drawn, paper = view()
    paper.print(drawn._frame(scene))
    lines = [line.partition("  ") for line in written(paper).splitlines()]
    return {label: rest.strip() for label, _, rest in lines}


def concluded(*losses: Loss) -> list[str]:
    drawn, paper = view()
    drawn.conclude(Round(losses))
    return written(paper).splitlines()


def test_shards_of_each_worker_are_shown() -> None:
    shown = rows(WHOLE)
    assert shown["shards"] == "worker-1 500, worker-2 524"
    assert shown[""] == "all have an owner"
    assert shown["gateways"] == "gateway-1, gateway-2"


def test_who_was_killed_and_what_nobody_owns_is_shown() -> None:
    shown = rows(replace(HURT, gateways={"gateway-1": False, "gateway-2": True}))
    assert shown["shards"] == "worker-1 700, worker-2 (killed)"
    assert shown[""] == "324 without an owner"
    assert shown["gateways"] == "gateway-1 (killed), gateway-2"


def test_time_until_every_shard_had_an_owner_is_shown_once_it_has_come() -> None:
    assert rows(replace(HURT, unowned=0, owned_s=0.71))[""] == "all have an owner again, after 0.7 s"


def test_who_was_not_cut_off_is_no_part_of_what_has_to_come_back() -> None:
    shown = rows(HURT)
    assert shown["coming back"].endswith("75 of 100 in")
    assert shown["ideal"].endswith("71 of 100 in")  # 50 stayed, 1 at once, 20 in a second
    assert shown["clients"] == "25 waiting"


def test_before_there_is_a_crowd_only_the_fleet_is_shown() -> None:
    assert list(rows(replace(WHOLE, phase="starting", crowd=None))) == ["starting", "shards", "", "gateways"]


def test_widest_line_of_the_crowd_fits_a_terminal() -> None:
    paper = Console(file=io.StringIO(), width=80)
    crowd = replace(CROWD, clients=3_000, open=3_000)
    paper.print(LeasedView(Plan(3_000, 200.0), paper)._frame(replace(HURT, crowd=crowd)))
    assert "3,000 of 3,000 in" in written(paper)
    assert "…" not in written(paper)


@pytest.mark.parametrize(
    ("owned_s", "told"),
    [
        (0.71, "worker-1 was killed: every shard had an owner again after 0.7 s"),
        (None, "worker-1 was killed: shards kept their owners"),
        (math.inf, "worker-1 was killed: some of its shards have no owner yet"),
    ],
)
def test_each_loss_is_told_with_what_became_of_its_shards(owned_s: float | None, told: str) -> None:
    assert concluded(Loss("worker-1", owned_s, record(BACK, BACK))) == [
        told,
        "all 2 clients are back in 1.5 s (ideal 0.1 s), 2 tries each",
        "1 try was told when to come, 0 failed",
    ]


def test_who_never_came_back_is_told() -> None:
    assert concluded(Loss("worker-1", 0.7, record(BACK, GONE)))[1:] == ["1 of 2 clients did not come back"]


def test_losses_are_told_in_order_and_with_what_spoiled_them() -> None:
    spoiled = Loss("gateway-1", None, record(BACK, reasons=("scheduler lag",)))
    told = concluded(Loss("worker-1", 0.7, record(BACK)), spoiled)
    assert [line.split()[0] for line in told if "was killed" in line] == ["worker-1", "gateway-1"]
    assert told[-1] == "not a valid run: scheduler lag"


def test_introduction_says_how_to_end_what_goes_on() -> None:
    drawn, paper = view()
    drawn.introduce(goes_on=True)
    drawn.introduce(goes_on=False)
    fleet = "a fleet that loses a worker, then a gateway"
    assert written(paper) == f"{fleet}; Ctrl-C ends it\n{fleet}\n"
