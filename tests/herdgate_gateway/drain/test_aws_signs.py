"""Which states of targets and tasks are a sign to drain, in tables; and that nothing else ever is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate_gateway.drain.aws.signs import (
    TASK,
    Answer,
    Identity,
    Memory,
    Standing,
    Target,
    TargetState,
    TaskState,
    standings,
)

ME, OTHER = Target("10.0.0.1", 80), Target("10.0.0.2", 80)
MY_TASK = "task/1"
LISTED = ("initial", "healthy", "unhealthy", "unhealthy.draining", "unavailable", "what AWS comes up with")
STATES = (*LISTED, "draining", "unused")
STATUSES = ("PROVISIONING", "PENDING", "ACTIVATING", "RUNNING", "what AWS comes up with")
LEAVING = ("DEACTIVATING", "STOPPING", "DEPROVISIONING", "STOPPED", "DELETED")


def group(mine: str | None, *others: str) -> Answer:
    rows = [TargetState(OTHER, state) for state in others]
    return Answer({"web": rows if mine is None else [*rows, TargetState(ME, mine)]})


def standing(answer: Answer, target: Target = ME) -> Standing:
    return standings(answer, Identity(target, None))["web"]


@pytest.mark.parametrize("others", [(), ("healthy",), ("draining",), ("unused",)])
@pytest.mark.parametrize("state", LISTED)
def test_target_that_is_registered_is_in_service_however_it_fares(state: str, others: tuple[str, ...]) -> None:
    assert standing(group(state, *others)) == "in service"


@pytest.mark.parametrize("others", [(), ("healthy",), ("draining",), ("unused",)])
def test_target_that_is_draining_is_leaving_whatever_the_others_do(others: tuple[str, ...]) -> None:
    assert standing(group("draining", *others)) == "leaving"


@pytest.mark.parametrize("mine", [None, "unused"])
@pytest.mark.parametrize("others", [(state,) for state in LISTED])
def test_target_is_gone_while_another_one_is_in_service(mine: str | None, others: tuple[str, ...]) -> None:
    assert standing(group(mine, *others)) == "gone"


@pytest.mark.parametrize("mine", [None, "unused"])
@pytest.mark.parametrize("others", [(), ("unused",), ("draining",), ("unused", "draining")])
def test_group_with_nobody_in_service_says_nothing_of_who_is_not_there(
    mine: str | None, others: tuple[str, ...]
) -> None:
    assert standing(group(mine, *others)) == "unclear"


def test_target_without_a_port_is_in_service_by_any_of_its_ports() -> None:
    rows = [TargetState(Target(ME.id, 80), "draining"), TargetState(Target(ME.id, 81), "healthy")]
    assert standing(Answer({"web": rows}), Target(ME.id)) == "in service"
    assert standing(Answer({"web": rows[:1]}), Target(ME.id)) == "leaving"
    assert standing(Answer({"web": rows}), ME) == "leaving"
    assert standing(Answer({"web": rows}), Target(ME.id, 82)) == "gone"


@pytest.mark.parametrize("desired", ["RUNNING", "STOPPED", "what AWS comes up with"])
@pytest.mark.parametrize("last", [*STATUSES, *LEAVING])
def test_task_is_leaving_by_its_status_or_by_what_it_is_meant_to_be(last: str, desired: str) -> None:
    found = standings(Answer({}, {MY_TASK: TaskState(last, desired)}), Identity(None, MY_TASK))
    assert found == {TASK: "leaving" if last in LEAVING or desired == "STOPPED" else "in service"}


def test_task_that_is_not_in_the_answer_is_unclear() -> None:
    assert standings(Answer({}, {}), Identity(None, MY_TASK)) == {TASK: "unclear"}
    assert standings(Answer({}, None), Identity(None, MY_TASK)) == {}


def test_target_that_was_seen_in_service_is_a_sign_once_it_leaves() -> None:
    for after in ("leaving", "gone"):
        memory = Memory()
        assert memory.heed({"web": "in service"}) is None
        assert memory.heed({"web": "unclear"}) is None
        assert memory.heed({"inner": "in service", "web": after}) == "web"


def test_target_that_was_never_seen_in_service_is_no_sign() -> None:
    memory = Memory()
    for never in ("unclear", "gone", "leaving", "gone"):
        assert memory.heed({"web": never, "inner": "in service"}) is None


def test_task_that_leaves_is_a_sign_at_once() -> None:
    assert Memory().heed({"web": "gone", TASK: "leaving"}) == TASK


@pytest.mark.parametrize("text", ["10.0.0.1:80", "10.0.0.1", "i-0123456789abcdef0:80", "[fd00::1]:80", "fd00::1"])
def test_target_is_written_as_it_is_read(text: str) -> None:
    assert str(Target.parse(text)) == text


quiet_states = st.lists(st.sampled_from(STATES), max_size=3)


@given(looks=st.lists(st.tuples(st.one_of(st.none(), st.sampled_from(STATES)), quiet_states), max_size=20))
def test_nothing_drains_but_draining_or_being_gone_beside_others_after_service(
    looks: list[tuple[str | None, list[str]]],
) -> None:
    memory, was_listed = Memory(), False
    for mine, others in looks:
        sign = memory.heed(standings(group(mine, *others), Identity(ME, None)))
        is_alone = not set(others).intersection(LISTED)
        is_told = mine == "draining" or (mine in (None, "unused") and not is_alone)
        assert (sign == "web") == (is_told and was_listed)
        was_listed = was_listed or mine in LISTED


@given(statuses=st.lists(st.one_of(st.none(), st.text(), st.sampled_from([*STATUSES, *LEAVING])), max_size=20))
def test_no_task_is_a_sign_before_its_status_says_so(statuses: list[str | None]) -> None:
    memory = Memory()
    for status in statuses:
        tasks = {} if status is None else {MY_TASK: TaskState(status, "RUNNING")}
        sign = memory.heed(standings(Answer({}, tasks), Identity(None, MY_TASK)))
        assert (sign == TASK) == (status in LEAVING)
