"""Limits mean what they say: N is exactly N, 0 is nobody, None is no limit. Wrong ones: see `test_errors`."""

import dataclasses
import random
from collections.abc import Callable, Iterable
from ipaddress import IPv6Network

import pytest

from herdgate import AddressRules, ClientLimits, Gate, Limits
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import Client
from herdgate.core.errors import ConfigurationError
from herdgate.core.limits import MAX_HORIZON_S, MOST_BURST
from herdgate.core.numbers import LEAST_RATE, MOST_RATE, check_number
from tests.at_once import at_once

OFFICE = "203.0.113.7"
USUAL = AddressRules()


def gate_of(limits: Limits) -> Gate:
    """A gate whose clock stands still."""
    return Gate(limits, clock=lambda: 0.0, rng=random.Random(1).random)


def verdicts(gate: Gate, clients: Iterable[Client]) -> list[str]:
    """Per arrival: `in`, or the reason why not. Sockets stay open."""
    answers = [at_once(gate.decide(Arrival(client))) for client in clients]
    return [answer.reason if isinstance(answer, Denied) else "in" for answer in answers]


def addresses_in(network: str, count: int, seed: int) -> list[str]:
    subnet, draw = IPv6Network(network), random.Random(seed)
    return [str(subnet[draw.randrange(subnet.num_addresses)]) for _ in range(count)]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Limits(rate=None),
        lambda: Limits(rate=0),
        lambda: Limits(rate=LEAST_RATE),
        lambda: Limits(rate=MOST_RATE, burst=MOST_BURST),
        lambda: Limits(rate=1, burst=1, max_pending=0, max_open=0, max_memory_bytes=0, max_clients=1),
        lambda: Limits(rate=1, admit_fraction=0),
        lambda: Limits(rate=1, hold_s=0, grace_s=0, hint_cap_s=1, horizon_s=1),
        lambda: Limits(rate=1, hold_s=MAX_HORIZON_S, grace_s=MAX_HORIZON_S),
        lambda: Limits(rate=1, hint_cap_s=MAX_HORIZON_S, horizon_s=MAX_HORIZON_S),
        lambda: ClientLimits(rate=0, open=0),
        lambda: ClientLimits(rate=LEAST_RATE, burst=MOST_BURST),
    ],
)
def test_the_ends_of_every_range_are_in_it(make: Callable[[], object]) -> None:
    assert make()


def test_limits_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Limits(rate=1).rate = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        ClientLimits().open = 2  # type: ignore[misc]


def test_nothing_limits_a_client_unless_asked() -> None:
    limits = Limits(rate=1)
    assert limits.client == limits.address == limits.network == ClientLimits()
    assert ClientLimits() == ClientLimits(rate=None, burst=None, open=None)
    assert (limits.anonymous, limits.max_pending, limits.max_open, limits.max_memory_bytes) == (None,) * 4


def test_none_is_right_only_where_it_means_something() -> None:
    check_number("field", None, least=0, unit="seconds", none="never")
    with pytest.raises(ValueError, match="field: got None; write seconds, 0 or more"):
        check_number("field", None, least=0, unit="seconds")


@pytest.mark.parametrize("cap", [0, 1, 7])
@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (lambda cap: Limits(rate=None, max_open=cap), "full"),
        (lambda cap: Limits(rate=None, max_pending=cap), "full"),
        (lambda cap: Limits(rate=None, client=ClientLimits(open=cap)), "client_open"),
        (lambda cap: Limits(rate=None, address=ClientLimits(open=cap)), "client_open"),
        (lambda cap: Limits(rate=1 if cap else 0, burst=max(1, cap)), "rate"),
        (lambda cap: Limits(rate=None, client=ClientLimits(1 if cap else 0, max(1, cap))), "client_rate"),
    ],
)
def test_a_cap_of_n_admits_exactly_n(limits: Callable[[int], Limits], reason: str, cap: int) -> None:
    answers = verdicts(gate_of(limits(cap)), [USUAL.client(OFFICE)] * (cap + 3))
    assert answers == ["in"] * cap + [reason] * 3


