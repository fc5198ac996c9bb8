"""What a gate keeps when its limits or its secrets are replaced while it runs."""

import pytest

from herdgate import AdmissionClass, ClientLimits, ConfigurationError, Gate, Limits
from herdgate.core.answers import Admitted
from herdgate.core.clients import Client
from tests.herdgate.gates import Clock, admit, come, gate_of, refuse

ANN = Client("ip:192.0.2.1", "ip:192.0.2.1")
BOB = Client("ip:192.0.2.2", "ip:192.0.2.2")
OLD, NEW = "a secret for tests only, 32 bytes", "another one that is new, 32 bytes"
CLASSES = (AdmissionClass("resume", 0.7), AdmissionClass("normal", 0.3))


def test_new_rate_and_burst_hold_at_once(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=10, burst=5))
    gate.set_limits(Limits(rate=2, burst=1))
    admit(gate)
    assert refuse(gate).retry_s == pytest.approx(0.5, abs=0.01)
    assert (gate.snapshot().rate, gate.snapshot().burst, gate.limits.rate) == (2, 1, 2)


def test_promises_are_kept_over_a_change(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=10, burst=1))
    admit(gate)
    hint = refuse(gate)
    gate.set_limits(Limits(rate=10, burst=2, hold_s=0.5, grace_s=30))
    clock.now += 0.11
    admit(gate, ticket=hint.ticket)
    assert refuse(gate, ticket=hint.ticket).reason == "rate", "it was used"


@pytest.mark.parametrize(("rate", "admitted"), [(None, 50), (0, 0), (20, 20)])
def test_rate_may_become_none_nobody_or_a_number(clock: Clock, rate: float | None, admitted: int) -> None:
    gate = gate_of(clock, Limits(rate=None))
    gate.set_limits(Limits(rate=rate))
    assert sum(isinstance(come(gate), Admitted) for _ in range(50)) == admitted


def test_rate_set_after_a_time_without_one_has_the_new_burst(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=10))
    gate.set_limits(Limits(rate=None, burst=3))
    gate.set_rate(10)
    assert gate.snapshot().burst == 3


def test_new_caps_count_the_sockets_that_are_open(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=None))
    permits = [admit(gate).permit for _ in range(3)]
    gate.set_limits(Limits(rate=None, max_open=3))
    assert refuse(gate).reason == "full"
    gate.set_limits(Limits(rate=None, client=ClientLimits(open=3)))
    assert refuse(gate).reason == "client_open"
    admit(gate, client=BOB).permit.release()
    for permit in permits:
        permit.release()
    snapshot = gate.snapshot()
    assert (snapshot.pending, snapshot.open, snapshot.client_keys) == (0, 0, 0)


def test_client_over_the_old_rate_serves_its_penalty_first(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=None, client=ClientLimits(rate=0.1)))
    admit(gate)
    gate.set_limits(Limits(rate=None, client=ClientLimits(rate=1)))
    assert refuse(gate).reason == "client_rate"
    clock.now += 10
    admit(gate)
    clock.now += 1.01
    admit(gate)


def test_rates_may_come_and_go(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=None))
    gate.set_limits(Limits(rate=None, address=ClientLimits(rate=1)))
    admit(gate)
    assert refuse(gate).reason == "client_rate"
    gate.set_limits(Limits(rate=None))
    admit(gate)


def test_anonymous_clients_may_get_a_rate_of_their_own_and_lose_it(clock: Clock) -> None:
    own = ClientLimits(rate=0.001)
    gate = gate_of(clock, Limits(rate=None, client=ClientLimits(rate=1_000)))
    gate.set_limits(Limits(rate=None, client=ClientLimits(rate=1_000), anonymous=own))
    admit(gate)
    assert refuse(gate).reason == "client_rate"
    admit(gate, client=ANN.identify("ann"))
    gate.set_limits(Limits(rate=None, client=ClientLimits(rate=1_000)))
    admit(gate)


def test_fraction_and_memory_limit_are_taken_over(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=None))
    gate.set_limits(Limits(rate=None, admit_fraction=0))
    assert refuse(gate).reason == "shed"
    gate.set_limits(Limits(rate=None, max_memory_bytes=1))
    assert refuse(gate).reason == "full"


