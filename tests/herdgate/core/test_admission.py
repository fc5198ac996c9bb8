"""One decision in two halves: the order of the steps, and what each of them takes or leaves."""

import random
from dataclasses import dataclass, field, replace

import pytest

from herdgate.core.admission import AdmissionControl, keep_share
from herdgate.core.answers import NOBODY, STATUS, Admitted, Arrival, Denied, LateReason, Queued, Quota
from herdgate.core.calendar import Calendar
from herdgate.core.clients import LOCAL, Client
from herdgate.core.errors import ConfigurationError
from herdgate.core.grant import Grant
from herdgate.core.limits import ClientLimits, Limits
from herdgate.core.tickets import Ticket, TicketSigner
from herdgate.stores.memory import MemoryStore

SEED = 1
ORIGIN_MS = 1_700_000_000_000
SIGNER = TicketSigner([b"a secret for tests only"])


def client(number: int, *, network: int | None = None) -> Client:
    key = f"ip:192.0.2.{number}"
    return Client(key, key, None if network is None else f"net:{network}")


A, B, C = client(1), client(2), client(3)


@dataclass
class Site:
    """A gate's parts with a clock to set."""

    limits: Limits
    now: float = 0.0
    seed: int = SEED
    store: MemoryStore = field(init=False)
    control: AdmissionControl = field(init=False)

    def __post_init__(self) -> None:
        draw = random.Random(self.seed).random
        self.store = MemoryStore(self.limits, draw, self.now, ORIGIN_MS)
        self.control = AdmissionControl(self.limits, [SIGNER], self.store, draw)

    def screen(self, who: Client = A, ticket: str | None = None, *, origin_allowed: bool = True) -> Denied | Queued:
        return self.control.screen(Arrival(who, ticket, origin_allowed), self.now)

    def settle(self, queued: Denied | Queued) -> Admitted | Denied:
        assert isinstance(queued, Queued)
        return self.control.settle(queued, self.store.grant(queued, self.now), self.now)

    def decide(self, who: Client = A, ticket: str | None = None, *, origin_allowed: bool = True) -> Admitted | Denied:
        screened = self.screen(who, ticket, origin_allowed=origin_allowed)
        return screened if isinstance(screened, Denied) else self.settle(screened)

    def admit(self, who: Client = A, ticket: str | None = None) -> Admitted:
        verdict = self.decide(who, ticket)
        assert isinstance(verdict, Admitted), verdict
        return verdict

    def deny(self, who: Client = A, ticket: str | None = None, *, origin_allowed: bool = True) -> Denied:
        verdict = self.decide(who, ticket, origin_allowed=origin_allowed)
        assert isinstance(verdict, Denied)
        return verdict

    def reserve(self, who: Client = A, ticket: str | None = None) -> Denied | str:
        screened = self.screen(who, ticket)
        if isinstance(screened, Denied):
            return screened
        return self.control.settle_reserved(screened, self.store.reserve(screened, self.now), self.now)

    @property
    def tokens(self) -> float:
        tokens = self.store.calendar.tokens
        assert tokens is not None
        return tokens

    @property
    def held(self) -> int:
        return self.control.permits.pending + self.control.permits.open

    def empty(self) -> None:
        """Take every token, past admission control."""
        self.store.calendar.advance(self.now)
        while self.tokens >= 1:
            assert self.store.grant(Queued(LOCAL, None, True), self.now).admitted


def read(text: str | None) -> Ticket:
    ticket = SIGNER.read(text or "")
    assert ticket is not None
    return ticket


def slot(text: str | None) -> float:
    return (read(text).at_ms - ORIGIN_MS) / 1000


def firm_slot(site: Site, who: Client) -> str:
    """Be refused, come at the hint, be refused again: the text of the firm slot. Leaves no token."""
    site.empty()
    hint = site.deny(who).ticket
    site.now = slot(hint)
    site.empty()
    denied = site.deny(who, hint)
    assert denied.firm
    assert denied.ticket is not None
    return denied.ticket


