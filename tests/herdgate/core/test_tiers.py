"""Limits per client of scope `fleet`, as far as the core knows of them: who has which, and what is left to others."""

import random
from dataclasses import replace
from typing import Any

import pytest

from herdgate.core.admission import AdmissionControl
from herdgate.core.answers import Arrival, ClientRefusal, Denied, Queued, Quota
from herdgate.core.client_rates import ClientRates
from herdgate.core.clients import LOCAL, AddressRules, Client
from herdgate.core.errors import ConfigurationError
from herdgate.core.limits import ClientLimits, Limits
from herdgate.core.tickets import TicketSigner
from herdgate.core.tiers import fleet_scopes, fleet_tiers
from herdgate.stores.memory import MemoryStore

IPV4, IPV6 = map(AddressRules().client, ("192.0.2.1", "2001:db8::1"))
USER = IPV6.identify("user")
OVER_FLEET = ClientLimits(rate=0.01, burst=1, open=1, scope="fleet")
ALL = Limits(rate=None, client=OVER_FLEET, anonymous=OVER_FLEET, address=OVER_FLEET, network=OVER_FLEET)


def names(limits: Limits, client: Client) -> list[tuple[str, str]]:
    return [(tier.name, tier.key) for tier in fleet_tiers(limits, client)]


def control_of(**limits: Any) -> AdmissionControl:
    draw = random.Random(1).random
    made = Limits(**{"rate": None, **limits})
    return AdmissionControl(made, [TicketSigner([b"a secret for tests only"])], MemoryStore(made, draw, 0.0), draw)


def queue(control: AdmissionControl, client: Client = LOCAL) -> Queued:
    queued = control.screen_client(Arrival(client), 0.0)
    assert isinstance(queued, Queued)
    return queued


def test_client_has_a_tier_of_its_own_one_of_its_address_and_one_of_its_network() -> None:
    assert names(ALL, USER) == [("client", USER.key), ("address", USER.address), ("network", USER.network)]
    assert names(ALL, LOCAL) == [("client", "local"), ("address", "local")]


@pytest.mark.parametrize(
    ("anonymous", "user", "stranger"),
    [(None, 5, 5), (ClientLimits(open=3, scope="fleet"), 5, 3), (ClientLimits(open=3), 5, None)],
)
def test_anonymous_have_the_limits_of_any_client_unless_they_have_their_own(
    anonymous: ClientLimits | None, user: int, stranger: int | None
) -> None:
    limits = Limits(rate=None, client=ClientLimits(open=5, scope="fleet"), anonymous=anonymous)
    assert [tier.limits.open for tier in fleet_tiers(limits, USER)] == [user]
    assert [tier.limits.open for tier in fleet_tiers(limits, IPV4)] == ([] if stranger is None else [stranger])


def test_limits_of_a_process_are_in_no_tier_and_name_no_scope() -> None:
    here = replace(ALL, client=ClientLimits(open=1), anonymous=None)
    assert names(here, IPV4) == [("address", IPV4.address)]
    assert fleet_scopes(here) == ["address", "network"]
    assert fleet_scopes(Limits(rate=1)) == []


def test_limits_of_the_fleet_are_not_held_here() -> None:
    control = control_of(client=OVER_FLEET, address=ClientLimits(open=5))
    for _ in range(5):
        queued = control.screen(Arrival(LOCAL), 0.0)
        assert isinstance(queued, Queued)
        control.permits.take(queued.client)
    refused = control.screen(Arrival(LOCAL), 0.0)
    assert isinstance(refused, Denied)
    assert refused.reason == "client_open"


def test_scope_is_kept_when_limits_are_divided() -> None:
    whole = Limits(rate=None, client=ClientLimits(rate=4, open=4, scope="fleet"))
    assert whole.divided(2).client == ClientLimits(rate=2, open=2, scope="fleet")


@pytest.mark.parametrize(
    ("refusal", "retry_s"),
    [
        (ClientRefusal("client_rate", 100.0, Quota(1, 100)), (100, 110)),
        (ClientRefusal("client_rate"), (1, 2)),
        (ClientRefusal("client_open"), (5, 10)),
    ],
)
def test_refusal_of_the_fleet_says_when_to_come_back(refusal: ClientRefusal, retry_s: tuple[float, float]) -> None:
    control = control_of(client=OVER_FLEET)
    denials = [control.refuse_client(queue(control), refusal) for _ in range(100)]
    assert {(denied.reason, denied.quota, denied.ticket) for denied in denials} == {
        (refusal.reason, refusal.quota, None)
    }
    waits = [denied.retry_s or 0.0 for denied in denials]
    assert retry_s[0] <= min(waits) < max(waits) <= retry_s[1]
    assert len(set(waits)) == 100
    assert control.denied == {refusal.reason: 100}


def test_refusal_of_the_fleet_by_a_draining_gate_is_one_without_a_ticket() -> None:
    control = control_of(client=OVER_FLEET)
    control.state = "draining"
    denied = control.refuse_client(queue(control), ClientRefusal("client_rate", 100.0, Quota(1, 100)))
    assert (denied.reason, denied.ticket, denied.quota) == ("draining", None, None)
    assert 30 <= (denied.retry_s or 0) <= 60


def test_what_was_charged_here_can_be_given_back() -> None:
    control = control_of(client=ClientLimits(rate=1, burst=1))
    queue(control)
    assert isinstance(control.screen_client(Arrival(LOCAL), 0.0), Denied)
    control.uncharge(LOCAL, 0.0, 0.01)
    queue(control)


def test_nothing_is_given_back_where_nothing_is_charged() -> None:
    control = control_of(client=OVER_FLEET)
    control.uncharge(LOCAL, 0.0, 0.01)
    assert control.client_keys == 0


def test_number_of_keys_that_are_remembered_stays_while_rates_change() -> None:
    rates = ClientRates(Limits(rate=None, client=ClientLimits(rate=1), max_clients=100))
    rates.set_limits(Limits(rate=None, client=ClientLimits(rate=2), max_clients=100))
    with pytest.raises(ConfigurationError, match=r"^max_clients: got 50; keep it at 100 while the gate lives"):
        rates.set_limits(Limits(rate=None, client=ClientLimits(rate=1), max_clients=50))


def test_quota_is_the_burst_and_the_time_it_takes() -> None:
    assert Quota.of(2, 5) == (5, 3)
    assert Quota.of(0, 1) == (1, 0)
