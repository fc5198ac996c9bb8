"""Small apps behind the middleware, served to tests.

`switchboard` serves any number of guarded sites, so that one server process is enough for a whole module and every
test still has a gate of its own:

    PUT  /sites/<name>          makes a site: {"limits": {...}, "middleware": {...}, "secrets": [...]}
    GET  /sites/<name>          the gate's snapshot, and what the app behind it has seen
    POST /sites/<name>/<verb>   set_rate, set_admit_fraction (a number as JSON), drain, resume; take_place takes a
                                permit for ever, block keeps the event loop busy for so many seconds
    /<name>/...                 the site itself, mounted there; its last path segment says what the app does

`alone` serves one site at `/`, with a health check that is not guarded.
"""

import asyncio
import contextlib
import json
import time
from collections import Counter
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qs

from herdgate import AddressRules, AdmissionMiddleware, ClientLimits, Decision, Fleet, Gate, Limits
from herdgate.asgi import ASGIApp, Message, Receive, Scope, Send
from herdgate.core.clients import LOCAL

__all__ = ["SECRET", "Site", "alone", "answer", "read_body", "read_limits", "switchboard"]

SECRET = "a secret for tests only, 32 bytes"
TIERS = ("client", "anonymous", "address", "network")


def read_limits(settings: dict[str, Any]) -> Limits:
    """Limits from JSON."""
    tiers = {name: ClientLimits(**settings[name]) for name in TIERS if name in settings}
    return Limits(**{"rate": None, **settings, **tiers})


class Site:
    """One guarded app with a gate of its own.

    Attributes:
        gate: its gate.
        app: the app with the middleware around it.
        setups: set-ups in progress.
        most_setups: most of them at the same time so far.
        runs: what the app did so far, by last path segment.
        seen: the scopes of its last handshakes, as far as they matter.
        decisions: outcomes and reasons so far.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        if unknown := settings.keys() - {"fleet", "limits", "middleware", "secrets"}:
            raise TypeError(f"a site has no settings {sorted(unknown)}")
        middleware: dict[str, Any] = {**settings.get("middleware", {})}
        if "addresses" in middleware:
            middleware["addresses"] = AddressRules(**middleware["addresses"])
        if "client_key" in middleware:
            header = middleware["client_key"].encode()
            middleware["client_key"] = lambda scope: dict(scope["headers"]).get(header, b"").decode() or None
        fleet = Fleet(**settings["fleet"]) if "fleet" in settings else None
        limits, chosen = read_limits(settings.get("limits", {})), settings.get("secrets") or [SECRET]
        self.gate = Gate(limits, secrets=chosen, fleet=fleet)
        self.app = AdmissionMiddleware(self._run, gate=self.gate, on_decision=self._note, **middleware)
        self.setups = self.most_setups = self.running = 0
        self.runs: Counter[str] = Counter()
        self.seen: list[dict[str, Any]] = []
        self.decisions: Counter[str] = Counter()

    def report(self) -> dict[str, Any]:
        """Everything there is to know, for JSON."""
        counts = {"setups": self.setups, "most_setups": self.most_setups, "running": self.running}
        seen = {"seen": self.seen[-5:], "decisions": dict(self.decisions)}
        return {**asdict(self.gate.snapshot()), "runs": dict(self.runs), **counts, **seen}

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return
        what = scope["path"].rpartition("/")[2]
        self.runs[what] += 1
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        self.seen.append({"headers": headers, "query": scope["query_string"].decode(), "path": scope["path"]})
        self.running += 1
        try:
            await (self._websocket if scope["type"] == "websocket" else self._http)(what, scope, receive, send)
        finally:
            self.running -= 1

    async def _websocket(self, what: str, scope: Scope, receive: Receive, send: Send) -> None:
        if what == "slow":
            await self._set_up(scope)
        await WEBSOCKETS.get(what, _echo)(scope, receive, send)

    async def _http(self, what: str, scope: Scope, receive: Receive, send: Send) -> None:
        await HTTP.get(what, _page)(scope, receive, send)

    async def _set_up(self, scope: Scope) -> None:
        self.setups += 1
        self.most_setups = max(self.most_setups, self.setups)
        try:
            await asyncio.sleep(float(parse_qs(scope["query_string"].decode())["s"][0]))
        finally:
            self.setups -= 1

    def _note(self, decision: Decision) -> None:
        self.decisions[" ".join(filter(None, (decision.outcome, decision.reason)))] += 1


async def _accept(receive: Receive, send: Send) -> None:
    assert (await receive())["type"] == "websocket.connect"
    await send({"type": "websocket.accept"})


async def _echo(scope: Scope, receive: Receive, send: Send) -> None:
    await _accept(receive, send)
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


async def _stream(scope: Scope, receive: Receive, send: Send) -> None:
    await _accept(receive, send)
    while True:
        await send({"type": "websocket.send", "text": "x" * 100})
        await asyncio.sleep(0.002)


async def _raise_before(scope: Scope, receive: Receive, send: Send) -> None:
    raise RuntimeError("the app failed before it accepted")


async def _raise_after(scope: Scope, receive: Receive, send: Send) -> None:
    await _accept(receive, send)
    raise RuntimeError("the app failed after it had accepted")


async def _return(scope: Scope, receive: Receive, send: Send) -> None:
    """Never accepts."""


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "websocket.close", "code": 4000})


async def _close(scope: Scope, receive: Receive, send: Send) -> None:
    await _accept(receive, send)
    await send({"type": "websocket.close", "code": 4001, "reason": "done"})


async def _close_twice(scope: Scope, receive: Receive, send: Send) -> None:
    await _close(scope, receive, send)
    await send({"type": "websocket.close", "code": 4002})


async def _app_1013(scope: Scope, receive: Receive, send: Send) -> None:
    await _accept(receive, send)
    await send({"type": "websocket.close", "code": 1013, "reason": "the app's own"})


async def _deaf(scope: Scope, receive: Receive, send: Send) -> None:
    """Does not care that its client has left."""
    await _accept(receive, send)
    while (await receive())["type"] != "websocket.disconnect":
        pass
    with contextlib.suppress(OSError):
        await send({"type": "websocket.send", "text": "still here?"})
    await asyncio.sleep(0.2)


async def _cancelled(scope: Scope, receive: Receive, send: Send) -> None:
    await _accept(receive, send)
    asyncio.get_running_loop().call_later(0.01, asyncio.current_task().cancel)  # type: ignore[union-attr]
    await receive()


WEBSOCKETS: dict[str, ASGIApp] = {
    "ws": _echo,
    "stream": _stream,
    "raise-before": _raise_before,
    "raise-after": _raise_after,
    "return": _return,
    "refuse": _refuse,
    "close": _close,
    "close-twice": _close_twice,
    "app-1013": _app_1013,
    "deaf": _deaf,
    "cancelled": _cancelled,
}


async def answer(send: Send, content: object, status: int = 200, kind: bytes = b"application/json") -> None:
    """A whole response."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    headers = [(b"content-type", kind), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def read_body(receive: Receive) -> bytes:
    """A whole request body."""
    body = b""
    while True:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the client left")
        body += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return body