def test_no_limit_admits_everybody() -> None:
    assert set(verdicts(gate_of(Limits(rate=None)), [USUAL.client(OFFICE)] * 1000)) == {"in"}


def test_random_addresses_of_one_ipv6_subscriber_share_its_limit() -> None:
    """CASES 2.7."""
    gate = gate_of(Limits(rate=None, client=ClientLimits(rate=1, burst=5)))
    crowd = [USUAL.client(address) for address in addresses_in("2001:db8:0:1::/64", 100, seed=27)]

    answers = verdicts(gate, crowd)

    assert answers == ["in"] * 5 + ["client_rate"] * 95


@pytest.mark.parametrize(
    ("network", "reason"), [(ClientLimits(rate=1, burst=20), "client_rate"), (ClientLimits(open=20), "client_open")]
)
def test_a_wider_cap_holds_for_all_subscribers_of_one_ipv6_network(network: ClientLimits, reason: str) -> None:
    """CASES 2.7."""
    rules = AddressRules(ipv6_network_prefix=56)
    gate = gate_of(Limits(rate=None, client=ClientLimits(rate=1, burst=5), network=network))
    crowd = [
        rules.client(address)
        for subnet in range(16)
        for address in addresses_in(f"2001:db8:0:10{subnet:02x}::/64", 5, seed=subnet)
    ]

    answers = verdicts(gate, crowd)

    assert answers == ["in"] * 20 + [reason] * 60
    assert verdicts(gate, [rules.client("2001:db8:0:1100::1")]) == ["in"]  # the next /56


@pytest.fixture
def office() -> Gate:
    """Up to 3 sockets a user, 15 for the anonymous of one address, 500 for all of one address."""
    return gate_of(
        Limits(
            rate=None,
            client=ClientLimits(open=3),
            anonymous=ClientLimits(open=15),
            address=ClientLimits(open=500),
        )
    )


def users(first: int, count: int) -> list[Client]:
    return [USUAL.client(OFFICE).identify(f"user {number}") for number in range(first, first + count)]


def test_hundred_users_behind_one_address_all_come_in(office: Gate) -> None:
    """CASES 2.9."""
    assert verdicts(office, users(0, 100)) == ["in"] * 100


def test_sixteenth_anonymous_of_an_address_is_refused_and_its_users_are_not(office: Gate) -> None:
    """CASES 2.9."""
    assert verdicts(office, [USUAL.client(OFFICE)] * 16) == ["in"] * 15 + ["client_open"]
    assert verdicts(office, users(0, 100)) == ["in"] * 100


def test_fourth_socket_of_a_user_is_refused_wherever_it_comes_from(office: Gate) -> None:
    assert verdicts(office, users(0, 1) * 3) == ["in"] * 3
    assert verdicts(office, [USUAL.client("198.51.100.1").identify("user 0")]) == ["client_open"]


def test_one_address_cannot_mint_identities_without_bound(office: Gate) -> None:
    assert verdicts(office, [*users(0, 485), *[USUAL.client(OFFICE)] * 15]) == ["in"] * 500
    assert verdicts(office, [*users(1000, 1), USUAL.client(OFFICE)]) == ["client_open"] * 2
    assert verdicts(office, [USUAL.client("198.51.100.1")]) == ["in"]


def test_a_socket_that_is_gone_makes_room_for_one(office: Gate) -> None:
    anonymous = Arrival(USUAL.client(OFFICE))
    admitted = [at_once(office.decide(anonymous)) for _ in range(15)]
    assert isinstance(at_once(office.decide(anonymous)), Denied)

    assert isinstance(admitted[3], Admitted)
    admitted[3].permit.release()

    assert isinstance(at_once(office.decide(anonymous)), Admitted)
    assert isinstance(at_once(office.decide(anonymous)), Denied)


def test_burst_of_a_client_without_a_rate_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"^burst: got 5; write a rate as well"):
        ClientLimits(burst=5)
