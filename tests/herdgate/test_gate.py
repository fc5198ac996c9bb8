"""The gate: decisions with a clock, its counts, and what may be changed while it runs."""

from dataclasses import FrozenInstanceError, fields

import pytest

from herdgate import ClientLimits, ConfigurationError, GateSnapshot, Limits
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import Client
from tests.at_once import at_once
from tests.herdgate.gates import Clock, admit, come, gate_of, refuse

ANN = Client("ip:192.0.2.1", "ip:192.0.2.1")
BOB = Client("ip:192.0.2.2", "ip:192.0.2.2")
SECRETS = ["a secret for tests only, 32 bytes", "another one that is old, 32 bytes"]


def test_burst_is_admitted_then_the_next_is_told_when_to_come(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=2, burst=3))
    for _ in range(3):
        admit(gate)
    denied = refuse(gate)
    assert (denied.reason, denied.firm) == ("rate", False)
    assert denied.retry_s == pytest.approx(0.5, abs=0.01)
    clock.now += 0.51
    admit(gate, denied.ticket)


def test_firm_slot_waits_for_its_ticket_while_newcomers_come(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=2, burst=1))
    admit(gate)
    hint = refuse(gate)
    clock.now += 0.51
    admit(gate)
    firm = refuse(gate, hint.ticket)
    assert firm.firm
    assert firm.retry_s is not None
    for _ in range(10):
        clock.now += firm.retry_s / 10 + 0.001
        refuse(gate)
    admit(gate, firm.ticket)
    assert refuse(gate, firm.ticket).ticket != firm.ticket, "once only"


def test_new_rate_holds_from_now_on_and_stretches_promises(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=10, burst=1))
    admit(gate)
    denied = refuse(gate)
    gate.set_rate(1)
    assert gate.snapshot().rate == 1
    clock.now += 0.5
    assert refuse(gate, denied.ticket).ticket == denied.ticket
    clock.now += 0.6
    admit(gate, denied.ticket)


def test_rate_none_lifts_the_limit_and_a_rate_brings_it_back(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=0))
    assert refuse(gate).retry_s is not None
    gate.set_rate(None)
    for _ in range(5):
        admit(gate)
    snapshot = gate.snapshot()
    assert (snapshot.rate, snapshot.burst, snapshot.tokens) == (None, None, None)
    gate.set_rate(1)
    refuse(gate)
    clock.now += 1.0
    admit(gate)
    refuse(gate)


@pytest.mark.parametrize("rate", [-1, float("nan"), float("inf"), "5", True, [1]])
def test_wrong_rate_is_refused_and_the_old_one_stays(clock: Clock, rate: object) -> None:
    gate = gate_of(clock, Limits(rate=7))
    with pytest.raises(ConfigurationError, match=r"^rate: got "):
        gate.set_rate(rate)  # type: ignore[arg-type]
    assert gate.snapshot().rate == 7


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan"), None, "half", True])
def test_wrong_admit_fraction_is_refused_and_the_old_one_stays(clock: Clock, fraction: object) -> None:
    gate = gate_of(clock, Limits(rate=None, admit_fraction=0.5))
    with pytest.raises(ConfigurationError, match=r"^admit_fraction: got "):
        gate.set_admit_fraction(fraction)  # type: ignore[arg-type]
    assert gate.snapshot().admit_fraction == 0.5


def test_admit_fraction_lets_the_same_keys_past_on_every_gate(clock: Clock) -> None:
    first, second = (gate_of(clock, Limits(rate=None)) for _ in range(2))
    keys = [Client(f"id:{number}", "ip:192.0.2.1", identified=True) for number in range(1_000)]
    for gate in (first, second):
        gate.set_admit_fraction(0.5)
    verdicts = [[isinstance(come(gate, client=key), Admitted) for key in keys] for gate in (first, second)]
    assert verdicts[0] == verdicts[1]
    assert 450 < sum(verdicts[0]) < 550
    assert first.snapshot().denied["shed"] == 1_000 - sum(verdicts[0])


def test_drain_refuses_with_a_hint_and_resume_ends_it(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=5))
    permit = admit(gate).permit
    permit.opened()
    gate.drain()
    gate.drain()
    denied = refuse(gate)
    assert denied.reason == "draining"
    assert denied.ticket
    assert (gate.snapshot().state, gate.snapshot().open) == ("draining", 1)
    gate.resume()
    admit(gate)
    assert gate.snapshot().state == "open"