def test_admits_with_a_permit_while_there_are_tokens() -> None:
    site = Site(Limits(rate=10, burst=2))
    permits = [site.admit().permit, site.admit().permit]
    assert (site.held, site.control.admitted.total()) == (2, 2)
    denied = site.deny()
    assert denied.reason == "rate"
    assert denied.retry_s == pytest.approx(0.1)
    assert not denied.firm
    assert read(denied.ticket).kind == "hint"
    assert site.control.denied == {"rate": 1}
    for permit in permits:
        permit.release()
    assert site.held == 0


def test_every_reason_has_a_status() -> None:
    assert STATUS == {
        "draining": 503,
        "origin": 403,
        "shed": 503,
        "client_rate": 429,
        "client_open": 429,
        "full": 503,
        "rate": 429,
        "auth": 401,
        "auth_busy": 503,
        "no_owner": 503,
        "upstream": 502,
    }


ALL_AGAINST = Limits(
    rate=0,
    max_open=0,
    client=ClientLimits(rate=0, open=0),
    admit_fraction=0,
)


def test_most_specific_reason_comes_first() -> None:
    draining = Site(ALL_AGAINST)
    draining.control.state = "draining"
    assert draining.deny(origin_allowed=False).reason == "draining"
    assert Site(ALL_AGAINST).deny(origin_allowed=False).reason == "origin"
    limits, reasons = ALL_AGAINST, []
    for way_out in (
        {"admit_fraction": 1},
        {"client": ClientLimits(open=0)},
        {"client": ClientLimits()},
        {"max_open": None},
        {"rate": 1},
    ):
        reasons.append(Site(limits).deny().reason)
        limits = replace(limits, **way_out)
    assert reasons == ["shed", "client_rate", "client_open", "full", "rate"]
    Site(limits).admit()


def cost(site: Site) -> tuple[float, int, int, int]:
    """What an arrival can consume: tokens, sockets of its client, permits, keys of the rate tables."""
    return site.tokens, len(site.control.permits.sockets), site.held, site.control.client_keys


def test_draining_takes_no_token_and_no_permit() -> None:
    site = Site(Limits(rate=10, client=ClientLimits(open=1)))
    site.control.state = "draining"
    before = cost(site)
    for _ in range(20):
        assert site.deny().reason == "draining"
    assert cost(site) == before
    site.control.state = "open"
    site.admit()


def test_draining_gives_no_more_tickets_than_a_client_may_come() -> None:
    site = Site(Limits(rate=10, client=ClientLimits(rate=0.01, burst=3)))
    site.control.state = "draining"
    denials = [site.deny() for _ in range(20)]
    assert [denied.ticket is not None for denied in denials] == [True] * 3 + [False] * 17
    assert {denied.reason for denied in denials} == {"draining"}
    assert all(30 <= (denied.retry_s or 0) <= 60 for denied in denials[3:])


def test_due_ticket_under_full_is_exchanged_once_and_then_charged() -> None:
    site = Site(Limits(rate=10, burst=1, max_open=1, client=ClientLimits(rate=0.001, burst=1)))
    firm = firm_slot(site, A)
    site.now = slot(firm)
    site.control.permits.take(B)
    assert site.deny(A, firm).reason == "full"
    assert site.deny(A, firm).reason == "client_rate"


def test_arrival_that_was_held_is_not_counted_twice() -> None:
    site = Site(Limits(rate=10, burst=1, client=ClientLimits(rate=0.001, burst=1)))
    site.empty()
    ticket = site.deny(A).ticket
    screened = site.control.screen(Arrival(A, ticket, counted=True), site.now)
    assert isinstance(screened, Queued), "early, and yet not over its rate"


def test_wrong_origin_consumes_nothing_and_is_never_told_to_come_back() -> None:
    site = Site(Limits(rate=10, client=ClientLimits(rate=0.01, burst=1, open=1)))
    before = cost(site)
    for _ in range(20):
        assert site.deny(origin_allowed=False) == Denied("origin")
    assert cost(site) == before
    site.admit()


def test_shed_consumes_nothing() -> None:
    site = Site(Limits(rate=10, client=ClientLimits(rate=0.01, burst=1, open=1)))
    site.control.set_admit_fraction(0)
    before = cost(site)
    for _ in range(20):
        assert site.deny().reason == "shed"
    assert cost(site) == before
    site.control.set_admit_fraction(1)
    site.admit()


