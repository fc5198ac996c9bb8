"""Health and readiness: answered by a thread of their own, whatever the main loop does."""

import time
from dataclasses import replace

import httpx
import pytest

from herdgate import Limits
from herdgate_gateway.drain.status import DrainState, DrainStatus
from tests.herdgate_gateway.admin.running import Controlled, Still, admin, ask, main_loop
from tests.servers import poll

FAST_S = 0.5
"""Far below the 2 s that the main loop is away; an answer takes milliseconds, on a busy machine some more."""


def spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_health_and_readiness_answer_while_the_gateway_runs() -> None:
    with main_loop() as view, admin(view) as server:
        for path, text in (("/healthz", "ok\n"), ("/readyz", "ready\n")):
            answer = ask(server, path)
            assert (answer.status_code, answer.text) == (200, text)
            assert ask(server, path, "HEAD").status_code == 200


@pytest.mark.parametrize("wait", [time.sleep, spin], ids=["blocked", "flooded"])
def test_health_is_answered_fast_while_the_main_loop_is_away(wait: object) -> None:
    with main_loop() as view, admin(view) as server, httpx.Client(base_url=server.url or "") as http:
        assert http.get("/healthz").status_code == 200
        assert callable(wait)
        done: list[float] = []
        began = time.monotonic()
        view.block(lambda: done.append(wait(2.0) or time.monotonic()))
        slowest, asked = 0.0, 0
        while not done:
            asked_at = time.monotonic()
            assert http.get("/healthz").status_code == 200
            slowest, asked = max(slowest, time.monotonic() - asked_at), asked + 1
        assert done[0] - began >= 2.0
        assert asked > 10
        assert slowest < FAST_S


def test_readiness_fails_while_the_main_loop_is_blocked_and_returns_after() -> None:
    with main_loop() as view, admin(view, stale_after_s=0.5) as server:
        assert ask(server, "/readyz").status_code == 200
        view.block(lambda: time.sleep(2.0))
        poll(lambda: ask(server, "/readyz").status_code == 503, "not ready")
        assert "main loop blocked: it has published nothing for" in ask(server, "/readyz").text
        assert ask(server, "/status.json").json()["age_s"] > 0.5
        assert ask(server, "/metrics").status_code == 200
        poll(lambda: ask(server, "/readyz").status_code == 200, "ready again")


def test_the_main_loop_counts_as_blocked_after_a_few_seconds() -> None:
    with main_loop() as running, admin(running):
        fresh = running.status()
    for age_s, status in ((2.5, 200), (3.5, 503)):
        view = Still(replace(fresh, published_at=time.monotonic() - age_s))
        with admin(view) as server:
            assert ask(server, "/readyz").status_code == status
            assert ask(server, "/healthz").status_code == 200


def test_draining_gateway_is_healthy_and_not_ready() -> None:
    with main_loop({"chat": Limits(rate=5), "feed": Limits(rate=5)}) as view, admin(view) as server:
        view.close_gates()
        poll(lambda: ask(server, "/readyz").text == "draining\n", "draining")
        assert ask(server, "/readyz").status_code == 503
        assert ask(server, "/healthz").status_code == 200


@pytest.mark.parametrize(
    ("state", "told"),
    [("waiting", "draining: waits for its turn"), ("draining", "draining"), ("drained", "drained")],
)
def test_readiness_says_how_far_a_drain_is(state: DrainState, told: str) -> None:
    with main_loop() as running, admin(running):
        fresh = running.status()
    view = Still(replace(fresh, drain=DrainStatus(state, "call", 1.0, 9.0, 5)), ready=False)
    with admin(view) as server:
        assert ask(server, "/readyz").text == f"{told}\n"


def test_gateway_that_does_not_serve_yet_says_so() -> None:
    with main_loop() as view, admin(view) as server:
        view.ready = False
        answer = ask(server, "/readyz")
        assert (answer.status_code, answer.text) == (503, "starting or stopping\n")


def test_a_broken_view_takes_health_with_it_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Controlled):
        def status(self) -> None:  # type: ignore[override]
            raise RuntimeError("no status")

    view = Broken({"default": Limits(rate=5)})
    with admin(view) as server:
        assert ask(server, "/readyz").status_code == 500
        assert ask(server, "/healthz").status_code == 200
    view.loop.close()
    assert "no status" in caplog.text
