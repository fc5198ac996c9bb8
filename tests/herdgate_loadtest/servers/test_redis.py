"""A redis-server of the benchmark's own."""

import os
import signal

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as Gone
from redis.exceptions import TimeoutError as Late

from herdgate_loadtest.errors import PreflightError
from herdgate_loadtest.servers.redis import redis_server
from tests.redis_servers import redis_server as needed


@pytest.fixture(autouse=True)
def _redis() -> None:
    with needed():  # skipped where there is none
        pass


def test_it_serves_and_ends_with_its_block() -> None:
    with redis_server() as redis:
        assert redis.command("SET", "a", 1)
        assert redis.command("GET", "a") == "1"
        client = Redis.from_url(redis.url)
        assert client.ping()
    with client, pytest.raises(Gone):
        client.ping()


def test_restart_keeps_the_address_and_nothing_else() -> None:
    with redis_server() as redis:
        url = redis.url
        redis.command("SET", "a", 1)
        redis.kill()
        redis.start()
        assert (redis.url, redis.command("EXISTS", "a")) == (url, 0)


def test_paused_server_takes_connections_and_answers_nothing() -> None:
    with redis_server() as redis:
        pid = int(redis.command("INFO", "server")["process_id"])
        redis.pause()
        with Redis.from_url(redis.url, socket_timeout=0.1, retry=None) as client, pytest.raises(Late):
            client.ping()
        os.kill(pid, signal.SIGCONT)


def test_scripts_are_counted() -> None:
    with redis_server() as redis:
        assert redis.calls() == 0
        sha = redis.command("SCRIPT", "LOAD", "return 1")
        redis.command("EVALSHA", sha, 0)
        redis.command("EVAL", "return 2", 0)
        assert redis.calls() == 2


def test_missing_server_is_one_line_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(PreflightError, match="no redis-server on the PATH: install one"), redis_server():
        pass
