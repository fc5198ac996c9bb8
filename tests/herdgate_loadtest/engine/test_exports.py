"""The public API: what demos, tests and other tools may rely on."""

import inspect

from herdgate_loadtest import engine, errors


def test_engine_exports_exactly_this() -> None:
    assert engine.__all__ == [
        "BEHAVIOURS",
        "Attempt",
        "BehaviourRecord",
        "Crowd",
        "CrowdConfig",
        "Cut",
        "Outcome",
        "Record",
        "ServerCounts",
        "Snapshot",
        "compute_record",
        "loopback_sources",
        "parse_behaviour",
        "parse_clients",
    ]
    assert all(hasattr(engine, name) for name in engine.__all__)


def test_crowd_is_called_like_this() -> None:
    shapes = {
        "bring_up": ["rate", "deadline_s"],
        "hold": ["seconds"],
        "cut": ["how"],
        "recover": ["deadline_s", "expected"],
        "close": [],
        "snapshot": [],
        "answers": [],
        "record": ["rate", "burst", "server"],
    }
    for name, parameters in shapes.items():
        assert list(inspect.signature(getattr(engine.Crowd, name)).parameters)[1:] == parameters


def test_behaviours_are_these() -> None:
    assert list(engine.BEHAVIOURS) == ["obey", "prompt", "hint", "jitter", "fixed", "immediate"]


def test_every_error_is_one_of_herdgate() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.HerdgateError)
    assert issubclass(errors.ConfigurationError, ValueError)
