"""`clients.lua` is the keyed GCRA and the open sockets of the core: Hypothesis drives both and compares every answer.

Time is an argument of a call here. All of it, and the time between two arrivals of each rate, is a whole number of
eighths of a second, which microseconds and nanoseconds hold alike.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from redis import Redis

from herdgate import AddressRules, ClientLimits, Limits
from herdgate.core.client_rates import ClientRates
from herdgate.core.clients import LOCAL, Client
from herdgate.core.permits import OpenSockets
from herdgate.core.tiers import fleet_tiers
from herdgate.stores.redis.client_store import CLIENTS
from herdgate.stores.redis.client_wire import NO_PLACE, ClientAsk, Told, cap_of, pack_call, rate_of, read_told
from herdgate.stores.redis.places import PLACE_S
from tests.redis_servers import RedisServer, redis_server

PREFIX = "{herdgate:model}"
ADDRESSES = AddressRules()
IPV4, IPV6, NEIGHBOUR = map(ADDRESSES.client, ("192.0.2.1", "2001:db8::1", "2001:db8:0:1::1"))
CLIENTS_OF_MODEL = [
    LOCAL,
    IPV4,
    IPV6,
    NEIGHBOUR,
    IPV4.identify("ann"),
    IPV6.identify("ann"),
    IPV4.identify("ÿ \U0001f600"),
]

rates = st.sampled_from([None, 0, 0.5, 2, 8])
tiers = st.builds(
    lambda rate, burst, cap: ClientLimits(rate, None if rate is None else burst, cap, scope="fleet"),
    rates,
    st.sampled_from([None, 1, 3, 5.5]),
    st.sampled_from([None, 0, 1, 3]),
)
arrivals = st.tuples(st.sampled_from(CLIENTS_OF_MODEL), st.booleans(), st.booleans())


def here(limits: Limits) -> Limits:
    """The same limits, for the core."""
    names = ("client", "anonymous", "address", "network")
    tiers = {name: getattr(limits, name) for name in names}
    return replace(limits, **{name: tier and replace(tier, scope="process") for name, tier in tiers.items()})


class Script:
    """The script on a server."""

    def __init__(self, client: Redis) -> None:
        client.flushall()
        self._client = client

    def call(self, now_s: float, asks: Sequence[ClientAsk] = (), **places: Any) -> tuple[int, list[Told]]:
        """One call: how many places were lost, and the answers."""
        text = pack_call(asks, **places, now_us=int(now_s * 1_000_000))
        reply: Any = self._client.eval(CLIENTS.text, 1, PREFIX, text)
        return read_told(reply)


class Both(RuleBasedStateMachine):
    """One fleet and one core, told the same."""

    client: Redis

    @initialize(own=tiers, anonymous=st.none() | tiers, address=tiers, network=tiers)
    def begin(
        self, own: ClientLimits, anonymous: ClientLimits | None, address: ClientLimits, network: ClientLimits
    ) -> None:
        self.limits = Limits(rate=None, client=own, anonymous=anonymous, address=address, network=network)
        self.script = Script(self.client)
        self.rates, self.sockets = ClientRates(here(self.limits)), OpenSockets(here(self.limits))
        self.held: dict[str, tuple[Client, float]] = {}
        self.now, self.made = 0.0, 0

    @rule(eighths=st.sampled_from([1, 2, 4, 12, 40, 79, 80, 81, 800]))
    def pass_time(self, eighths: int) -> None:
        self.now += eighths / 8
        for place, (client, over) in list(self.held.items()):
            if over <= self.now:
                del self.held[place]
                self.sockets.remove(client)

    @rule(crowd=st.lists(arrivals, min_size=1, max_size=12))
    def arrive(self, crowd: list[tuple[Client, bool, bool]]) -> None:
        """Clients, whether they are charged, and whether they take a place or only look."""
        places = [self._place() if stays else NO_PLACE for _, _, stays in crowd]
        asks = [
            self._ask(client, place, charge=charge) for (client, charge, _), place in zip(crowd, places, strict=True)
        ]
        expected = [
            self._expected(client, place, charge=charge)
            for (client, charge, _), place in zip(crowd, places, strict=True)
        ]
        assert self.script.call(self.now, asks) == (0, expected)

    @precondition(lambda self: self.held)
    @rule(pick=st.integers(0, 1_000), times=st.integers(1, 3))
    def leave(self, pick: int, times: int) -> None:
        place = sorted(self.held)[pick % len(self.held)]
        client, _ = self.held.pop(place)
        self.sockets.remove(client)
        self.script.call(self.now, drop=[(place, self._sets(client)), ("nobody's", self._sets(client))] * times)

    @rule(client=st.sampled_from(CLIENTS_OF_MODEL))
    def take_beyond_the_caps(self, client: Client) -> None:
        place = self._place()
        self._hold(place, client)
        self.script.call(self.now, put=[(place, self._sets(client))])

    @rule()
    def renew(self) -> None:
        self.pass_time(1)  # two renewals never come at the same moment
        for place, (client, _) in self.held.items():
            self.held[place] = (client, self.now + PLACE_S)
        places = [(place, self._sets(client)) for place, (client, _) in self.held.items()]
        assert self.script.call(self.now, renew=places)[0] == 0

    def teardown(self) -> None:
        assert all(self.client.ttl(key) > 0 for key in self.client.scan_iter())

    def _place(self) -> str:
        self.made += 1
        return f"place {self.made}"

    def _hold(self, place: str, client: Client) -> None:
        self.held[place] = (client, self.now + PLACE_S)
        self.sockets.add(client)

    def _sets(self, client: Client) -> list[str]:
        return [cap.name for tier in fleet_tiers(self.limits, client) if (cap := cap_of("r", tier))]

    def _ask(self, client: Client, place: str, *, charge: bool) -> ClientAsk:
        tiers = fleet_tiers(self.limits, client)
        rates = [rate for tier in tiers if (rate := rate_of("r", tier))]
        return ClientAsk(place, rates if charge else [], [cap for tier in tiers if (cap := cap_of("r", tier))])

    def _expected(self, client: Client, place: str, *, charge: bool) -> Told:
        if charge and (over := self.rates.wait(client, self.now)):
            wait_s, rate = over
            return Told(over=[tier for tier, _ in self.rates._of(client)].index(rate), wait_s=wait_s)
        if charge:
            self.rates.charge(client, self.now)
        if not self.sockets.has_room(client):
            return Told(is_full=True)
        if place:
            self._hold(place, client)
        return Told()


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with redis_server() as redis:
        yield redis


@pytest.fixture
def client(server: RedisServer) -> Iterator[Redis]:
    with ExitStack() as stack:
        yield stack.enter_context(Redis.from_url(server.url))


def test_script_and_core_give_the_same_answers(client: Redis) -> None:
    machine = type("Machine", (Both,), {"client": client})
    checks = list(HealthCheck)
    run_state_machine_as_test(
        machine,
        settings=settings(max_examples=100, stateful_step_count=30, deadline=None, suppress_health_check=checks),
    )


CAPPED = Limits(rate=None, client=ClientLimits(open=1, scope="fleet"))
OF_IPV4 = [cap for tier in fleet_tiers(CAPPED, IPV4) if (cap := cap_of("r", tier))]
SETS = [cap.name for cap in OF_IPV4]


def test_place_of_a_stalled_holder_goes_to_another_and_is_not_released_by_it(client: Redis) -> None:
    """Case 5.17: whoever was reaped can neither free another's place, nor take one without being counted."""
    script = Script(client)
    take = [ClientAsk(name, [], OF_IPV4) for name in ("one", "two", "three")]
    assert script.call(0, take[:1]) == (0, [Told()])
    assert script.call(PLACE_S, take[1:2]) == (0, [Told()])
    script.call(PLACE_S, drop=[("one", SETS)])
    assert script.call(PLACE_S, take[2:]) == (0, [Told(is_full=True)])
    assert script.call(PLACE_S, take[2:], renew=[("one", SETS)]) == (1, [Told(is_full=True)]), "it is told, and back"
    script.call(PLACE_S, drop=[("two", SETS)])
    assert script.call(PLACE_S, take[2:]) == (0, [Told(is_full=True)]), "it counts again"


