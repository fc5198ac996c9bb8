"""The function that writes events into the lease table, held to `herdgate connections`: rows, limits, order."""

import asyncio
import json
import random
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import permutations
from threading import Thread
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError
from hypothesis import given
from hypothesis import strategies as st

from deploy.aws import connection_events
from deploy.aws.connection_events import MOST_SEQ, BadEventError, handler, read_event
from herdgate_gateway.connections import store
from herdgate_gateway.connections.limits import check_attrs, check_id
from herdgate_gateway.connections.store import Connections
from herdgate_gateway.errors import ConfigurationError
from herdgate_gateway.leases.acts import checkpoint, claim
from herdgate_gateway.leases.dynamo import DynamoLeases, Place
from herdgate_gateway.leases.rows import Item, connection_key
from herdgate_gateway.leases.table import Done
from tests.deploy.stacks import aws
from tests.dynamodb import DynamoServer, set_credentials
from tests.ministack import REGION

__all__ = ["aws"]

NOW = 1_800_000_000


class Site:
    """A table, a queue, and what of them the function is told."""

    def __init__(self, server: DynamoServer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fleet, self.table = "fleet", f"t-{uuid4()}"
        self.place = Place(self.table, REGION, server.url)
        self._queues = server.client("sqs")
        self.queue = self._queues.create_queue(QueueName=self.table)["QueueUrl"]
        self._monkeypatch = monkeypatch
        set_credentials(monkeypatch)
        self.tell(AWS_ENDPOINT_URL=server.url, TABLE=self.table, FLEET=self.fleet, DEAD_EVENTS=self.queue)
        self.set_clock(NOW + 0.7)

    def tell(self, **variables: str) -> None:
        """Start the function anew with these."""
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)
        connection_events._client.cache_clear()

    def set_clock(self, now: float) -> None:
        """Of the function alone."""
        self._monkeypatch.setattr(connection_events, "time", SimpleNamespace(time=lambda: now))

    async def row(self, name: str = "a") -> Item | None:
        """Of a connection."""
        table = DynamoLeases(self.place, call_s=5)
        try:
            return await table.read(connection_key(self.fleet, name), strong=True)
        finally:
            await table.aclose()

    def dead(self) -> list[tuple[Any, str]]:
        """The events that were put aside, each with the reason."""
        told = self._queues.receive_message(
            QueueUrl=self.queue, MaxNumberOfMessages=10, MessageAttributeNames=["ERROR_MESSAGE"]
        )
        return [
            (json.loads(each["Body"]), each["MessageAttributes"]["ERROR_MESSAGE"]["StringValue"])
            for each in told.get("Messages", ())
        ]


@pytest.fixture
def site(aws: DynamoServer, monkeypatch: pytest.MonkeyPatch) -> Site:
    site = Site(aws, monkeypatch)
    aws.make_table(site.table)
    return site


def event(want: str, seq: int, name: str = "a", **more: Any) -> dict[str, Any]:
    """As EventBridge hands it over."""
    detail = {"id": name, "want": want, "seq": seq, **more}
    return {"id": "e-1", "source": "feeds", "detail-type": "Herdgate Connection Wanted", "detail": detail}


def send(*events: Mapping[str, Any]) -> None:
    for each in events:
        handler(each, None)


ATTRS = [None, {}, {"t": "ä", "n": 10**37, "yes": True, "no": False, "list": [1, [], {"x": [-3]}], "deep": {"er": {}}}]


@pytest.mark.parametrize("attrs", ATTRS, ids=str)
async def test_rows_are_those_that_herdgate_connections_writes(site: Site, attrs: Any) -> None:
    told = {} if attrs is None else {"attrs": attrs}
    table = DynamoLeases(site.place, call_s=5)
    connections = Connections(table, site.fleet, unix_time=lambda: NOW + 0.7)
    await connections.start(["by-command"], attrs)
    send(event("STARTED", 1, "by-event", **told))
    assert await nameless(site, "by-event") == await nameless(site, "by-command")
    await connections.stop(["by-command"])
    send(event("STOPPED", 2, "by-event"))
    assert await nameless(site, "by-event") == await nameless(site, "by-command")
    found = await connections.get_many(["by-event", "by-command"])
    await connections.aclose()
    assert [(row.want, row.attrs, row.epoch) for row in found.values()] == [("STOPPED", attrs or {}, None)] * 2


