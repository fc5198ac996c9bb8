"""Classes: what each may have while another waits, and that the sum stays what it was."""

import heapq
import random
import re

import pytest

from herdgate.core.calendar import Calendar
from herdgate.core.classes import NORMAL, AdmissionClass, check_classes
from herdgate.core.errors import ConfigurationError
from herdgate.core.grant import Grant
from herdgate.core.limits import Limits
from herdgate.core.tickets import Ticket

FIRST, SECOND = 0, 1
TWO = (AdmissionClass("resume", 0.7), AdmissionClass("normal", 0.3))
THREE = (AdmissionClass("a", 0.5), AdmissionClass("b", 0.3), AdmissionClass("c", 0.1))


def calendar(
    classes: tuple[AdmissionClass, ...] = TWO, *, rate: float = 100, burst: float = 1, hint_cap_s: float = 600
) -> Calendar:
    limits = Limits(rate=rate, burst=burst, classes=classes, hint_cap_s=hint_cap_s)
    made = Calendar(limits, random.Random(1).random, 0.0)
    for _ in range(int(burst)):  # empty the bucket
        made.arrive(0.0, None, len(classes) - 1)
    return made


def at(ticket: Ticket | None) -> float:
    assert ticket is not None
    return ticket.at_ms / 1000


def hints(made: Calendar, klass: int, count: int, now: float = 0.0) -> list[Grant]:
    grants = [made.arrive(now, None, klass) for _ in range(count)]
    assert not any(grant.admitted for grant in grants)
    return grants


def test_without_classes_there_is_one() -> None:
    assert Limits(rate=1).classes == (NORMAL,)


def test_hint_of_a_later_class_comes_after_those_of_the_first() -> None:
    made = calendar((AdmissionClass("resume", 1.0), AdmissionClass("normal", 0.0)))
    assert at(hints(made, SECOND, 1)[0].ticket) == pytest.approx(0.01, abs=0.002)
    hints(made, FIRST, 100)
    assert at(hints(made, SECOND, 1)[0].ticket) == pytest.approx(1.02, abs=0.002)
    assert at(hints(made, FIRST, 1)[0].ticket) == pytest.approx(1.01, abs=0.002), "its own queue, and nobody else's"


def test_hint_of_a_later_class_comes_at_its_share_if_that_is_sooner() -> None:
    made = calendar()
    hints(made, FIRST, 1_000)
    assert at(hints(made, SECOND, 30)[-1].ticket) == pytest.approx(30 / (0.3 * 100), abs=0.002)


def test_hint_waits_behind_firm_slots_whatever_its_class() -> None:
    made = calendar()
    made.firm = 5.0
    assert at(hints(made, FIRST, 1)[0].ticket) == pytest.approx(5.01, abs=0.002)
    assert at(hints(made, SECOND, 1)[0].ticket) == pytest.approx(5.02, abs=0.002)


def test_newcomers_of_a_later_class_have_their_share_while_the_first_waits() -> None:
    """One arrival of each class every 5 ms, and nobody of the first fetches what he was promised."""
    made, admitted = calendar(burst=100), [0, 0]
    for step in range(1, 2_001):
        now = step * 0.005
        made.classes[FIRST].outstanding = 1_000  # a crowd that waits all the time
        for klass in (SECOND, FIRST):
            admitted[klass] += made.arrive(now, None, klass).admitted
    assert admitted[SECOND] == pytest.approx(0.3 * 100 * 10, rel=0.05)
    assert sum(admitted) == pytest.approx(100 * 10, rel=0.1)


def test_newcomers_of_a_later_class_take_all_while_nobody_of_the_first_waits() -> None:
    made = calendar(burst=100)
    assert sum(made.arrive(step * 0.005, None, SECOND).admitted for step in range(1, 2_001)) == pytest.approx(1_000, 1)


def test_first_class_never_waits_for_a_later_one() -> None:
    made = calendar(burst=10)
    hints(made, SECOND, 500)
    made.advance(0.1)
    grants = [made.arrive(0.1, None, FIRST) for _ in range(10)]
    assert all(grant.admitted for grant in grants)


def test_class_in_the_middle_waits_for_the_first_and_not_for_the_last() -> None:
    made = calendar(THREE, burst=10)
    hints(made, 2, 500)
    made.classes[1].allowance = 0.0
    assert made.arrive(0.05, None, 1).admitted
    hints_first = made.classes[0]
    hints_first.outstanding = 5
    made.classes[1].allowance = 0.0
    assert not made.arrive(0.05, None, 1).admitted