def test_client_over_its_rate_consumes_nothing_further() -> None:
    site = Site(Limits(rate=10, client=ClientLimits(rate=1, burst=1, open=9)))
    site.admit()
    before = cost(site)
    waits = [site.deny() for _ in range(20)]
    assert {denied.reason for denied in waits} == {"client_rate"}
    assert all(1 <= (denied.retry_s or 0) <= 1.1 for denied in waits)
    assert cost(site) == before
    site.now = 1.0
    site.admit()


def test_client_with_too_many_sockets_consumes_no_permit_and_no_token() -> None:
    site = Site(Limits(rate=10, client=ClientLimits(open=1)))
    permit = site.admit().permit
    before = cost(site)
    assert all(site.deny().reason == "client_open" for _ in range(20))
    assert cost(site) == before
    permit.release()
    site.admit()


def test_full_consumes_no_token() -> None:
    site = Site(Limits(rate=10, max_open=1))
    permit = site.admit().permit
    before = cost(site)
    assert all(site.deny(B).reason == "full" for _ in range(20))
    assert cost(site) == before
    permit.release()
    site.admit(B)


def test_calendar_s_refusal_consumes_no_permit() -> None:
    site = Site(Limits(rate=10, burst=1, max_pending=5, client=ClientLimits(open=5)))
    site.admit()
    before = cost(site)
    assert all(site.deny().reason == "rate" for _ in range(20))
    assert cost(site) == before


def test_client_refused_by_one_rate_is_charged_for_none() -> None:
    limits = Limits(rate=100, client=ClientLimits(rate=0.1, burst=2), address=ClientLimits(rate=0.1, burst=3))
    site = Site(limits)
    ann, bob = A.identify("ann"), A.identify("bob")
    site.admit(ann)
    site.admit(ann)
    for _ in range(20):
        assert site.deny(ann).reason == "client_rate"
    site.admit(bob)
    assert site.deny(bob).reason == "client_rate", "three from this address"
    site.admit(B.identify("bob"))


def test_rates_hold_for_key_address_and_network() -> None:
    site = Site(Limits(rate=100, network=ClientLimits(rate=0.1, burst=3)))
    for number in range(3):
        site.admit(client(number, network=7))
    assert site.deny(client(9, network=7)).reason == "client_rate"
    site.admit(client(9, network=8))
    site.admit(client(9))
    assert len(site.control._rates) == 2


def test_anonymous_clients_have_limits_of_their_own_where_set() -> None:
    site = Site(Limits(rate=100, client=ClientLimits(rate=0.1, burst=3), anonymous=ClientLimits(rate=0.1, burst=1)))
    site.admit(A)
    assert site.deny(A).reason == "client_rate"
    for _ in range(3):
        site.admit(A.identify("ann"))
    assert site.deny(A.identify("ann")).reason == "client_rate"
    common = Site(Limits(rate=100, client=ClientLimits(rate=0.1, burst=1)))
    common.admit(A)
    assert common.deny(A).reason == "client_rate"
    free = Site(Limits(rate=100, client=ClientLimits(rate=0.1, burst=1), anonymous=ClientLimits()))
    for _ in range(5):
        free.admit(A)
    assert len(free.control._rates) == 0


def test_refusal_by_a_rate_names_the_quota() -> None:
    site = Site(Limits(rate=100, client=ClientLimits(rate=0.5, burst=3)))
    for _ in range(3):
        site.admit()
    assert site.deny().quota == Quota(3, 6)
    never = Site(Limits(rate=100, client=ClientLimits(rate=0)))
    denied = never.deny()
    assert denied.quota == Quota(1, 0)
    assert denied.retry_s is not None
    assert 600 <= denied.retry_s <= 660