def test_several_processes_divide_the_new_limits_too(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=100), processes=4, secrets=[OLD])
    gate.set_limits(Limits(rate=40, max_open=8))
    assert (gate.limits.rate, gate.limits.max_open) == (10, 2)


@pytest.mark.parametrize("limits", [Limits(rate=1, max_clients=7), None, Limits(rate=1, max_open=1)])
def test_wrong_limits_change_nothing(clock: Clock, limits: Limits | None) -> None:
    gate = gate_of(clock, Limits(rate=100, max_open=4), processes=2, secrets=[OLD])
    before = (gate.limits, gate.snapshot())
    with pytest.raises(ConfigurationError):
        gate.set_limits(limits)  # type: ignore[arg-type]
    assert (gate.limits, gate.snapshot()) == before


def test_gates_beside_each_other_keep_one_calendar(clock: Clock) -> None:
    first = gate_of(clock, Limits(rate=10, burst=1))
    second = gate_of(clock, Limits(rate=10, burst=1), beside=first, route="second")
    for gate in (first, second):
        gate.set_limits(Limits(rate=5, burst=2))
    clock.now += 1
    admit(first)
    admit(second)
    assert refuse(first).reason == refuse(second).reason == "rate"


def test_ticket_of_a_secret_that_stays_is_good_and_of_one_that_goes_is_void(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=10, burst=1), secrets=[OLD])
    admit(gate)
    hint = refuse(gate)
    gate.set_secrets([NEW, OLD])
    assert refuse(gate, ticket=hint.ticket).retry_s == pytest.approx(hint.retry_s), "told again, before its time"
    gate.set_secrets([NEW])
    assert refuse(gate, ticket=hint.ticket).retry_s == pytest.approx(0.2, abs=0.01), "a newcomer"


@pytest.mark.parametrize("secrets", [["short"], [7], [], 7])
def test_wrong_secrets_change_nothing(clock: Clock, secrets: object) -> None:
    gate = gate_of(clock, Limits(rate=10, burst=1), secrets=[OLD])
    admit(gate)
    hint = refuse(gate)
    with pytest.raises(ConfigurationError, match="secrets"):
        gate.set_secrets(secrets)  # type: ignore[arg-type]
    clock.now += 0.11
    admit(gate, ticket=hint.ticket)


def test_classes_may_come_and_go(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=10, burst=1), secrets=[OLD])
    admit(gate)
    refuse(gate)
    assert gate.session_token() is None
    gate.set_limits(Limits(rate=10, burst=1, classes=CLASSES))
    refuse(gate, klass="resume")
    assert {name: klass.hints for name, klass in gate.snapshot().classes.items()} == {"resume": 1, "normal": 1}
    token = gate.session_token()
    assert token is not None
    assert gate.is_session_token(token)
    gate.set_secrets([NEW])
    assert not gate.is_session_token(token)
    gate.set_limits(Limits(rate=10, burst=1))
    assert list(gate.snapshot().classes) == ["normal"]
    assert not gate.is_session_token(token)


def test_session_token_is_good_for_the_time_that_is_set_now() -> None:
    wall = Clock()
    gate = Gate(Limits(rate=1, classes=CLASSES, session_ttl_s=100), wall_clock=wall)
    token = gate.session_token() or ""
    wall.now += 60
    assert gate.is_session_token(token)
    gate.set_limits(Limits(rate=1, classes=CLASSES, session_ttl_s=50))
    assert not gate.is_session_token(token)


def test_ticket_of_one_class_is_void_in_another(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=10, burst=1, classes=CLASSES))
    admit(gate)
    ticket = refuse(gate, klass="resume").ticket
    clock.now += 0.05
    again = refuse(gate, ticket=ticket, klass="resume")
    assert again.ticket == ticket, "before its time"
    assert refuse(gate, ticket=ticket).ticket != ticket


def test_arrival_of_no_known_class_is_in_the_last_one(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=10, burst=1, classes=CLASSES))
    admit(gate)
    refuse(gate, klass="something else")
    assert gate.snapshot().classes["normal"].hints == 1
    assert gate.snapshot().classes["normal"].admitted == 1