async def nameless(site: Site, name: str) -> dict[str, Any]:
    """A row without what differs by intent: its key, and the seq of its event."""
    row = await site.row(name)
    assert row is not None
    return {key: value for key, value in row.items() if key not in ("pk", "sk", "want_seq")}


async def test_event_that_comes_twice_changes_nothing(site: Site) -> None:
    send(event("STARTED", 1, attrs={"n": 1}), event("STOPPED", 2))
    before = await site.row()
    site.set_clock(NOW + 500)
    send(event("STOPPED", 2), event("STARTED", 1, attrs={"n": 1}))
    assert await site.row() == before
    assert before is not None
    assert (before["want"], before["want_seq"], before["ttl"]) == ("STOPPED", 2, NOW + store.KEPT_S)
    assert site.dead() == []


@pytest.mark.parametrize("order", [*permutations([1, 2, 3])], ids=str)
async def test_newest_event_holds_in_whatever_order_they_come(site: Site, order: tuple[int, ...]) -> None:
    events = {1: event("STARTED", 1), 2: event("STARTED", 2), 3: event("STOPPED", 3)}
    send(*(events[seq] for seq in order))
    row = await site.row()
    assert row is not None
    assert (row["want"], row["want_seq"], "ttl" in row) == ("STOPPED", 3, True)


async def test_of_two_events_with_one_seq_the_first_holds(site: Site) -> None:
    send(event("STARTED", 5, attrs={"n": 1}), event("STOPPED", 5), event("STARTED", 5, attrs={"n": 2}))
    row = await site.row()
    assert row is not None
    assert (row["want"], row["attrs"]) == ("STARTED", {"n": 1})


async def test_start_without_attrs_leaves_those_that_are_there_and_takes_the_ttl_out(site: Site) -> None:
    send(event("STARTED", 1, attrs={"n": 1}), event("STOPPED", 2), event("STARTED", 3))
    row = await site.row()
    assert row is not None
    assert (row["want"], row["attrs"], "ttl" in row) == ("STARTED", {"n": 1}, False)


async def test_what_workers_wrote_stays_and_what_they_write_is_done(site: Site) -> None:
    table = DynamoLeases(site.place, call_s=5)
    send(event("STARTED", 1))
    assert isinstance(await table.write(claim(site.fleet, "a", 7)), Done)
    assert isinstance(await table.write(checkpoint(site.fleet, "a", 7, 41)), Done)
    send(event("STOPPED", 2), event("STARTED", 3))
    row = await site.row()
    assert row is not None
    assert (row["epoch"], row["last_seq"]) == (7, 41)
    assert isinstance(await table.write(checkpoint(site.fleet, "a", 7, 42)), Done)
    await table.aclose()


async def test_what_an_operator_says_holds_until_the_next_event(site: Site) -> None:
    table = DynamoLeases(site.place, call_s=5)
    send(event("STARTED", 4))
    await Connections(table, site.fleet).stop(["a"])
    send(event("STARTED", 4), event("STARTED", 3))
    assert (await nameless(site, "a"))["want"] == "STOPPED"
    send(event("STARTED", 5))
    assert (await nameless(site, "a"))["want"] == "STARTED"
    await table.aclose()


@pytest.mark.parametrize("seed", range(3))
async def test_newest_of_events_that_race_holds(site: Site, seed: int) -> None:
    chance = random.Random(seed)
    seqs = [*range(40), *range(40)]
    chance.shuffle(seqs)
    events = [event(("STARTED", "STOPPED")[seq % 2], seq, attrs={"seq": seq}) for seq in seqs]
    for each in events:
        if each["detail"]["want"] == "STOPPED":
            del each["detail"]["attrs"]
    send(event("STARTED", 0, attrs={"seq": 0}))  # the last stop may come first, and has no attrs
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(send, events))
    row = await site.row()
    assert row is not None, f"seed {seed}"
    assert (row["want"], row["want_seq"]) == ("STOPPED", 39), f"seed {seed}"
    assert row["attrs"]["seq"] in range(0, 40, 2), f"seed {seed}"