@pytest.mark.parametrize("cap", [1, 3])
def test_cap_of_n_admits_exactly_n(cap: int) -> None:
    limits = [
        (Limits(rate=1000, max_open=cap), "full"),
        (Limits(rate=1000, max_pending=cap), "full"),
        (Limits(rate=1000, client=ClientLimits(open=cap)), "client_open"),
        (Limits(rate=1000, address=ClientLimits(open=cap)), "client_open"),
        (Limits(rate=1000, client=ClientLimits(rate=0.001, burst=cap)), "client_rate"),
        (Limits(rate=0.001, burst=cap), "rate"),
    ]
    for limit, reason in limits:
        site = Site(limit)
        verdicts = [site.decide() for _ in range(10)]
        assert [isinstance(verdict, Admitted) for verdict in verdicts] == [True] * cap + [False] * (10 - cap), limit
        assert {verdict.reason for verdict in verdicts if isinstance(verdict, Denied)} == {reason}


def test_cap_of_0_admits_nobody() -> None:
    for limits in (
        Limits(rate=1000, max_open=0),
        Limits(rate=1000, max_pending=0),
        Limits(rate=1000, client=ClientLimits(open=0)),
        Limits(rate=1000, client=ClientLimits(rate=0)),
        Limits(rate=1000, admit_fraction=0),
        Limits(rate=0),
    ):
        site = Site(limits)
        assert not any(isinstance(site.decide(client(number)), Admitted) for number in range(50)), limits
        assert site.held == 0


def test_none_is_no_limit() -> None:
    site = Site(Limits(rate=None))
    for number in range(5_000):
        site.admit(client(number % 3))
    assert site.held == 5_000
    assert site.control.client_keys == 6, "three clients and their addresses hold sockets"


def test_open_sockets_leave_room_for_set_ups() -> None:
    site = Site(Limits(rate=1000, max_pending=1))
    permit = site.admit().permit
    assert site.deny().reason == "full"
    permit.opened()
    site.admit()


def test_draining_tells_when_to_come_back_whatever_the_bucket_holds() -> None:
    site = Site(Limits(rate=1000))
    site.control.state = "draining"
    told = [site.deny(client(number)) for number in range(300)]
    waits = [denied.retry_s or 0 for denied in told]
    assert 1 <= min(waits) < 1.05, f"seed {SEED}"
    assert 1.95 < max(waits) <= 2, f"seed {SEED}"
    assert {read(denied.ticket).kind for denied in told} == {"hint"}
    assert site.tokens == 1000


def arrive_at(site: Site, worker: str | None, who: Client = A) -> Admitted | Denied:
    screened = site.control.screen(Arrival(who, worker=worker), site.now)
    return screened if isinstance(screened, Denied) else site.settle(screened)


def test_nobody_to_take_it_consumes_no_token_and_tells_a_hint_like_full() -> None:
    site = Site(Limits(rate=1000))
    told = [arrive_at(site, NOBODY, client(number)) for number in range(300)]
    assert {denied.reason for denied in told if isinstance(denied, Denied)} == {"no_owner"}
    assert min(denied.retry_s or 0 for denied in told if isinstance(denied, Denied)) >= 1
    assert (site.tokens, site.held) == (1000, 0)
    assert isinstance(arrive_at(site, None), Admitted)


def test_nobody_to_take_it_is_said_before_full() -> None:
    refused = arrive_at(Site(Limits(rate=10, max_open=0)), NOBODY)
    assert isinstance(refused, Denied)
    assert refused.reason == "no_owner"


def test_an_arrival_for_one_worker_has_a_permit_for_it_which_may_move() -> None:
    site = Site(Limits(rate=10))
    admitted = arrive_at(site, "ws://one")
    assert isinstance(admitted, Admitted)
    permits = site.control.permits
    assert (admitted.permit.worker, permits.workers) == ("ws://one", {"ws://one": 1})
    admitted.permit.move("ws://two")
    assert (admitted.permit.worker, +permits.workers) == ("ws://two", {"ws://two": 1})
    admitted.permit.release()
    admitted.permit.move("ws://three")
    assert +permits.workers == {}


def test_a_permit_for_none_in_particular_does_not_move() -> None:
    site = Site(Limits(rate=10))
    permit = site.admit().permit
    permit.move("ws://one")
    assert (permit.worker, +site.control.permits.workers) == (None, {})


