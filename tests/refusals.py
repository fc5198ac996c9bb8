"""One site for each reason there is to refuse, and what its answer has to look like."""

import re
from dataclasses import dataclass, field
from typing import Any, get_args

from herdgate.core.answers import GateReason
from tests.board import Board, RemoteSite
from tests.wire import Answer, knock

__all__ = ["EVIL", "PAGE", "REASONS", "TICKET", "check_denial", "refusing_site"]

REASONS: tuple[GateReason, ...] = tuple(reason for reason in get_args(GateReason) if reason != "no_owner")
"""Of a middleware alone; who owns a connection is a gateway's to know."""
PAGE = "https://app.example"
EVIL = "https://evil.example"
TICKET = re.compile(r"1\.[A-Za-z0-9_-]{34}")


@dataclass(frozen=True)
class _Refusal:
    """How to be refused, and what is said then.

    Attributes:
        limits: of the gate.
        middleware: further arguments.
        admitted: handshakes let in before.
        status: HTTP status.
        retry_s: shortest and longest delay; None: never.
        ticket: the answer has one.
    """

    limits: dict[str, Any]
    status: int
    retry_s: tuple[float, float] | None
    ticket: bool = False
    admitted: int = 0
    middleware: dict[str, Any] = field(default_factory=dict)


_REFUSALS: dict[GateReason, _Refusal] = {
    "draining": _Refusal({"rate": 100}, 503, (1, 30), ticket=True),
    "origin": _Refusal({"rate": 100}, 403, None, middleware={"allowed_origins": [PAGE]}),
    "shed": _Refusal({"rate": 100, "admit_fraction": 0.0}, 503, (30, 60)),
    "client_rate": _Refusal({"client": {"rate": 0.1, "burst": 2}}, 429, (8, 11), admitted=2),
    "client_open": _Refusal({"client": {"open": 0}}, 429, (5, 10)),
    "full": _Refusal({"rate": 100, "max_open": 0}, 503, (1, 30), ticket=True),
    "rate": _Refusal({"rate": 0.2}, 429, (4, 5.1), ticket=True, admitted=1),
}


async def refusing_site(
    board: Board, reason: GateReason, **middleware: Any
) -> tuple[RemoteSite, list[tuple[str, str]]]:
    """A site that refuses for this reason, and the headers to come with."""
    refusal = _REFUSALS[reason]
    site = await board.site(limits=refusal.limits, **refusal.middleware, **middleware)
    for _ in range(refusal.admitted):
        assert (await knock(site.port, site.path + "/ws")).status == 101
    if reason == "draining":
        await site.call("drain")
    return site, [("Origin", EVIL)] if reason == "origin" else []


def check_denial(answer: Answer, reason: GateReason, *, status: int | None = None) -> None:
    """Fail unless `answer` is what a client needs to come back at the right time."""
    refusal, headers, content = _REFUSALS[reason], answer.headers, answer.json()
    assert answer.status == (status or refusal.status)
    assert list(content) == ["error", "reason", "retry_ms", "ticket"]
    assert content["reason"] == reason
    assert content["error"]
    assert headers["content-type"] == "application/json"
    assert headers["cache-control"] == "no-store"
    assert headers["connection"] == "close"
    assert headers["content-length"] == str(len(answer.body))
    assert "transfer-encoding" not in headers
    _check_retry(refusal, headers, content["retry_ms"])
    assert headers.get("herdgate-ticket") == content["ticket"]
    assert bool(content["ticket"]) == refusal.ticket
    if refusal.ticket:
        assert TICKET.fullmatch(content["ticket"])
    if reason == "client_rate":
        assert headers["ratelimit-policy"] == '"client";q=2;w=20'
        assert headers["ratelimit"] == f'"client";r=0;t={headers["retry-after"]}'
    else:
        assert "ratelimit" not in headers


def _check_retry(refusal: _Refusal, headers: dict[str, str], retry_ms: int | None) -> None:
    if refusal.retry_s is None:
        assert retry_ms is None
        assert not {"retry-after", "herdgate-retry-ms"} & headers.keys()
        return
    assert isinstance(retry_ms, int)
    assert refusal.retry_s[0] * 1000 <= retry_ms <= refusal.retry_s[1] * 1000
    assert headers["herdgate-retry-ms"] == str(retry_ms)
    assert headers["retry-after"] == str(-(-retry_ms // 1000))
    assert int(headers["retry-after"]) >= 1