async def test_claims_and_operators_that_race_with_events_lose_nothing(site: Site) -> None:
    table = DynamoLeases(site.place, call_s=20)
    connections = Connections(table, site.fleet)
    send(event("STARTED", 0))

    async def claim_it(epoch: int) -> None:
        await table.write(claim(site.fleet, "a", epoch))
        await table.write(checkpoint(site.fleet, "a", epoch, epoch))

    events = [asyncio.to_thread(send, event(("STARTED", "STOPPED")[seq % 2], seq)) for seq in range(1, 21)]
    by_hand = [connections.start(["a"]) if number % 2 else connections.stop(["a"]) for number in range(10)]
    await asyncio.gather(*events, *map(claim_it, range(1, 21)), *by_hand)
    row = await site.row()
    assert row is not None
    assert (row["epoch"], row["last_seq"], row["want_seq"]) == (20, 20, 20)
    assert ("ttl" in row) == (row["want"] == "STOPPED")
    send(event("STOPPED", 21))
    assert (await nameless(site, "a"))["want"] == "STOPPED"
    await table.aclose()


LONG_NAMED = {"x\n" * 40_000: 1}
LONG = "detail." + "x\\n" * 20

BAD: list[tuple[Any, str]] = [
    ({"detail": None}, 'event None: detail is no object; write {"id": ..., "want": ..., "seq": ...}'),
    (event("STARTED", 1, "a b"), "event e-1: detail.id is 'a b'; write 1 to 128 characters of printable ASCII"),
    (event("STARTED", 1, "x" * 129), "event e-1: detail.id is 'xxx"),
    (event("started", 1), "event e-1: detail.want is 'started'; write STARTED or STOPPED"),
    (event(["STARTED"], 1), "event e-1: detail.want is ['STARTED']; write STARTED or STOPPED"),  # type: ignore[arg-type]
    (event("STARTED", -1), "event e-1: detail.seq is -1; write a whole number from 0 to 9223372036854775807"),
    (event("STARTED", MOST_SEQ + 1), "event e-1: detail.seq is 9223372036854775808; write a whole number"),
    (event("STARTED", True), "event e-1: detail.seq is True; write a whole number"),
    (event("STARTED", 17.0), "event e-1: detail.seq is 17.0; write a whole number"),  # type: ignore[arg-type]
    (event("STARTED", "17"), "event e-1: detail.seq is '17'; write a whole number"),  # type: ignore[arg-type]
    (
        {**event("STOPPED", 1), "detail": {**LONG_NAMED, "id": "a", "want": "STOPPED", "seq": 1}},
        f"event e-1: {LONG} is 1;",
    ),
    (event("STARTED", 1, attr={}), "event e-1: detail.attr is {}; leave it out, it is no part of STARTED"),
    (event("STOPPED", 1, attrs={}), "event e-1: detail.attrs is {}; leave it out, it is no part of STOPPED"),
    (event("STARTED", 1, attrs=[1]), "event e-1: detail.attrs is [1]; write an object"),
    (event("STARTED", 1, attrs=None), "event e-1: detail.attrs is None; write an object"),
    (event("STARTED", 1, attrs={"n": 1.5}), "event e-1: detail.attrs is 1.5; leave it out, or write it as a text"),
    (event("STARTED", 1, attrs={"n": 10**38}), "event e-1: detail.attrs is 1000000"),
    (event("STARTED", 1, attrs={"": 1}), "event e-1: detail.attrs is 1; give each value a name"),
    (event("STARTED", 1, attrs={"t": "\ud800"}), "event e-1: detail.attrs is {'t': '\\ud800'}; write texts that are"),
    (event("STARTED", 1, attrs={"t": "x" * 16_384}), "event e-1: detail.attrs is '16,392 bytes'; keep them to 16,384"),
]


