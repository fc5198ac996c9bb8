"""Permits: taken, opened and released, each exactly once."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from herdgate.core.clients import LOCAL, AddressRules, Client
from herdgate.core.limits import ClientLimits, Limits
from herdgate.core.permits import OpenSockets, Permit, Permits

IPV4 = AddressRules().client("192.0.2.1")
IPV6 = AddressRules().client("2001:db8::1")
NEIGHBOUR = AddressRules().client("2001:db8:0:1::1")
"""Another client of the network of IPV6."""
USER = IPV4.identify("user")

CAPPED = Limits(
    rate=None,
    client=ClientLimits(open=2),
    anonymous=ClientLimits(open=3),
    address=ClientLimits(open=4),
    network=ClientLimits(open=5),
)


def counts(permits: Permits) -> tuple[int, int]:
    return permits.pending, permits.open


def test_permit_is_pending_then_open_then_gone() -> None:
    permits = Permits(Limits(rate=None))
    permit = permits.take(LOCAL)
    seen = [counts(permits)]
    permit.opened()
    seen.append(counts(permits))
    permit.release()
    seen.append(counts(permits))
    assert seen == [(1, 0), (0, 1), (0, 0)]


def test_opening_twice_counts_once() -> None:
    permits = Permits(Limits(rate=None))
    permit = permits.take(LOCAL)
    permit.opened()
    permit.opened()
    assert counts(permits) == (0, 1)


@pytest.mark.parametrize("opened", [False, True])
def test_releasing_twice_gives_back_once(opened: bool) -> None:
    permits = Permits(CAPPED)
    other, permit = permits.take(USER), permits.take(USER)
    if opened:
        permit.opened()
    permit.release()
    permit.release()
    assert counts(permits) == (1, 0)
    assert permits.sockets.has_room(USER)
    other.release()
    assert (counts(permits), len(permits.sockets)) == ((0, 0), 0)


def test_opening_what_was_released_does_nothing() -> None:
    permits = Permits(Limits(rate=None))
    permit = permits.take(LOCAL)
    permit.release()
    permit.opened()
    permit.release()
    assert counts(permits) == (0, 0)


def test_max_pending_counts_set_ups_only() -> None:
    permits = Permits(Limits(rate=None, max_pending=1))
    permit = permits.take(LOCAL)
    assert not permits.has_room()
    permit.opened()
    assert permits.has_room()


def test_max_open_counts_set_ups_too() -> None:
    permits = Permits(Limits(rate=None, max_open=2))
    permits.take(LOCAL).opened()
    assert permits.has_room()
    permit = permits.take(LOCAL)
    assert not permits.has_room()
    permit.opened()
    assert not permits.has_room()
    permit.release()
    assert permits.has_room()


def test_no_memory_is_no_room() -> None:
    permits = Permits(Limits(rate=None))
    permits.memory_full = True
    assert not permits.has_room()
    permits.memory_full = False
    assert permits.has_room()


@pytest.mark.parametrize(
    ("client", "cap"),
    [(USER, 2), (IPV4, 3), (IPV6, 3), (IPV6.identify("another"), 2), (LOCAL, 3)],
    ids=["user", "IPv4", "IPv6", "IPv6 user", "local"],
)
def test_one_client_holds_as_many_as_its_own_cap(client: Client, cap: int) -> None:
    sockets = OpenSockets(CAPPED)
    for _ in range(cap):
        assert sockets.has_room(client)
        sockets.add(client)
    assert not sockets.has_room(client)


def test_all_of_one_address_hold_as_many_as_the_address() -> None:
    sockets = OpenSockets(CAPPED)
    for number in range(4):
        assert sockets.has_room(IPV4.identify(f"user {number}"))
        sockets.add(IPV4.identify(f"user {number}"))
    assert not sockets.has_room(IPV4.identify("user 5"))
    assert not sockets.has_room(IPV4)
    assert sockets.has_room(IPV6)


def test_all_of_one_network_hold_as_many_as_the_network() -> None:
    sockets = OpenSockets(CAPPED)
    for client in (IPV6, IPV6, IPV6, NEIGHBOUR, NEIGHBOUR):
        assert sockets.has_room(client)
        sockets.add(client)
    assert not sockets.has_room(NEIGHBOUR)
    assert sockets.has_room(IPV4)


def test_anonymous_are_counted_as_any_client_unless_they_have_a_cap() -> None:
    sockets = OpenSockets(Limits(rate=None, client=ClientLimits(open=1)))
    sockets.add(IPV4)
    assert not sockets.has_room(IPV4)


def test_cap_for_the_anonymous_alone_leaves_users_alone() -> None:
    sockets = OpenSockets(Limits(rate=None, anonymous=ClientLimits(open=0)))
    sockets.add(USER)
    assert sockets.has_room(USER)
    assert not sockets.has_room(IPV4)


def test_cap_set_while_sockets_are_open_knows_of_them() -> None:
    sockets = OpenSockets(Limits(rate=1))
    sockets.add(IPV6)
    assert (sockets.has_room(IPV6), len(sockets)) == (True, 3)
    sockets.set_limits(Limits(rate=1, network=ClientLimits(open=1)))
    assert not sockets.has_room(IPV6)
    sockets.remove(IPV6)
    assert (sockets.has_room(IPV6), len(sockets)) == (True, 0)


def test_a_permit_may_be_taken_beyond_every_cap() -> None:
    permits = Permits(Limits(rate=None, max_open=0, max_pending=0, client=ClientLimits(open=0)))
    assert not permits.has_room()
    permits.take(LOCAL).release()
    assert (counts(permits), len(permits.sockets)) == ((0, 0), 0)


clients = st.sampled_from([LOCAL, IPV4, IPV6, NEIGHBOUR, USER, IPV6.identify("user")])
steps = st.lists(st.tuples(st.sampled_from(["take", "open", "release"]), clients, st.integers(0, 50)), max_size=80)


@given(steps=steps)
def test_whatever_happens_as_many_are_released_as_were_taken(steps: list[tuple[str, Client, int]]) -> None:
    permits = Permits(CAPPED)
    taken: list[tuple[Permit, Client]] = []
    state: dict[int, str] = {}
    for step, client, chosen in steps:
        if step == "take":
            state[len(taken)] = "pending"
            taken.append((permits.take(client), client))
        elif taken:
            index = chosen % len(taken)
            if step == "open":
                taken[index][0].opened()
                state[index] = "open" if state[index] == "pending" else state[index]
            else:
                taken[index][0].release()
                state[index] = "released"
        tally = Counter(state.values())
        assert counts(permits) == (tally["pending"], tally["open"])
        held = Counter(client.key for index, (_, client) in enumerate(taken) if state[index] != "released")
        assert permits.sockets.has_room(LOCAL) == (held["local"] < 3)
    for permit, _ in taken:
        permit.release()
    assert (counts(permits), len(permits.sockets)) == ((0, 0), 0)


def test_permits_for_a_worker_are_counted_by_it() -> None:
    permits = Permits(Limits(rate=None))
    taken = [permits.take(IPV4, "ws://one"), permits.take(IPV4, "ws://one"), permits.take(IPV4, "ws://two")]
    permits.take(IPV4)
    taken[0].opened()
    assert permits.workers == {"ws://one": 2, "ws://two": 1}
    for permit in taken * 2:
        permit.release()
    assert permits.workers.total() == 0


def test_place_of_a_permit_is_released_with_it_and_once() -> None:
    permits, released = Permits(CAPPED), []

    class Place:
        def release(self) -> None:
            released.append(counts(permits))

    permit = permits.take(USER, place=Place())
    permit.opened()
    assert released == []
    for _ in range(2):
        permit.release()
    assert released == [(0, 0)]


def test_caps_of_scope_fleet_are_not_held_here() -> None:
    sockets = OpenSockets(Limits(rate=None, client=ClientLimits(open=0, scope="fleet")))
    assert sockets.has_room(USER)
