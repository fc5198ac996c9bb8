"""What comes when in a herd: the conductor, without processes and without time."""

import math

import pytest

from herdgate_loadtest.errors import LoadtestError
from herdgate_loadtest.herd.conductor import Conductor
from tests.herdgate_loadtest.herd.stages import Fake, plan_of


def come_up(fake: Fake) -> None:
    fake.ready("one", "two")
    fake.step()
    for name in ("one", "two"):
        fake.say(name, "up", warnings=[])


def hold_and_cut(fake: Fake) -> None:
    for _ in range(3):
        fake.step()
        for name in ("one", "two"):
            fake.snapshot(name, inside=2, cut_off=0, is_back=True)
    assert fake.sent("cut")


def finish(fake: Fake, *, late_s: float = 0.0) -> None:
    one, two = fake.cut("one"), fake.cut("two", late_s=late_s)
    fake.step()
    for name in ("one", "two"):
        fake.snapshot(name, inside=2, cut_off=2, is_back=True)
    fake.step()
    fake.told("one", began=one)
    fake.told("two", began=two)


def play(fake: Fake, *, late_s: float = 0.0) -> Conductor:
    come_up(fake)
    hold_and_cut(fake)
    finish(fake, late_s=late_s)
    fake.step()
    return fake.conductor


def test_all_processes_come_up_at_one_moment_that_is_still_to_come() -> None:
    fake = Fake(plan_of())
    fake.ready("one", "two")
    fake.step()
    orders = fake.sent("up")
    assert [name for name, _ in orders] == ["one", "two"]
    assert len({order["at"] for _, order in orders}) == 1
    assert min(fake.leads_s) > 1


def test_nobody_comes_up_before_all_processes_are_there() -> None:
    fake = Fake(plan_of())
    fake.ready("one")
    for _ in range(5):
        assert fake.step()
    assert not fake.sent("up")


def test_all_processes_cut_at_one_moment_that_is_still_to_come() -> None:
    fake = Fake(plan_of())
    come_up(fake)
    hold_and_cut(fake)
    orders = fake.sent("cut")
    assert [order["how"] for _, order in orders] == ["reset", "reset"]
    assert len({order["at"] for _, order in orders}) == 1
    assert min(fake.leads_s) > 1


def test_nobody_counts_as_cut_off_before_the_cut() -> None:
    fake = Fake(plan_of())
    come_up(fake)
    for name in ("one", "two"):
        fake.snapshot(name, inside=2, cut_off=2, is_back=True)
    assert fake.conductor.counts() == (4, 0)
    hold_and_cut(fake)
    for name in ("one", "two"):
        fake.cut(name)
        fake.snapshot(name, inside=1, cut_off=2, is_back=False)
    assert fake.conductor.counts() == (2, 4)


def test_a_round_is_the_record_of_all_processes_together() -> None:
    conductor = play(Fake(plan_of()))
    (played,) = conductor.rounds
    assert (conductor.is_over, conductor.exit_code, conductor.error) == (True, 0, "")
    assert (played.record.clients, played.record.denied, played.record.valid) == (4, 2, True)
    assert played.answers == {"101": 4}
    assert len(played.generators) == 2


def test_a_round_is_repeated() -> None:
    fake = Fake(plan_of(rounds=2))
    play(fake)
    hold_and_cut(fake)
    finish(fake)
    fake.step()
    assert len(fake.conductor.rounds) == 2
    assert fake.conductor.is_over


def test_processes_leave_at_the_end() -> None:
    fake = Fake(plan_of())
    play(fake)
    assert {name for name, _ in fake.sent("leave")} == {"one", "two"}


def test_skew_is_measured_and_counts_against_the_late() -> None:
    (played,) = play(Fake(plan_of()), late_s=0.05).rounds
    assert played.skew_ms == pytest.approx(50)
    assert played.record.t100_s == pytest.approx(0.35)
    assert played.record.valid


def test_too_much_skew_makes_a_round_invalid() -> None:
    conductor = play(Fake(plan_of()), late_s=0.2)
    assert conductor.rounds[0].record.reasons == ("the last process cut 200 ms after the first; 100 is too much",)
    assert conductor.exit_code == 1


def test_client_that_never_comes_back_is_waited_for_until_the_deadline() -> None:
    fake = Fake(plan_of(deadline_s=5))
    come_up(fake)
    hold_and_cut(fake)
    one, two = fake.cut("one"), fake.cut("two")
    for _ in range(5):
        fake.step()
        fake.snapshot("one", inside=2, cut_off=2, is_back=True)
        fake.snapshot("two", inside=1, cut_off=2, is_back=False)
        assert not fake.sent("tell")
    fake.step(2)
    fake.told("one", began=one)
    fake.told("two", began=two, back_s=0.3)
    fake.step()
    assert fake.sent("tell")
    assert fake.conductor.is_over