@pytest.mark.parametrize("kind", ["hint", "firm"])
def test_an_invitation_is_a_ticket_that_admits_when_its_time_comes(kind: str) -> None:
    site = Site(Limits(rate=10, burst=1))
    site.empty()
    grant = site.store.defer(site.now) if kind == "firm" else site.store.hint(site.now)
    invitation = site.control.invite(grant, 0)
    assert read(invitation.ticket).kind == kind
    assert dict(site.control.denied) == {}, "nobody was denied"
    site.now = slot(invitation.ticket)
    assert invitation.retry_s == pytest.approx(site.now, abs=0.001)
    site.admit(A, invitation.ticket)


def test_an_invitation_without_a_rate_has_no_ticket() -> None:
    site = Site(Limits(rate=None))
    assert site.control.invite(site.store.defer(site.now), 0).ticket is None


@pytest.mark.parametrize(("reason", "told_s"), [("auth_busy", (1.0, 1.26)), ("upstream", (0.0, 0.002))])
def test_a_busy_authentication_is_left_alone_for_a_second_at_least(
    reason: LateReason, told_s: tuple[float, float]
) -> None:
    site = Site(Limits(rate=1_000, burst=1))
    denied = site.control.refuse(reason, site.store.defer(site.now), 0)
    assert (denied.reason, denied.firm, read(denied.ticket).kind) == (reason, True, "firm")
    assert denied.retry_s is not None
    assert told_s[0] <= denied.retry_s <= told_s[1]


def test_a_refusal_behind_the_gate_without_a_grant_is_for_good() -> None:
    site = Site(Limits(rate=10))
    denied = site.control.refuse("auth", None, 0)
    assert (denied.reason, denied.retry_s, denied.ticket) == ("auth", None, None)


def test_full_tells_a_hint_and_at_least_a_second_or_two() -> None:
    site = Site(Limits(rate=1000, max_open=0))
    told = [site.deny(client(number)) for number in range(300)]
    waits = [denied.retry_s or 0 for denied in told]
    assert 1 <= min(waits) < 1.05, f"seed {SEED}"
    assert 1.95 < max(waits) <= 2, f"seed {SEED}"
    assert {read(denied.ticket).kind for denied in told} == {"hint"}
    assert site.tokens == 1000


def test_hints_of_a_full_gate_are_in_line_with_those_of_the_calendar() -> None:
    site = Site(Limits(rate=10, max_open=0))
    waits = [site.deny(client(number)).retry_s or 0 for number in range(100)]
    assert waits[30:] == pytest.approx([place / 10 for place in range(31, 101)], abs=0.002)


def test_rate_of_zero_pauses_firm_slots_that_are_due_and_keeps_them() -> None:
    site = Site(Limits(rate=10, burst=1))
    firm = firm_slot(site, A)
    site.now = slot(firm)
    site.store.set_rate(0, site.now)
    for site.now in (slot(firm), 100.0, 1_000.0):
        denied = site.deny(A, firm)
        assert denied.reason == "rate"
        assert denied.ticket == firm
        assert denied.firm
        assert 5 <= (denied.retry_s or 0) <= 10
    site.store.set_rate(10, site.now)
    site.now += 0.01
    site.admit(A, firm)


def test_first_rate_of_zero_may_be_raised_live() -> None:
    site = Site(Limits(rate=0))
    waits = [site.deny(client(number)).retry_s or 0 for number in range(50)]
    assert all(5 <= wait <= 10 for wait in waits)
    assert len(set(waits)) == 50
    site.store.set_rate(10, 0.0)
    site.now = 1.0
    assert sum(isinstance(site.decide(), Admitted) for _ in range(30)) == 10


def test_low_rate_is_told_in_short_waits_with_the_same_ticket() -> None:
    site = Site(Limits(rate=100, burst=1))
    site.empty()
    tickets = [site.deny(client(number)).ticket for number in range(200)]
    site.store.set_rate(1, 0.0)
    told = [site.deny(A, ticket) for ticket in tickets[50:]]
    assert [denied.ticket for denied in told] == tickets[50:]
    waits = [denied.retry_s or 0 for denied in told]
    assert all(5 <= wait <= 10 for wait in waits)
    assert len(set(waits)) == len(waits), "jittered"


