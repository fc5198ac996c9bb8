"""Which limits several processes divide among them, and which they share."""

from pathlib import Path

import pytest

from herdgate.core.limits import ClientLimits
from herdgate_gateway.errors import SettingsError
from herdgate_gateway.settings import Settings, load, missing_for_serving

REDIS = '[fleet]\nredis = "redis://host"\n'


def read(folder: Path, toml: str) -> Settings:
    file = folder / "herdgate.toml"
    file.write_text(toml)
    return load({}, file, {})


def test_calendar_and_limits_of_a_fleet_are_shared_and_the_rest_is_divided(tmp_path: Path) -> None:
    route = """
[[routes]]
name = "all"
max_pending = 10
client = { rate = 2, burst = 8, open = 9 }
anonymous = { open = 3, scope = "fleet" }
"""
    head = "processes = 4\nrate = 100\nburst = 10\nmax_open = 101\nmax_memory_bytes = 7\n"
    settings = read(tmp_path, head + REDIS + route)
    limits = settings.process_limits(settings.routes[0])
    assert (limits.rate, limits.burst) == (100, 10)
    assert (limits.max_open, limits.max_pending, limits.max_memory_bytes) == (25, 2, 7)
    assert limits.client == ClientLimits(rate=0.5, burst=2, open=2)
    assert limits.anonymous == ClientLimits(open=3, scope="fleet")


def test_one_process_has_all_of_it(tmp_path: Path) -> None:
    settings = read(tmp_path, 'rate = 5\nmax_open = 1\n[[routes]]\nname = "all"\nclient = { open = 1 }')
    assert settings.process_limits(settings.routes[0]) == settings.route_limits(settings.routes[0])


@pytest.mark.parametrize(
    ("toml", "told"),
    [
        ("max_open = 3", "max_open: got 3; write 4 or more for 4 processes, 0 for nobody"),
        ('[[routes]]\nname = "a"\nmax_pending = 2', "routes[0].max_pending: got 2; write 4 or more for 4 processes"),
        ('max_open = 9\n[[routes]]\nname = "a"\nmax_open = 3', "routes[0].max_open: got 3; write 4 or more"),
        ('[[routes]]\nname = "a"\naddress = { open = 1 }', "routes[0].address.open: got 1; write 4 or more"),
    ],
)
def test_limit_that_leaves_nothing_for_each_is_one_line(tmp_path: Path, toml: str, told: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read(tmp_path, f"processes = 4\n{toml}")
    (fault,) = raised.value.faults
    assert str(fault).startswith(told)
    assert 'or "none" for no limit' in str(fault)


@pytest.mark.parametrize("processes", [1, 4])
def test_limits_of_a_fleet_need_its_redis(tmp_path: Path, processes: int) -> None:
    route = '[[routes]]\nname = "a"\nnetwork = { open = 4, scope = "fleet" }'
    head = f'processes = {processes}\nrate = 5\nworkers = ["ws://a:1"]\n'
    (fault,) = missing_for_serving(read(tmp_path, head + route))
    assert str(fault).startswith('routes[0].network.scope: got fleet; write "process", or name the Redis of the fleet')
    assert missing_for_serving(read(tmp_path, head + REDIS + route)) == []
