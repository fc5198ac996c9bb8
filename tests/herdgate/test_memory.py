"""The memory limit: step 6 of a decision."""

from herdgate import Gate, Limits
from herdgate.core.answers import Admitted, Arrival, Denied
from herdgate.core.clients import LOCAL
from herdgate.memory import MemoryWatch, resident_bytes
from tests.at_once import at_once

MIB = 1 << 20


def test_a_process_holds_what_the_system_says() -> None:
    before = resident_bytes()
    held = bytearray(32 * MIB)

    assert resident_bytes() - before >= 16 * MIB
    assert len(held) == 32 * MIB


def test_no_limit_is_never_over() -> None:
    assert not MemoryWatch(None, lambda: 1 << 60).is_over(0.0)


def test_it_is_over_above_the_limit_not_at_it() -> None:
    assert not MemoryWatch(100, lambda: 100).is_over(0.0)
    assert MemoryWatch(100, lambda: 101).is_over(0.0)


def test_it_looks_at_most_ten_times_a_second_and_notices_relief() -> None:
    readings = [200, 50]
    watch = MemoryWatch(100, lambda: readings.pop(0))

    assert watch.is_over(5.0)
    assert watch.is_over(5.09)
    assert not watch.is_over(5.11)
    assert readings == []


def test_a_gate_over_its_memory_limit_is_full_and_spends_no_token() -> None:
    gate = Gate(Limits(rate=10, max_memory_bytes=1))

    denied = at_once(gate.decide(Arrival(LOCAL)))

    assert isinstance(denied, Denied)
    assert denied.reason == "full"
    assert gate.snapshot().tokens == 10


def test_a_gate_under_its_memory_limit_admits() -> None:
    gate = Gate(Limits(rate=10, max_memory_bytes=1 << 50))

    assert isinstance(at_once(gate.decide(Arrival(LOCAL))), Admitted)
