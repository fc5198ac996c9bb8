"""Both relays, for tests that hold for either."""

import pytest

from tests.herdgate_gateway.gateways import DEFAULT


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that names the legs it is for runs once for each of them, any other one once for each relay."""
    if "both_relays" in metafunc.fixturenames and "leg" not in metafunc.fixturenames:
        metafunc.parametrize("both_relays", ["splice", "ours"], indirect=True, ids=["splice", "messages"])


@pytest.fixture
def both_relays(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The gateways of a test relay this way, unless it asks for another one."""
    monkeypatch.setattr(DEFAULT, "leg", getattr(request, "param", DEFAULT.leg))