def test_place_goes_on_from_its_last_renewal(client: Redis) -> None:
    script = Script(client)
    one, two = (ClientAsk(name, [], OF_IPV4) for name in ("one", "two"))
    assert script.call(0, [one]) == (0, [Told()])
    assert script.call(9, renew=[("one", SETS)]) == (0, [])
    assert script.call(9 + PLACE_S - 0.001, [two]) == (0, [Told(is_full=True)])
    assert script.call(9 + PLACE_S, [two]) == (0, [Told()])


def test_releasing_what_was_never_taken_adds_no_room_and_leaves_no_key(client: Redis) -> None:
    """Case 5.5."""
    script = Script(client)
    script.call(0, drop=[("nobody's", SETS)] * 3)
    assert client.keys() == []
    answers = script.call(0, [ClientAsk(name, [], OF_IPV4) for name in ("one", "two")])[1]
    assert [told.is_full for told in answers] == [False, True]


def test_clock_is_that_of_the_fleet(client: Redis) -> None:
    """A step of the server's clock since the last heartbeat is a second at most, and never backwards."""
    client.flushall()
    seconds, _ = client.time()
    scores = []
    for step_s in (0, -3_600, 3_600):
        client.hset(f"{PREFIX}:calendar", mapping={"clock": "100", "time": f"{seconds - step_s}"})
        client.eval(CLIENTS.text, 1, PREFIX, pack_call([ClientAsk(f"{step_s}", [], [])], put=[(f"{step_s}", ["x"])]))
        scores.append(client.zscore(f"{PREFIX}:open:x", f"{step_s}"))
    now, behind, ahead = ((score or 0) / 1e6 - PLACE_S for score in scores)
    assert 100 <= now <= 101
    assert (behind, ahead) == (100, 101)