def test_processes_to_be_killed_are_killed_just_after_everybody_watches() -> None:
    fake = Fake(plan_of(cut="kill", kill_pids=(11, 12)))
    come_up(fake)
    hold_and_cut(fake)
    (_, order), *_ = fake.sent("cut")
    assert order["how"] == "observe"
    assert [moment > order["at"] for moment, _ in fake.later] == [True, True]
    for _, call in fake.later:
        call()
    assert fake.killed == [11, 12]


def test_process_that_cannot_be_killed_ends_the_herd_in_one_line() -> None:
    def refuse(_: int) -> None:
        raise ProcessLookupError(3, "No such process")

    fake = Fake(plan_of(cut="kill", kill_pids=(11,)))
    fake.kill = refuse
    come_up(fake)
    hold_and_cut(fake)
    fake.later[0][1]()
    assert not fake.step()
    assert fake.conductor.error.startswith("process 11 was not killed (No such process)")


def test_after_a_kill_it_waits_until_nobody_more_is_cut_off() -> None:
    fake = Fake(plan_of(cut="kill", kill_pids=(11,)))
    come_up(fake)
    hold_and_cut(fake)
    fake.cut("one")
    fake.cut("two")
    for cut_off in (0, 1, 2, 2):
        fake.step()
        fake.snapshot("one", inside=2, cut_off=cut_off, is_back=True)
        fake.snapshot("two", inside=2, cut_off=0, is_back=True)
        assert not fake.sent("tell")
    fake.step()
    fake.step()
    assert len(fake.sent("tell")) == 2


def test_with_an_expected_number_it_waits_for_no_more() -> None:
    fake = Fake(plan_of(cut="observe", expect=3))
    come_up(fake)
    hold_and_cut(fake)
    fake.cut("one")
    fake.cut("two")
    fake.step()
    fake.snapshot("one", inside=2, cut_off=2, is_back=True)
    fake.snapshot("two", inside=2, cut_off=0, is_back=True)
    fake.step()
    assert not fake.sent("tell")
    fake.snapshot("two", inside=2, cut_off=1, is_back=True)
    fake.step()
    assert fake.sent("tell")


def test_error_of_a_process_ends_the_herd_with_its_code() -> None:
    fake = Fake(plan_of())
    come_up(fake)
    fake.say("two", "error", message="40,000 clients will not do", code=2)
    assert not fake.step()
    assert (fake.conductor.error, fake.conductor.exit_code) == ("40,000 clients will not do", 2)
    assert {name for name, _ in fake.sent("leave")} == {"one", "two"}


def test_process_that_is_silent_ends_the_herd() -> None:
    fake = Fake(plan_of())
    come_up(fake)
    assert not fake.step(30)
    assert fake.conductor.error.startswith("process one has said nothing for 20 s")
    assert fake.conductor.exit_code == 1


def test_processes_that_do_not_start_end_the_herd() -> None:
    fake = Fake(plan_of())
    fake.ready("one")
    fake.step()
    assert not fake.step(61)
    assert "1 of 2 processes there" in fake.conductor.error


def test_orders_to_another_machine_are_in_its_own_time() -> None:
    fake = Fake(plan_of(), processes=1)
    fake.ready("far", boot_id="another machine")
    for ahead_s in (0.4, 0.1, 0.3):  # the quickest answer is the one that counts
        fake.step()
        (_, question) = fake.sent("clock")[-1]
        fake.time += ahead_s
        fake.say("far", "clock", asked_at=question["asked_at"], now=question["asked_at"] + ahead_s / 2 + 1000)
    for _ in range(6):
        fake.step()
    (_, order) = fake.sent("up")[-1]
    assert order["at"] - fake.time == pytest.approx(1000 + 1.5, abs=6)
    assert order["at"] > fake.time + 1000 - 6


def test_news_of_strangers_and_after_the_end_are_ignored() -> None:
    fake = Fake(plan_of())
    fake.say("nobody", "up", warnings=["x"])
    play(fake)
    fake.say("one", "error", message="late", code=2)
    assert (fake.conductor.error, fake.conductor.exit_code) == ("", 0)