def test_beyond_the_cap_hints_come_from_its_upper_half() -> None:
    site = Site(Limits(rate=1, burst=1))
    site.empty()
    waits = [site.deny(client(number % 250)).retry_s or 0 for number in range(130)]
    assert waits[:30] == pytest.approx(list(range(1, 31)), abs=0.001)
    assert all(15 <= wait <= 30.001 for wait in waits[30:])
    assert len(set(waits[30:])) >= 95, f"seed {SEED}"


def test_beyond_the_horizon_there_is_no_ticket() -> None:
    site = Site(Limits(rate=1, burst=1, horizon_s=100))
    site.empty()
    told = [site.deny(client(number % 250)) for number in range(200)]
    assert all(denied.ticket for denied in told[:100])
    for denied in told[100:]:
        assert (denied.reason, denied.ticket, denied.firm) == ("rate", None, False)
        assert denied.retry_s is not None
        assert 100 <= denied.retry_s <= 200


def test_early_ticket_is_given_back_as_it_is() -> None:
    site = Site(Limits(rate=1, burst=1))
    site.empty()
    first = site.deny()
    site.now = 0.25
    again = site.deny(A, first.ticket)
    assert (again.reason, again.ticket, again.firm) == ("rate", first.ticket, False)
    assert again.retry_s == pytest.approx(0.75)
    assert site.deny(B, first.ticket).ticket == first.ticket, "a ticket says nothing about who holds it"


def test_ticket_that_is_not_ours_is_as_none() -> None:
    site = Site(Limits(rate=1, burst=2))
    other = TicketSigner([b"another secret for tests"]).sign(Ticket("firm", ORIGIN_MS, 1, 1))
    assert isinstance(site.screen(A, other), Queued)
    for text in (other, "", "1.", "1." + "A" * 34, "é" * 36, "x" * 5_000):
        assert site.screen(A, text) == Queued(A, None, True)


def test_firm_slot_is_admitted_while_everybody_else_is_refused() -> None:
    site = Site(Limits(rate=10, burst=1))
    firm = firm_slot(site, A)
    site.now = slot(firm)
    site.empty()
    assert site.deny(B).reason == "rate"
    site.admit(A, firm)
    assert site.deny(A, firm).reason == "rate", "once"


def test_firm_slot_is_refused_where_its_client_may_not_come_in() -> None:
    limits = Limits(rate=10, burst=1, max_open=1, client=ClientLimits(open=1))
    for reason in ("draining", "shed", "client_open", "full"):
        site = Site(limits)
        firm = firm_slot(site, A)
        site.now = slot(firm)
        if reason == "draining":
            site.control.state = "draining"
        elif reason == "shed":
            site.control.set_admit_fraction(0)
        else:
            site.control.permits.take(A if reason == "client_open" else B)
        assert site.deny(A, firm).reason == reason
        site.control.state = "open"
        site.control.set_admit_fraction(1)
        if reason == "shed":
            site.admit(A, firm)


def test_due_ticket_was_paid_when_it_was_issued() -> None:
    site = Site(Limits(rate=10, burst=1, client=ClientLimits(rate=0.001, burst=1)))
    site.empty()
    ticket = site.deny(A).ticket
    assert site.deny(A, ticket).reason == "client_rate", "early, so it counts"
    site.now = slot(ticket)
    site.empty()
    firm = site.deny(A, ticket)
    assert firm.reason == "rate"
    assert firm.firm
    site.now = slot(firm.ticket)
    site.admit(A, firm.ticket)


def test_spent_ticket_is_charged_when_it_is_found_out() -> None:
    site = Site(Limits(rate=1000, client=ClientLimits(rate=0.001, burst=2)))
    ticket = SIGNER.sign(Ticket("hint", ORIGIN_MS, 77, 5))
    site.now = 0.5
    site.admit(A, ticket)
    site.admit(A, ticket)
    site.admit(A, ticket)
    tokens = site.tokens
    denied = site.deny(A, ticket)
    assert denied.reason == "client_rate"
    assert denied.quota == Quota(2, 2000)
    assert site.tokens == tokens, "the token taken for it is back"
    assert site.held == 3