@pytest.mark.parametrize(("told", "why"), BAD, ids=[why[:60] for _, why in BAD])
async def test_bad_event_is_put_aside_with_one_line_and_is_over(
    site: Site, told: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    send(told)
    ((kept, reason),) = site.dead()
    assert kept == told
    assert reason.startswith(why)
    assert "\n" not in reason
    assert caplog.messages == [reason]
    assert await site.row() is None


def test_event_that_may_be_done_later_is_raised_and_not_put_aside(site: Site) -> None:
    site.tell(TABLE="not-there")
    with pytest.raises(ClientError, match=r"ResourceNotFoundException"):
        send(event("STARTED", 1))
    assert site.dead() == []


class Busy(BaseHTTPRequestHandler):
    """A table that throttles the first two requests."""

    asked = 0
    error = "ProvisionedThroughputExceededException"
    times = 2

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        type(self).asked += 1
        fails = self.asked <= self.times
        body = json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{self.error}"} if fails else {}).encode()
        self.send_response(400 if fails else 200)
        self.send_header("content-type", "application/x-amz-json-1.0")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def serving(answers: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_table_that_throttles_is_asked_again(site: Site) -> None:
    with serving(Busy) as url:
        site.tell(AWS_ENDPOINT_URL_DYNAMODB=url)
        send(event("STARTED", 1))
    assert Busy.asked == 3


@pytest.mark.parametrize("error", ["AccessDeniedException", "ValidationException", "UnrecognizedClientException"])
def test_table_that_refuses_is_asked_once_and_the_event_is_for_the_next_call(site: Site, error: str) -> None:
    class Refusing(Busy):
        asked = 0
        times = 100

    Refusing.error = error
    with serving(Refusing) as url:
        site.tell(AWS_ENDPOINT_URL_DYNAMODB=url)
        with pytest.raises(ClientError, match=error):
            send(event("STARTED", 1))
    assert Refusing.asked == 1
    assert site.dead() == []


def test_stopped_rows_are_kept_as_long_as_by_command() -> None:
    assert connection_events.KEPT_S == store.KEPT_S


NUMBERS = st.integers(-(10**39), 10**39) | st.sampled_from([10**38 - 1, 10**38, 1 - 10**38, -(10**38)])
TEXTS = st.text(st.characters(), max_size=3) | st.just("\ud800")
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
)


def takes_attrs(attrs: object) -> bool:
    with suppress(BadEventError):
        read_event(event("STARTED", 1, attrs=attrs))
        return True
    return False


def command_takes_attrs(attrs: object) -> bool:
    with suppress(ConfigurationError):
        check_attrs(attrs)
        return True
    return False


@given(st.dictionaries(TEXTS, VALUES, max_size=3) | VALUES)
def test_attrs_are_those_that_the_command_takes(attrs: object) -> None:
    assert takes_attrs(attrs) == command_takes_attrs(attrs)


@pytest.mark.parametrize("letter", ["x", "ä", "\n", '"'])
def test_attrs_may_be_as_large_as_those_of_the_command(letter: str) -> None:
    sizes = [16_376 // len(json.dumps(letter, ensure_ascii=False).encode()[1:-1]) + more for more in (-1, 0, 1, 2)]
    taken = [takes_attrs({"t": letter * size}) for size in sizes]
    assert taken == [command_takes_attrs({"t": letter * size}) for size in sizes]
    assert set(taken) == {True, False}


@pytest.mark.parametrize("levels", [29, 30, 31])
def test_attrs_may_be_as_deep_as_those_of_the_command(levels: int) -> None:
    attrs = json.loads('{"a":' * levels + '"x"' + "}" * levels)
    assert takes_attrs(attrs) == command_takes_attrs(attrs) == (levels <= 30)


@given(st.text(max_size=3) | st.text(st.characters(max_codepoint=0x7F), min_size=126, max_size=130))
def test_ids_are_those_that_the_command_takes(name: str) -> None:
    try:
        check_id(name)
    except ConfigurationError:
        with pytest.raises(BadEventError):
            read_event(event("STARTED", 1, name))
    else:
        assert read_event(event("STARTED", 1, name)).id == name