def test_infinite_recovery_is_a_failure() -> None:
    fake = Fake(plan_of())
    come_up(fake)
    hold_and_cut(fake)
    one, two = fake.cut("one"), fake.cut("two")
    fake.step()
    for name in ("one", "two"):
        fake.snapshot(name, inside=2, cut_off=2, is_back=True)
    fake.step()
    fake.told("one", began=one, back_s=0.2)
    lost = {"outcomes": [["obey", 5, None, None]], "began": two, "denials_s": [], "admissions_s": [], "reasons": []}
    counts = {"tries": 5, "admitted": 0, "denied": 0, "failed": 5}
    fake.say("two", "told", recorded=lost | counts, answers={}, series=[])
    fake.step()
    assert math.isinf(fake.conductor.rounds[0].record.t100_s)
    assert fake.conductor.exit_code == 1


GATEWAY = {"gateways": ("/run/control",)}
GONE = LoadtestError("--gateway: no answer from /run/control")


def drain(fake: Fake) -> None:
    come_up(fake)
    hold_and_cut(fake)
    (_, call), *_ = fake.later
    call()
    fake.cut("one")
    fake.cut("two")


def show(fake: Fake, *, cut_off: int, times: int = 1) -> None:
    for _ in range(times):
        fake.snapshot("one", inside=2, cut_off=cut_off, is_back=True)
        fake.snapshot("two", inside=2, cut_off=0, is_back=True)
        fake.step()


def see_off(fake: Fake) -> None:
    for name in ("one", "two"):
        fake.say(name, "left")
    fake.step()


def test_gateway_is_told_to_drain_just_after_everybody_watches() -> None:
    fake = Fake(plan_of(cut="drain", **GATEWAY))
    drain(fake)
    (_, order), *_ = fake.sent("cut")
    assert (order["how"], fake.drains) == ("observe", 1)
    assert fake.later[0][0] > order["at"]


def test_drain_lasts_until_the_gateway_says_that_it_is_over() -> None:
    fake = Fake(plan_of(cut="drain", **GATEWAY))
    drain(fake)
    show(fake, cut_off=1, times=6)
    assert not fake.sent("tell"), "who is still there is cut off any moment"
    fake.is_drained = True
    show(fake, cut_off=1)
    assert fake.sent("tell")


def test_gateway_that_does_not_drain_ends_the_herd_in_one_line() -> None:
    fake = Fake(plan_of(cut="drain", **GATEWAY))
    come_up(fake)
    hold_and_cut(fake)
    fake.permits = GONE
    fake.later[0][1]()
    assert not fake.step()
    assert (fake.conductor.error, fake.conductor.exit_code) == (str(GONE), 1)


def test_gateway_that_does_not_answer_is_found_before_anybody_comes() -> None:
    fake = Fake(plan_of(**GATEWAY))
    fake.permits = GONE
    fake.ready("one", "two")
    assert not fake.step()
    assert (fake.conductor.error, fake.conductor.exit_code) == (str(GONE), 2)
    assert not fake.sent("up")


def test_round_in_which_nobody_was_cut_off_shows_nothing() -> None:
    fake = Fake(plan_of(cut="drain", **GATEWAY))
    drain(fake)
    fake.is_drained = True
    show(fake, cut_off=0, times=4)
    for name in ("one", "two"):
        nobody = {"outcomes": [], "began": fake.time, "denials_s": [], "admissions_s": [], "reasons": []}
        counts = {"tries": 0, "admitted": 0, "denied": 0, "failed": 0}
        fake.say(name, "told", recorded=nobody | counts, answers={}, series=[])
    fake.step()
    see_off(fake)
    (played,) = fake.conductor.rounds
    assert played.record.reasons == ("0 of 1 client were cut off: is it the server that has their sockets?",)
    assert fake.conductor.exit_code == 1


@pytest.mark.parametrize(
    ("before", "after", "leaked", "code"), [(0, 0, 0, 0), (7, 7, 0, 0), (7, 5, 0, 0), (7, 9, 2, 1)]
)
def test_permits_above_those_of_before_are_leaked(before: int, after: int, leaked: int, code: int) -> None:
    fake = Fake(plan_of(**GATEWAY))
    fake.permits = before
    play(fake)
    assert not fake.conductor.is_over
    fake.permits = None  # counts of a moment ago
    see_off(fake)
    assert not fake.conductor.is_over
    fake.permits = after
    fake.step()
    fake.step(30)
    assert fake.conductor.rounds[-1].record.leaked_permits == leaked
    assert (fake.conductor.is_over, fake.conductor.exit_code) == (True, code)
    assert len(fake.conductor.warnings) == code


def test_permits_are_null_where_nobody_is_asked_or_nobody_answers() -> None:
    assert play(Fake(plan_of())).rounds[0].record.leaked_permits is None
    fake = Fake(plan_of(**GATEWAY))
    play(fake)
    fake.permits = GONE
    see_off(fake)
    assert fake.conductor.rounds[0].record.leaked_permits is None
    assert (fake.conductor.warnings, fake.conductor.exit_code) == ([str(GONE)], 0)
