"""What the engine's tests share."""

import pytest


@pytest.fixture
def quick_settling(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests without close denials: no admission is in doubt for half a second."""
    monkeypatch.setattr("herdgate_loadtest.engine.scheduler.SETTLE_S", 0.05)
