"""`herdgate.js` under Node, over the package `ws` and over Node's own WebSocket."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.board import Board, RemoteSite
from tests.herdgate_client.scripted import CUT, OPEN, SILENCE, closing, giving, refusal
from tests.herdgate_gateway.gateways import closed_port
from tests.needs import node
from tests.wire import knock

pytestmark = pytest.mark.node

SCRIPT = Path(__file__).parent.parent / "node" / "reconnect.mjs"
PATIENT = {"openTimeoutMs": 86_400_000}
TOLD = '{"retry_ms":7340,"ticket":"1.abc"}'
ONE_OPEN = {"type": "open", "count": 1}


async def events(url: str, until: dict[str, Any], **job: Any) -> Any:
    """The events of one HerdgateWebSocket; see `tests/node/reconnect.mjs`."""
    program = node()
    assert program is not None
    pipe = asyncio.subprocess.PIPE
    arguments = ["--experimental-websocket", str(SCRIPT)]  # for Node 20, whose own WebSocket is off
    process = await asyncio.create_subprocess_exec(program, *arguments, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        jobs = json.dumps([{"url": url, "until": until, **job}]).encode()
        said, complaint = await asyncio.wait_for(process.communicate(jobs), 60)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, complaint.decode()
    return json.loads(said)[0]


async def hasty(url: str, until: dict[str, Any], options: dict[str, Any] | None = None, **job: Any) -> Any:
    """The same, a thousand times faster."""
    return await events(url, until, options={**PATIENT, **(options or {})}, hurry=1000, **job)


def of(type_: str, seen: Any) -> list[dict[str, Any]]:
    return [event for event in seen if event["type"] == type_]


def delays(seen: Any) -> list[float]:
    return [event["delayMs"] for event in of("retry", seen)]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503, 599])
async def test_status_that_passes_is_tried_again(status: int) -> None:
    async with giving(refusal(status), OPEN) as server:
        seen = await hasty(server.url, ONE_OPEN)
    assert [event["type"] for event in seen] == ["retry", "open", "close"]
    assert seen[0]["why"] == f"HTTP {status}"
    assert 100 <= seen[0]["delayMs"] <= 1000
    assert [event["readyState"] for event in seen] == [0, 1, 3]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 426])
async def test_status_that_stays_ends_it(status: int) -> None:
    async with giving(refusal(status, "Retry-After: 1"), OPEN) as server:
        seen = await hasty(server.url, ONE_OPEN)
        assert len(server.visits) == 1
    assert [event["type"] for event in seen] == ["error", "close"]
    assert seen[0]["message"] == f"HTTP {status}"
    assert (seen[1]["code"], seen[1]["readyState"]) == (1006, 3)


@pytest.mark.parametrize(
    ("headers", "shortest", "longest"),
    [
        (["Herdgate-Retry-Ms: 7340", "Retry-After: 8"], 7340, 7340),
        (["Herdgate-Retry-Ms: 0"], 0, 0),
        (["Retry-After: 8"], 8100, 9000),
        (["Retry-After: Mon, 30 Nov 2026 14:00:08 GMT", "Date: Mon, 30 Nov 2026 14:00:00 GMT"], 8100, 9000),
        (["Retry-After: Mon, 30 Nov 2026 14:00:08 GMT"], 100, 1000),
        *(([f"Herdgate-Retry-Ms: {text}"], 100, 1000) for text in ("nan", "-1", "86400001", "1e3", "9" * 400)),
        *(([f"Retry-After: {text}"], 100, 1000) for text in ("-5", "86401", "99999999999", "soon", "1 GMT")),
        (["Herdgate-Retry-Ms: 5000", "Herdgate-Retry-Ms: 5000"], 100, 1000),
    ],
)
@pytest.mark.parametrize("random", [0, 0.999999])
async def test_what_is_told_is_a_floor(headers: list[str], shortest: int, longest: int, random: float) -> None:
    async with giving(refusal(429, *headers), OPEN) as server:
        seen = await hasty(server.url, ONE_OPEN, random=random)
    assert delays(seen) == [pytest.approx(longest if random else shortest, rel=1e-5)]


@pytest.mark.parametrize(
    ("reason", "shortest", "longest"),
    [
        (TOLD, 7340, 7340),
        *((f'{{"retry_ms":{value}}}', 100, 1000) for value in ("NaN", "-1", "1e999", '"7"', "true", "31536000000")),
        ("[7]", 100, 1000),
        ("null", 100, 1000),
        ("later", 100, 1000),
    ],
)
async def test_close_tells_when_to_come_back(reason: str, shortest: int, longest: int) -> None:
    async with giving(closing(1013, reason), OPEN) as server:
        seen = await hasty(server.url, {"type": "open", "count": 2}, random=0)
        queries = [visit.head.split(b" ")[1] for visit in server.visits]
    assert [event["type"] for event in seen] == ["open", "retry", "open", "close"]
    assert delays(seen) == [shortest]
    assert queries == [b"/", b"/?herdgate_ticket=1.abc" if longest == 7340 else b"/"]


async def test_ticket_is_kept_until_it_brings_us_in_and_the_rest_of_the_query_stays() -> None:
    denial = refusal(429, "Herdgate-Retry-Ms: 1", "Herdgate-Ticket: 1.abc")
    async with giving(denial, CUT, closing(1001), OPEN) as server:
        await hasty(server.url + "/ws?a=b%20c&herdgate_ticket=old&d", {"type": "open", "count": 2})
        queries = [visit.head.split(b" ")[1] for visit in server.visits]
    with_ticket = b"/ws?a=b%20c&d&herdgate_ticket=1.abc"
    without = b"/ws?a=b%20c&herdgate_ticket=old&d"
    assert queries == [without, with_ticket, with_ticket, without]


async def test_ticket_is_left_to_the_cookie_where_that_is_wanted() -> None:
    async with giving(closing(1013, TOLD), OPEN) as server:
        await hasty(server.url, {"type": "open", "count": 2}, {"ticketInQuery": False})
        assert [visit.head.split(b" ")[1] for visit in server.visits] == [b"/", b"/"]


@pytest.mark.parametrize("code", [1002, 1003, 1007, 1008, 1009, 1010])
async def test_close_code_that_stays_ends_it(code: int) -> None:
    async with giving(closing(code, "bad key")) as server:
        seen = await hasty(server.url, {"type": "open", "count": 2})
        assert len(server.visits) == 1
    assert [event["type"] for event in seen] == ["open", "error", "close"]
    assert (seen[2]["code"], seen[2]["reason"]) == (code, "bad key")


@pytest.mark.parametrize("code", [1000, 1001, 1011, 1012, 4000])
async def test_close_code_that_passes_is_tried_again(code: int) -> None:
    async with giving(closing(code, "later"), OPEN) as server:
        seen = await hasty(server.url, {"type": "open", "count": 2})
    (retry,) = of("retry", seen)
    assert (retry["code"], retry["reason"], retry["readyState"]) == (code, "later", 0)


@pytest.mark.parametrize("random", [0, 0.5, 0.999999])
@pytest.mark.parametrize("is_global", [True, False])
async def test_nobody_there_is_tried_with_full_jitter_up_to_the_cap(random: float, is_global: bool) -> None:
    seen = await hasty(
        closed_port(), {"type": "retry", "count": 40}, {"capMs": 3000}, random=random, **{"global": is_global}
    )
    wanted = [100 + (min(3000, 1000 * 2**failures) - 100) * random for failures in range(40)]
    assert delays(seen) == pytest.approx(wanted)
    assert {event["thrown"] for event in of("retry", seen)} == {"InvalidStateError"}
    assert [event["type"] for event in seen[-2:]] == ["error", "close"]


async def test_a_thousand_failures_overflow_nothing() -> None:
    seen = await hasty(closed_port(), {"type": "retry", "count": 1200}, {"baseMs": 1, "capMs": 2}, random=1)
    assert delays(seen) == [2, *[2] * 1199]


@pytest.mark.parametrize(("stable_ms", "delay_ms"), [(86_400_000, 8000), (0.001, 1000)])
async def test_only_a_stable_session_ends_the_backoff(stable_ms: float, delay_ms: int) -> None:
    async with giving(closing(1011)) as server:
        seen = await hasty(server.url, {"type": "retry", "count": 4}, {"stableMs": stable_ms}, random=1)
    assert delays(seen)[-1] == delay_ms


async def test_nobody_comes_before_its_time() -> None:
    async with giving(refusal(503, "Herdgate-Retry-Ms: 50"), *[closing(1012, '{"retry_ms":50}')] * 5, OPEN) as server:
        seen = await events(server.url, {"type": "open", "count": 6})
    times = [(event["type"], event["at"]) for event in seen if event["type"] in ("retry", "open")]
    waits = [then - now for (kind, now), (_, then) in pairwise(times) if kind == "retry"]
    assert len(waits) == 6
    assert min(waits) >= 50


@pytest.mark.parametrize("is_global", [True, False])
async def test_silence_is_tried_again(is_global: bool) -> None:
    async with giving(SILENCE, OPEN) as server:
        seen = await events(server.url, ONE_OPEN, options={"openTimeoutMs": 1000, "baseMs": 1}, **{"global": is_global})
        assert len(server.visits) == 2
    assert [event["type"] for event in seen] == ["retry", "open", "close"]
    assert seen[0]["why"] == "no answer in time"


async def crowded(board: Board, **settings: Any) -> RemoteSite:
    """A site whose only token for the next 2 s is gone."""
    site = await board.site(limits={"rate": 0.5, "burst": 1}, **settings)
    assert (await knock(site.port, site.path + "/ws")).status == 101
    return site


def url_of(site: RemoteSite) -> str:
    return f"ws://127.0.0.1:{site.port}{site.path}/ws"


@pytest.mark.parametrize("denial", ["http", "close"])
async def test_ticket_brings_in(board: Board, denial: str) -> None:
    site = await crowded(board, max_wait_s=0, denial=denial)
    seen = await events(url_of(site), {"type": "message", "count": 1}, say="hello")
    assert of("message", seen)[0]["data"] == "hello"
    told = delays(seen)
    assert len(told) <= 2, "a hint, and a firm slot if there was no token"
    assert all(0 < delay <= 2100 for delay in told)
    assert (seen[-1]["type"], seen[-1]["wasClean"]) == ("close", True)
    report = await site.is_idle()
    assert (report["admitted"], report["denied"]) == (2, {"rate": len(told)})


async def test_question_before_a_try_brings_in_what_sees_no_answer_to_a_handshake(board: Board) -> None:
    site = await crowded(board, max_wait_s=0, denial="http")
    options = {"preflight": f"{site.path}/_herdgate/admission", "baseMs": 150}
    seen = await events(url_of(site), {"type": "message", "count": 1}, say="hello", options=options, **{"global": True})
    assert [event["type"] for event in seen[-3:]] == ["open", "message", "close"]
    mute, told, *_ = of("retry", seen)
    assert (mute["why"], mute["delayMs"] <= 150) == ("the handshake failed", True)
    assert (told["why"], 0 < told["delayMs"] <= 4100) == ("HTTP 429 rate", True)


async def test_question_that_learns_of_a_refused_origin_ends_it() -> None:
    said = json.dumps({"reason": "origin", "retry_ms": None}).encode()
    async with giving(CUT, refusal(403, "Content-Type: application/json", body=said)) as server:
        seen = await hasty(server.url, ONE_OPEN, {"preflight": True})
        assert server.visits[1].head.startswith(b"GET /_herdgate/admission?path=%2F HTTP/1.1")
    assert [event["type"] for event in seen] == ["retry", "error", "close"]
    assert seen[1]["message"] == "HTTP 403 origin"


@pytest.mark.parametrize(
    "answer",
    [CUT, refusal(404), refusal(200, body=b"<html>"), refusal(503, body=b'{"reason": "' + b" " * 5000 + b'"}')],
)
async def test_question_that_nobody_understands_is_followed_by_the_try(answer: bytes) -> None:
    async with giving(CUT, answer, OPEN) as server:
        seen = await hasty(server.url, ONE_OPEN, {"preflight": True})
        assert len(server.visits) == 3
    assert [event["type"] for event in seen] == ["retry", "open", "close"]


async def test_close_ends_a_question_too() -> None:
    async with giving(CUT, SILENCE, OPEN) as server:
        options = {"preflight": True, "capMs": 1}
        seen = await events(server.url, {"type": "open", "count": 1}, options=options, closeMs=500)
        asked = [
            visit.head.split(b" ")[1] for visit in server.visits if visit.head
        ]  # fetch may connect once more, in vain
        assert asked == [b"/", b"/_herdgate/admission?path=%2F"]
    assert [event["type"] for event in seen] == ["retry", "error", "close"]


@pytest.mark.parametrize(
    ("job", "name", "message"),
    [
        ({"url": "ftp://chat.example"}, "SyntaxError", "no URL of a WebSocket"),
        ({"url": "chat.example"}, "SyntaxError", "no URL"),
        ({"url": "ws://chat.example/#part"}, "SyntaxError", "no URL of a WebSocket"),
        ({"protocols": ["a b"]}, "SyntaxError", ""),
        ({"options": {"capMs": 0}}, "RangeError", "capMs: got 0; write milliseconds"),
        ({"options": {"stableMs": "30"}}, "RangeError", "stableMs"),
        ({"options": {"nonsense": 1}}, "TypeError", "nonsense: there is no such option; write one of baseMs, capMs, "),
        ({"options": {"toString": 1}}, "TypeError", "toString: there is no such option"),
        ({"options": {"ticketInQuery": "no"}}, "TypeError", "ticketInQuery: got no; write true or false"),
        ({"options": {"preflight": "http://["}}, "TypeError", "preflight: got http://[; write true, false, or the URL"),
        ({"options": {"WebSocket": None}}, "TypeError", "there is none here"),
        ({"options": {"preflight": True, "ticketInQuery": False}}, "TypeError", "preflight"),
    ],
)
async def test_mistake_is_thrown_at_once(job: dict[str, Any], name: str, message: str) -> None:
    thrown = await events(job.pop("url", "ws://127.0.0.1:9"), ONE_OPEN, **job)
    assert thrown["error"] == name
    assert message in thrown["message"]
