"""Calls in the busiest window, and the seconds in which a gateway was driven."""

from herdgate_loadtest.bench.samples import Sample, alone_share, busiest_calls_per_s, driven

START = Sample(0.0, 0, 0)


def steady(seconds: int, decisions_per_s: int, calls_per_s: int, start: Sample = START) -> list[Sample]:
    """Ten samples a second, from `start` on."""
    return [
        Sample(
            start.at + step / 10, start.decisions + step * decisions_per_s // 10, start.calls + step * calls_per_s // 10
        )
        for step in range(seconds * 10 + 1)
    ]


def test_busiest_window_is_found_wherever_it_is() -> None:
    quiet = steady(5, 100, 10)
    busy = steady(3, 100, 50, quiet[-1])
    samples = [*quiet, *busy[1:], *steady(5, 100, 10, busy[-1])[1:]]

    assert busiest_calls_per_s(samples, 2.0) == 50
    assert round(busiest_calls_per_s(samples, 6.0)) == 30


def test_window_longer_than_the_samples_is_none() -> None:
    assert busiest_calls_per_s(steady(2, 100, 50), 10.0) == 0.0


def test_late_sample_makes_its_window_longer_not_busier() -> None:
    assert busiest_calls_per_s([Sample(0.0, 0, 0), Sample(4.0, 0, 100)], 2.0) == 25


def test_only_seconds_with_enough_decisions_are_driven() -> None:
    slow = steady(4, 900, 20)
    fast = steady(3, 1_000, 50, slow[-1])

    assert driven([*slow, *fast[1:]], 1_000) == (3, 3_000, 150)


def test_driven_seconds_do_not_overlap() -> None:
    seconds, decisions, _ = driven(steady(5, 2_000, 50), 1_000)

    assert (seconds, decisions) == (5, 10_000)


def test_share_of_the_samples_without_redis() -> None:
    samples = [Sample(step / 10, 0, 0, is_alone=step % 4 == 0) for step in range(20)]

    assert alone_share(samples) == 0.25
    assert alone_share([]) == 0.0