def test_spent_ticket_is_charged_when_there_is_no_token_either() -> None:
    site = Site(Limits(rate=10, burst=1, client=ClientLimits(rate=0.001, burst=1)))
    ticket = SIGNER.sign(Ticket("hint", ORIGIN_MS, 77, 5))
    site.admit(A, ticket)
    assert site.deny(A, ticket).reason == "rate"
    assert site.deny(A, ticket).reason == "client_rate"


def test_ticket_after_its_grace_is_charged_as_a_newcomer() -> None:
    site = Site(Limits(rate=1000, client=ClientLimits(rate=0.001, burst=1)))
    ticket = SIGNER.sign(Ticket("hint", ORIGIN_MS, 77, 5))
    site.now = 61.0
    site.admit(A, ticket)
    assert site.deny(A, ticket).reason == "client_rate"


def test_clients_shed_are_the_same_on_every_gate() -> None:
    sites = [Site(Limits(rate=None, admit_fraction=0.3), seed=seed) for seed in range(3)]
    admitted = [
        {number for number in range(2_000) if isinstance(site.decide(client(number)), Admitted)} for site in sites
    ]
    assert admitted[0] == admitted[1] == admitted[2]
    assert len(admitted[0]) == pytest.approx(600, abs=60)
    more = Site(Limits(rate=None, admit_fraction=0.6))
    edge = Site(Limits(rate=None, admit_fraction=keep_share(A.key)))
    assert edge.deny(A).reason == "shed", "a key stands in [0, 1), the fraction is the first that is out"
    assert all(isinstance(more.decide(client(number)), Admitted) for number in admitted[0]), "and they stay in"


def test_share_of_a_key_is_fixed() -> None:
    assert keep_share("ip:192.0.2.1") == keep_share("ip:192.0.2.1")
    assert keep_share("ip:192.0.2.1") == pytest.approx(0.57365, abs=1e-5)
    assert all(0 <= keep_share(f"id:{number}") < 1 for number in range(1_000))
    assert 0 <= keep_share("id:\udcff") < 1, "names that are no valid text"


@pytest.mark.parametrize("fraction", [-0.1, 1.1, float("nan"), None, "1"])
def test_admit_fraction_must_be_a_share(fraction: float) -> None:
    control = Site(Limits(rate=1)).control
    with pytest.raises(ConfigurationError, match="admit_fraction"):
        control.set_admit_fraction(fraction)
    assert control.admit_fraction == 1


def test_retry_times_differ_for_every_client() -> None:
    sites = {
        "draining": Site(Limits(rate=1000)),
        "shed": Site(Limits(rate=1000, admit_fraction=0)),
        "client_rate": Site(Limits(rate=1000, client=ClientLimits(rate=0))),
        "client_open": Site(Limits(rate=1000, client=ClientLimits(open=0))),
        "full": Site(Limits(rate=1000, max_open=0)),
        "rate": Site(Limits(rate=50, burst=1)),
    }
    sites["draining"].control.state = "draining"
    sites["rate"].empty()
    ranges = {"draining": (1, 2), "shed": (30, 60), "client_rate": (600, 660), "client_open": (5, 10), "full": (1, 2)}
    for reason, site in sites.items():
        told = [site.deny(client(number)) for number in range(100)]
        waits = [denied.retry_s or 0 for denied in told]
        assert {denied.reason for denied in told} == {reason}
        assert len(set(waits)) >= 90, f"{reason}: tickets are of whole milliseconds, seed {SEED}"
        low, high = ranges.get(reason, (0, 2.001))
        assert all(low <= wait <= high for wait in waits), reason
        assert max(waits) - min(waits) > 0.8 * (high - low), f"{reason}: spread over the range, seed {SEED}"


def test_caps_hold_for_arrivals_screened_together() -> None:
    for limits, reason, low, high in (
        (Limits(rate=10, max_open=1), "full", 1, 2),
        (Limits(rate=10, max_pending=1), "full", 1, 2),
        (Limits(rate=10, client=ClientLimits(open=1)), "client_open", 5, 10),
    ):
        site = Site(limits)
        queued = [site.screen(), site.screen(), site.screen()]
        verdicts = [site.settle(each) for each in queued]
        assert [isinstance(verdict, Admitted) for verdict in verdicts] == [True, False, False]
        for verdict in verdicts[1:]:
            assert isinstance(verdict, Denied)
            assert verdict.reason == reason
            assert low <= (verdict.retry_s or 0) <= high
        assert site.tokens == 9, "what they were granted is back"
        assert (site.held, site.control.admitted.total()) == (1, 1)


