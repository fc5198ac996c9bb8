"""`herdgate leases hold`: real processes with guardians, a real table, a real Redis."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice

import pytest

from herdgate_gateway.leases.rows import SHARDS
from herdgate_loadtest.bench.leases.holder import Holder, hold_command
from herdgate_loadtest.servers.emulator import aws_environment
from herdgate_loadtest.servers.lease_table import Place
from tests.dynamodb import DynamoServer
from tests.redis_servers import redis_server
from tests.servers import poll

pytestmark = pytest.mark.xdist_group("holding")


class Pair:
    """Two workers that own all shards between them."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.one, self.other = Holder(place, "one"), Holder(place, "other")

    def own_all(self) -> None:
        poll(lambda: len(self.one.held) + len(self.other.held) == SHARDS, "all shards are owned", within_s=30)

    def end(self) -> None:
        self.one.end()
        self.other.end()


@pytest.fixture
def pair(dynamodb: DynamoServer) -> Iterator[Pair]:
    with ExitStack() as stack:
        place = Place(dynamodb.url, stack.enter_context(redis_server()).url)
        place.make_table()
        pair = Pair(place)
        stack.callback(pair.end)
        pair.own_all()
        yield pair


def test_what_a_killed_worker_had_is_owned_again(pair: Pair) -> None:
    pair.one.crash()

    poll(lambda: len(pair.other.held) == SHARDS, "the other one has all", within_s=20)


def test_a_worker_that_leaves_gives_all_away(pair: Pair) -> None:
    had = set(pair.one.held)
    pair.one.leave()

    poll(lambda: len(pair.other.held) == SHARDS, "the other one has all", within_s=20)
    assert set(pair.one.lost) >= had
    assert pair.one.held == {}


def test_a_second_worker_of_one_name_says_so_and_ends(pair: Pair) -> None:
    second = subprocess.run(
        hold_command(pair.place, "one"), capture_output=True, text=True, timeout=60, check=False, env=aws_environment()
    )

    assert second.returncode == 1
    assert second.stderr.strip() == "herdgate: worker 'one' is alive in another process: give this one another name"


def test_worker_of_a_later_generation_owns_with_epochs_above_all_of_before(pair: Pair) -> None:
    pair.one.leave()
    pair.other.leave()
    command = [*hold_command(pair.place, "restored"), "--generation", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=aws_environment()) as restored:
        assert restored.stdout is not None
        gains = (told for told in map(json.loads, restored.stdout) if "gained" in told)
        epochs = {told["gained"]: told["epoch"] for told in islice(gains, SHARDS)}
        restored.terminate()

    assert len(epochs) == SHARDS
    assert min(epochs.values()) > 1 << 40


def test_ctrl_c_gives_everything_away(pair: Pair) -> None:
    pair.one.interrupt()

    poll(lambda: len(pair.other.held) == SHARDS, "the other one has all", within_s=20)
    assert pair.one.held == {}