def test_reserving_sets_a_token_aside_for_the_ticket(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=1))
    ticket = at_once(gate.reserve(Arrival(ANN)))
    assert isinstance(ticket, str)
    assert gate.snapshot().pending == 0, "no permit is taken for who only asks"
    assert refuse(gate, client=BOB).reason == "rate"
    clock.now += 1.0
    admit(gate, ticket, ANN)
    assert isinstance(at_once(gate.reserve(Arrival(ANN, ticket))), (str, Denied))


def test_reserving_is_refused_for_the_same_reasons_as_coming(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=None, client=ClientLimits(rate=0.1, burst=1)))
    assert at_once(gate.reserve(Arrival(ANN))) == "", "without a rate there is nothing to promise"
    denied = at_once(gate.reserve(Arrival(ANN)))
    assert isinstance(denied, Denied)
    assert denied.reason == "client_rate"
    refused = at_once(gate.reserve(Arrival(BOB, None, False)))
    assert isinstance(refused, Denied)
    assert refused.reason == "origin"


def test_letting_past_counts_and_holds_a_permit(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=0, max_open=0))
    permits = [gate.let_past(ANN, exempt=exempt) for exempt in (True, False, False)]
    snapshot = gate.snapshot()
    assert (snapshot.exempt, snapshot.unenforced, snapshot.pending, snapshot.admitted) == (1, 2, 3, 0)
    for permit in permits * 2:
        permit.release()
    assert gate.snapshot().pending == 0


def test_holding_is_counted_and_is_no_refusal(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=1))
    admit(gate)
    denied = refuse(gate)
    with gate.holding(denied):
        assert (gate.snapshot().held, gate.snapshot().denied["rate"]) == (1, 0)
    assert gate.snapshot().held == 0
    with pytest.raises(RuntimeError), gate.holding(denied):
        raise RuntimeError("the arrival failed")
    assert gate.snapshot().held == 0


def test_reading_a_snapshot_changes_nothing(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=2, burst=4))
    admit(gate)
    refused = [come(gate) for _ in range(5)]
    assert any(isinstance(verdict, Denied) for verdict in refused)
    assert gate.snapshot() == gate.snapshot()
    clock.now += 0.25
    first = gate.snapshot()
    for _ in range(100):
        assert gate.snapshot() == first
    assert first.tokens == pytest.approx(0.5)


def test_snapshot_is_a_copy(clock: Clock) -> None:
    gate = gate_of(clock, Limits(rate=0))
    snapshot = gate.snapshot()
    refuse(gate)
    assert snapshot.denied == {}
    assert gate.snapshot().denied == {"rate": 1}
    with pytest.raises(FrozenInstanceError):
        snapshot.held = 5  # type: ignore[misc]


def test_snapshot_documents_all_it_holds() -> None:
    assert GateSnapshot.__doc__ is not None
    for field in fields(GateSnapshot):
        assert f"{field.name}: " in GateSnapshot.__doc__


def test_ticket_of_an_older_secret_is_still_good(clock: Clock) -> None:
    before = gate_of(clock, Limits(rate=1), secrets=SECRETS[1:])
    after = gate_of(clock, Limits(rate=1), secrets=SECRETS)
    admit(before)
    admit(after)
    ticket = refuse(before).ticket
    assert ticket
    again = refuse(after, ticket).ticket
    assert again
    assert again[:22] == ticket[:22], "known, and before its time: the same promise, signed anew"
    assert again != ticket


@pytest.mark.parametrize("other", [{"secrets": SECRETS[1:]}, {"secrets": None}, {"secrets": SECRETS, "route": "other"}])
def test_ticket_of_another_gate_is_worth_nothing(clock: Clock, other: dict[str, object]) -> None:
    gate, foreign = gate_of(clock, Limits(rate=1), secrets=SECRETS), gate_of(clock, Limits(rate=1), **other)
    admit(gate)
    admit(foreign)
    ticket = refuse(foreign).ticket
    assert refuse(gate, ticket).ticket != ticket


def test_secret_may_be_one_text(clock: Clock) -> None:
    first, second = gate_of(clock, Limits(rate=1), secrets=SECRETS[0]), gate_of(clock, Limits(rate=1), secrets=SECRETS)
    admit(first)
    admit(second)
    ticket = refuse(first).ticket
    assert refuse(second, ticket).ticket == ticket