async def _page(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, b"<!doctype html><title>page</title>", kind=b"text/html")


async def _body(scope: Scope, receive: Receive, send: Send) -> None:
    await answer(send, await read_body(receive), kind=b"application/octet-stream")


async def _events(scope: Scope, receive: Receive, send: Send) -> None:
    """Server-sent events until the client leaves."""
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    left = asyncio.ensure_future(_until_left(receive))
    while not left.done():
        await send({"type": "http.response.body", "body": b"data: tick\n\n", "more_body": True})
        await asyncio.wait((left,), timeout=0.01)


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


HTTP: dict[str, ASGIApp] = {"events": _events, "body": _body}


class _Switchboard:
    def __init__(self) -> None:
        self._sites: dict[str, Site] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        _, first, *rest = scope["path"].split("/")
        if first == "sites":
            await answer(send, self._administer(scope["method"], rest, await read_body(receive)))
        elif first in self._sites:
            scope["root_path"] = f"{scope.get('root_path', '')}/{first}"
            await self._sites[first].app(scope, receive, send)
        else:
            await _page(scope, receive, send)

    def _administer(self, method: str, path: list[str], body: bytes) -> object:
        name, *verb = path
        if method == "PUT":
            self._sites[name] = Site(json.loads(body))
        elif verb:
            arguments = [json.loads(body)] if body else []
            self._call(self._sites[name].gate, verb[0], *arguments)
        return self._sites[name].report()

    @staticmethod
    def _call(gate: Gate, verb: str, *arguments: float) -> None:
        if verb == "block":  # once the answer to this request is on its way
            asyncio.get_running_loop().call_later(0.05, lambda: time.sleep(*arguments))
        elif verb == "take_place":
            gate.let_past(LOCAL, exempt=True)
        else:
            getattr(gate, verb)(*arguments)


def switchboard() -> ASGIApp:
    """Any number of sites."""
    return _Switchboard()


def alone(**settings: Any) -> ASGIApp:
    """One site at `/`; `/healthz` and `/report` are its own, unguarded, unless `http_paths` say otherwise."""
    site = Site(settings)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http" and scope["path"] == "/report":
            await answer(send, site.report())
        else:
            await site.app(scope, receive, send)

    return app


async def _lifespan(receive: Receive, send: Send) -> None:
    for step in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{step}.complete"})
