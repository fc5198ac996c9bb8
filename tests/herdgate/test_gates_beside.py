"""Two gates, one calendar: routes with limits of their own that admit one rate together."""

from herdgate import ClientLimits, Gate, Limits
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import LOCAL
from tests.at_once import at_once

SECRET = "sixteen random bytes"


def admitted(gate: Gate, arrivals: int) -> int:
    return sum(isinstance(at_once(gate.decide(Arrival(LOCAL))), Admitted) for _ in range(arrivals))


def test_gates_beside_each_other_admit_one_rate_together() -> None:
    now = [0.0]
    chat = Gate(Limits(rate=10), route="chat", clock=lambda: now[0])
    feed = Gate(Limits(rate=10), route="feed", beside=chat, clock=lambda: now[0])

    assert admitted(chat, 6) + admitted(feed, 100) == 10
    feed.set_rate(5)
    now[0] = 1.0
    assert admitted(feed, 100) + admitted(chat, 100) == 5
    assert chat.snapshot().rate == feed.snapshot().rate == 5


def test_gates_beside_each_other_keep_their_own_caps_and_counts() -> None:
    chat = Gate(Limits(rate=100), route="chat")
    feed = Gate(Limits(rate=100, client=ClientLimits(open=2)), route="feed", beside=chat)

    assert (admitted(chat, 5), admitted(feed, 5)) == (5, 2)
    assert feed.snapshot().denied == {"client_open": 3}
    assert chat.snapshot().denied == {}


def test_a_ticket_of_one_route_is_nothing_to_another() -> None:
    now = [0.0]
    chat = Gate(Limits(rate=1, burst=1), route="chat", secrets=[SECRET], clock=lambda: now[0])
    feed = Gate(Limits(rate=1, burst=1), route="feed", secrets=[SECRET], beside=chat, clock=lambda: now[0])
    assert admitted(chat, 1) == 1
    first = at_once(chat.decide(Arrival(LOCAL)))
    assert isinstance(first, Denied)

    answer = at_once(feed.decide(Arrival(LOCAL, first.ticket)))

    assert isinstance(answer, Denied)
    assert answer.ticket != first.ticket