def test_arrival_screened_before_the_gate_was_full_takes_no_permit_then() -> None:
    site = Site(Limits(rate=10, burst=1, max_open=1))
    queued = site.screen(A)
    site.admit(B)
    assert isinstance(queued, Queued)
    assert queued.reason is None
    denied = site.settle(queued)
    assert isinstance(denied, Denied)
    assert denied.reason == "rate"
    assert site.tokens == 0


def test_reserved_arrival_comes_in_with_its_ticket() -> None:
    site = Site(Limits(rate=10, burst=1, client=ClientLimits(rate=0.001, burst=1)))
    text = site.reserve()
    assert isinstance(text, str)
    assert read(text).kind == "firm"
    assert (site.held, site.control.admitted.total()) == (0, 0)
    assert site.deny(B).reason == "rate"
    site.now = 0.3
    assert site.reserve(A, text) == text, "asked again: the same slot, free of charge"
    site.admit(A, text)


def test_reserved_arrival_is_refused_like_any_other() -> None:
    site = Site(Limits(rate=10, burst=1, client=ClientLimits(rate=1, burst=1)))
    site.empty()
    denied = site.reserve()
    assert isinstance(denied, Denied)
    assert denied.reason == "rate"
    again = site.reserve()
    assert isinstance(again, Denied)
    assert again.reason == "client_rate"
    full = Site(Limits(rate=10, max_open=0)).reserve()
    assert isinstance(full, Denied)
    assert full.reason == "full"
    assert Site(Limits(rate=None)).reserve() == "", "no calendar, no ticket"


def test_reserved_arrival_that_was_overtaken_leaves_its_token_to_others() -> None:
    site = Site(Limits(rate=1, burst=2, max_open=1))
    queued = site.screen(A)
    assert isinstance(queued, Queued)
    site.admit(B).permit.opened()
    denied = site.control.settle_reserved(queued, site.store.reserve(queued, site.now), site.now)
    assert isinstance(denied, Denied)
    assert denied.reason == "full"
    assert site.tokens == 0
    site.now = 1.7
    site.store.calendar.advance(site.now)
    assert site.tokens == 2, "its slot is over"


def test_counts_are_those_of_the_verdicts() -> None:
    site = Site(Limits(rate=10, burst=3))
    verdicts = [site.decide() for _ in range(10)]
    verdicts += [site.decide(origin_allowed=False) for _ in range(4)]
    assert site.control.admitted.total() == sum(isinstance(verdict, Admitted) for verdict in verdicts) == 3
    assert site.control.denied == {"rate": 7, "origin": 4}


def test_denials_leave_nothing_behind_but_bounded_tables() -> None:
    """11.4, for the whole decision: 20,000 clients are refused, 500 keys are remembered."""
    limits = Limits(
        rate=10, client=ClientLimits(rate=1, open=2), address=ClientLimits(rate=100), max_clients=250, max_open=0
    )
    site = Site(limits)
    for number in range(20_000):
        site.deny(client(number))
    assert site.control.client_keys <= 500
    assert site.held == 0
    calendar = site.store.calendar
    assert isinstance(calendar, Calendar)
    assert sum(len(promises.issued) for promises in (calendar._firm, *calendar.classes)) <= 301


def test_grant_without_room_at_any_worker_is_refused_as_full() -> None:
    site = Site(Limits(rate=100))
    queued = site.screen()
    assert isinstance(queued, Queued)
    denied = site.control.settle(queued, Grant(False, None, 1.5, full=True), site.now)
    assert isinstance(denied, Denied)
    assert (denied.reason, denied.retry_s) == ("full", 1.5)


def test_permit_is_for_the_worker_that_was_granted() -> None:
    site = Site(Limits(rate=100))
    queued = site.screen()
    assert isinstance(queued, Queued)
    admitted = site.control.settle(queued, Grant(True, worker="ws://one"), site.now)
    assert isinstance(admitted, Admitted)
    assert admitted.permit.worker == "ws://one"