def test_due_hint_takes_a_token_whatever_its_class() -> None:
    made = calendar()
    shown = hints(made, SECOND, 1)[0].ticket
    made.classes[FIRST].outstanding = 1_000
    made.classes[SECOND].allowance = 0.0
    assert made.arrive(at(shown) + 0.001, shown, SECOND).admitted


def test_show_rate_is_that_of_the_class() -> None:
    made = calendar()
    hints(made, FIRST, 50)
    hints(made, SECOND, 1)
    made.advance(100.0)
    assert made.classes[FIRST].show_rate < 0.9
    assert made.classes[SECOND].show_rate > 0.99
    assert made.hints == 0


def test_classes_that_stay_keep_their_hints_when_limits_change() -> None:
    made = calendar(THREE)
    hints(made, 0, 5)
    hints(made, 1, 7)
    made.set_limits(Limits(rate=100, burst=1, classes=(AdmissionClass("b", 0.2), AdmissionClass("d", 0.8))), 0.0)
    assert [(kept.name, kept.share, kept.outstanding) for kept in made.classes] == [("b", 0.2, 7), ("d", 0.8, 0)]


@pytest.mark.parametrize("seed", range(5))
def test_sum_over_classes_is_within_the_bound(seed: int) -> None:
    """11.1: obedient crowds of three classes, and hammering newcomers among them."""
    rng = random.Random(seed)
    limits = Limits(rate=100, burst=20, classes=THREE)
    made, now, admitted = Calendar(limits, rng.random, 0.0), 0.0, 0
    waiting: list[tuple[float, int, Ticket | None]] = []
    for _ in range(20_000):
        now += rng.expovariate(1_000)
        is_due = waiting and waiting[0][0] <= now
        _, klass, shown = heapq.heappop(waiting) if is_due else (now, rng.randrange(3), None)
        grant = made.arrive(now, shown, klass)
        admitted += grant.admitted
        if grant.ticket and rng.random() < 0.8:
            heapq.heappush(waiting, (now + grant.told_s, klass, grant.ticket))
        assert admitted <= 20 + now * 100 + 100 * (limits.hold_s + 0.1) + 1
    assert admitted >= now * 100 * 0.8, "and the rate is used"


def test_obedient_clients_of_the_first_class_are_back_first() -> None:
    """2,000 of each class at once, R = 100: the first class needs 2,000 / 70 s at most, all together 40 s."""
    limits = Limits(rate=100, burst=1, classes=TWO)
    made, back = Calendar(limits, random.Random(1).random, 0.0), {FIRST: [0.0], SECOND: [0.0]}
    crowd: list[tuple[float, int, int, Ticket | None]] = [
        (number * 1e-4, number, number % 2, None) for number in range(4_000)
    ]
    while crowd:
        now, number, klass, shown = heapq.heappop(crowd)
        grant = made.arrive(now, shown, klass)
        if grant.admitted:
            back[klass].append(now)
        else:
            heapq.heappush(crowd, (now + grant.told_s + 1e-6, number, klass, grant.ticket))
    assert max(back[FIRST]) < max(back[SECOND])
    assert max(back[FIRST]) == pytest.approx(2_000 / 70, rel=0.25)
    assert max(back[SECOND]) == pytest.approx(40, rel=0.05)


@pytest.mark.parametrize(
    ("classes", "line"),
    [
        ((), "classes: got 0 of them; write 1 to 16"),
        ((AdmissionClass("a", 0.1),) * 2, "classes: got a; write each name once"),
        (
            (AdmissionClass("a", 0.7), AdmissionClass("b", 0.4)),
            "classes: got shares of 1.1 together; write shares that come to 1 at most",
        ),
        ([NORMAL], "classes: got .*; write a tuple, as in .*"),
        (("a",), "classes: got .*; write a tuple, as in .*"),
        (tuple(AdmissionClass(f"c{number}", 0) for number in range(17)), "classes: got 17 of them; write 1 to 16"),
    ],
)
def test_wrong_classes_are_one_line(classes: object, line: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        check_classes(classes)
    assert re.fullmatch(line, str(raised.value)), str(raised.value)


@pytest.mark.parametrize("name", ["", "a b", "ä", "x" * 65, None, 7])
def test_wrong_name_is_one_line(name: object) -> None:
    with pytest.raises(ConfigurationError, match="name: got"):
        AdmissionClass(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "1", None, True])
def test_wrong_share_is_one_line(share: object) -> None:
    with pytest.raises(ConfigurationError, match="share: got"):
        AdmissionClass("a", share)  # type: ignore[arg-type]
