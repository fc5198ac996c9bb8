"""A rate set live, in a fleet: it outlives reloads and restarts until settings name another one."""

import signal

from tests.herdgate_gateway.serving import Serving, serving
from tests.redis_servers import redis_server
from tests.servers import poll

WORKER = "ws://127.0.0.1:9"


def rate_of(gateway: Serving) -> float:
    rate: float = gateway.status()["gates"]["default"]["rate"]
    return rate


def test_rate_set_live_outlives_a_reload_of_one_gateway_and_the_start_of_another() -> None:
    with redis_server() as redis:
        toml = f'rate = 100\n[fleet]\nredis = "{redis.url}"'
        with serving(toml, WORKER) as one:
            poll(lambda: one.status()["gates"]["default"]["fleet"]["is_up"], "it has joined", within_s=5)
            assert one.control("rate", "7").returncode == 0
            poll(lambda: rate_of(one) == 7, "it holds", within_s=5)
            one.process.send_signal(signal.SIGHUP)
            poll(lambda: "settings reloaded" in one.log(), "it has reloaded", within_s=5)
            with serving(toml, WORKER) as late:
                poll(lambda: late.status()["gates"]["default"]["fleet"]["gateways"] == 2, "it has joined", within_s=5)
                assert rate_of(late) == 7
                calls = late.status()["gates"]["default"]["fleet"]["calls"]
                poll(
                    lambda: late.status()["gates"]["default"]["fleet"]["calls"] > calls + 4, "it has called", within_s=8
                )
                assert (rate_of(one), rate_of(late)) == (7, 7)
