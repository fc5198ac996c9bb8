"""A server that loads the app and then forks: each process is a gate of its own."""

import os

import pytest

from herdgate import Gate, Limits
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import LOCAL
from tests.at_once import at_once


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_gate_takes_the_firm_slots_of_its_parent_as_hints() -> None:
    now = [0.0]
    gate = Gate(Limits(rate=1, burst=1), clock=lambda: now[0])
    firm = firm_slot(gate, now)
    child = os.fork()
    if not child:
        now[0] += firm.retry_s or 0.0
        answer = at_once(gate.decide(Arrival(LOCAL, firm.ticket)))
        os._exit(0 if isinstance(answer, Denied) and answer.ticket != firm.ticket else 1)
    now[0] += firm.retry_s or 0.0

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert isinstance(at_once(gate.decide(Arrival(LOCAL, firm.ticket))), Admitted)


def firm_slot(gate: Gate, now: list[float]) -> Denied:
    """The firm slot of an arrival that came when told, and found that others had taken the token."""
    assert isinstance(at_once(gate.decide(Arrival(LOCAL))), Admitted)
    hint = at_once(gate.decide(Arrival(LOCAL)))
    assert isinstance(hint, Denied)
    now[0] += hint.retry_s or 0.0
    assert isinstance(at_once(gate.decide(Arrival(LOCAL))), Admitted)
    firm = at_once(gate.decide(Arrival(LOCAL, hint.ticket)))
    assert isinstance(firm, Denied)
    assert firm.firm
    return firm
