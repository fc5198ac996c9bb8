"""Wrong settings, through the front door: one line that names the field, the value and the way out."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from herdgate import AddressRules, AdmissionMiddleware, ClientLimits, ConfigurationError, Fleet, Gate, Limits
from herdgate.asgi import Receive, Scope, Send

RATE = Limits(rate=1)
NAN, INFINITE = float("nan"), float("inf")


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Guarded by nobody: no test here gets that far."""


async def slow_key(scope: Scope) -> str:
    return "key"


class SlowKey:
    async def __call__(self, scope: Scope) -> str:
        return "key"


middleware: Callable[..., object] = partial(AdmissionMiddleware, app, RATE)

MIDDLEWARE: list[tuple[str, list[object]]] = [
    ("websocket_paths", ["/ws", None, 5, [5], ["ws"], ["/a*b"], [""], [None], {"/ws": 1}.items()]),
    ("http_paths", ["/events", None, 5, ["events"], ["*/a"]]),
    ("preflight_path", ["", "ask", 5, ["/ask"], False]),
    ("addresses", ["10.0.0.0/8", ["10.0.0.0/8"], {}, False, AddressRules]),
    ("client_key", ["x-user", 5, slow_key, SlowKey(), False]),
    ("exempt_keys", ["probe", None, 5, [5], [None], ["probe"]]),
    (
        "allowed_origins",
        ["https://app.example", "*", 5, [5], [None], ["app.example"], ["https://a.example/path"], ["*"]],
    ),
    ("denial", ["", "json", None, 5, True, ["http"]]),
    ("statuses", [[], "rate", 5, ["rate"], False]),
    ("max_wait_s", [-1, NAN, INFINITE, None, "1", True, [1]]),
    ("max_held", [-1, 1.5, NAN, None, "1", True]),
    ("enforce", [None, 0, 1, "false", "no"]),
    ("on_decision", [5, "print", slow_key, SlowKey(), False]),
]

STATUSES: list[tuple[str, object]] = [
    ("statuses", {"rate_limited": 429}),
    ("statuses", {5: 429}),
    *[("statuses['rate']", {"rate": status}) for status in (200, 302, 600, 399, "429", 429.0, None, True)],
]

LIMITS: list[tuple[str, list[object]]] = [
    ("rate", [-1, NAN, INFINITE, -INFINITE, "5", True, [5]]),
    ("burst", [-1, 0, 0.5, NAN, INFINITE, "5", True]),
    ("max_pending", [-1, 1.5, NAN, "5", True]),
    ("max_open", [-1, 1.5, INFINITE, "5", False]),
    ("max_clients", [0, -1, 1.5, None, "5", True]),
    ("admit_fraction", [-0.1, 1.1, NAN, None, "half", True]),
    ("hold_s", [-1, NAN, INFINITE, 4_000, None, "5"]),
    ("grace_s", [-1, 1, NAN, 4_000, None]),
    ("hint_cap_s", [-1, NAN, 4_000, None]),
    ("horizon_s", [-1, 10, NAN, 4_000, None]),
    ("client", [None, 5, {"rate": 5}, ClientLimits]),
    ("anonymous", [5, {"open": 5}]),
    ("address", [None, "5"]),
    ("network", [None, []]),
]

CLIENT_LIMITS: list[tuple[str, list[object]]] = [
    ("rate", [-1, NAN, INFINITE, "5", True]),
    ("burst", [0, 0.9, NAN, "5", True]),
    ("open", [-1, 1.5, NAN, "5", True]),
]

ADDRESSES: list[tuple[str, list[object]]] = [
    ("trusted_proxies", ["10.0.0.0/8", ["10.0.0.1/8"], ["proxy"], [""], [None]]),
    ("exempt_networks", ["10.0.0.0/8", ["10.0.0.1/8"], ["fe80::/200"]]),
    ("forwarding_header", ["x-real-ip", "X-Forwarded-For", "", None, 5]),
    ("ipv6_prefix", [0, 129, 64.0, "64", None, True]),
    ("ipv6_network_prefix", [0, 65, 48.0, "48", None, True]),
]

GATE: list[tuple[str, list[object]]] = [
    ("processes", [0, -1, 1.5, 2.0, NAN, INFINITE, None, "2", True, 10**400, [2]]),
    ("secrets", [[], "short", ["short"], [b"short"], 5, [5], [None], {"a" * 32: 1}.items()]),
    ("route", ["", "a b", "a;b", "a/b", "ä", "a" * 65, "a\n", None, 5, b"chat"]),
]


def each(make: Callable[..., object], table: list[tuple[str, list[object]]]) -> list[Any]:
    return [
        pytest.param(make, name, value, id=f"{name}={type(value).__name__ if callable(value) else ascii(value):.40}")
        for name, values in table
        for value in values
    ]


def check_error(error: ConfigurationError, field: str) -> None:
    text = str(error)
    assert text.startswith(f"{field}: got ")
    assert "; " in text, "and a way out"
    assert text.endswith(error.way_out)
    assert error.field == field
    assert "\n" not in text
    assert len(text) < 250
    assert isinstance(error, ValueError)
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None, "no traceback of ours before it"


@pytest.mark.parametrize(
    ("make", "name", "value"),
    [
        *each(middleware, MIDDLEWARE),
        *each(partial(Limits, rate=1), LIMITS[1:]),
        *each(Limits, LIMITS[:1]),
        *each(ClientLimits, CLIENT_LIMITS),
        *each(AddressRules, ADDRESSES),
        *each(partial(Gate, RATE), GATE),
        *each(middleware, GATE[:2]),
    ],
)
def test_wrong_setting_is_one_clear_line(make: Callable[..., object], name: str, value: object) -> None:
    with pytest.raises(ConfigurationError) as raised:
        make(**{name: value})
    check_error(raised.value, name)


@pytest.mark.parametrize(("field", "statuses"), STATUSES)
def test_wrong_status_names_its_reason(field: str, statuses: object) -> None:
    with pytest.raises(ConfigurationError) as raised:
        middleware(statuses=statuses)
    check_error(raised.value, field)


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("limits", lambda: AdmissionMiddleware(app)),
        ("limits", lambda: AdmissionMiddleware(app, 5)),  # type: ignore[arg-type]
        ("limits", lambda: AdmissionMiddleware(app, {"rate": 5})),  # type: ignore[arg-type]
        ("limits", lambda: Gate(None)),  # type: ignore[arg-type]
        ("limits", lambda: Gate(Gate(RATE))),  # type: ignore[arg-type]
        ("gate", lambda: AdmissionMiddleware(app, RATE, gate=Gate(RATE))),
        ("gate", lambda: AdmissionMiddleware(app, gate=Gate(RATE), secrets=["x" * 32])),
        ("gate", lambda: AdmissionMiddleware(app, gate=Gate(RATE), processes=2)),
        ("secrets", lambda: AdmissionMiddleware(app, RATE, processes=2)),
        ("secrets", lambda: Gate(RATE, processes=2)),
        ("gate", lambda: AdmissionMiddleware(app, gate=RATE)),  # type: ignore[arg-type]
        ("gate", lambda: AdmissionMiddleware(app, gate=5)),  # type: ignore[arg-type]
        ("app", lambda: AdmissionMiddleware(None, RATE)),  # type: ignore[arg-type]
        ("app", lambda: AdmissionMiddleware("myapp:app", RATE)),  # type: ignore[arg-type]
    ],
)
def test_wrong_parts_are_one_clear_line(field: str, make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError) as raised:
        make()
    check_error(raised.value, field)


@pytest.mark.parametrize("secrets", [["too short"], "too short", [b"too short"], {"my": "secret"}, 12345])
def test_message_about_a_secret_never_shows_it(secrets: object) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Gate(RATE, secrets=secrets)  # type: ignore[arg-type]
    text = str(raised.value)
    for part in ("too short", "secret'", "12345"):
        assert part not in text


def test_value_and_way_out_are_both_in_the_line() -> None:
    with pytest.raises(ConfigurationError) as raised:
        middleware(max_wait_s=-0.5)
    assert str(raised.value) == "max_wait_s: got -0.5; write seconds, 0 or more"


def test_zero_and_none_mean_what_they_say() -> None:
    Limits(rate=0, max_pending=0, max_open=0, client=ClientLimits(rate=0, open=0))
    Limits(rate=None, burst=None, max_pending=None, max_open=None, anonymous=None, client=ClientLimits())
    AdmissionMiddleware(app, RATE, max_wait_s=0, max_held=0, statuses=None, allowed_origins=None, preflight_path=None)
    AdmissionMiddleware(app, RATE, websocket_paths=[], http_paths=(), allowed_origins=[], exempt_keys=set())


FLEET = Fleet("redis://:hidden@127.0.0.1:1", "chat", rate_min=5)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            {"gate": Gate(RATE), "store": FLEET},
            "gate: got store beside it; give it to the gate itself: Gate(limits, fleet=",
        ),
        ({"gate": Gate(RATE), "store": "redis://:hidden@a"}, "gate: got store beside it; give it to the gate itself: "),
        ({"gate": Gate(RATE), "limits": RATE}, "gate: got limits beside it; give it to the gate itself: Gate(limits)"),
        (
            {"gate": Gate(RATE), "secrets": ["hidden"], "processes": 2},
            "gate: got secrets and processes beside it; give it to the gate itself: Gate(limits, secrets=...",
        ),
        ({"limits": Limits(rate=9), "store": FLEET, "processes": 2}, "processes: got 2; leave it out beside store: "),
        ({"limits": RATE, "store": FLEET}, "rate_min: got 5; write a number up to the rate, 1"),
        (
            {"limits": RATE, "store": "redis://:hidden@a:x"},
            "store: got redis://***@a:***; write a port from 1 to 65535",
        ),
        ({"limits": RATE, "store": 7}, "store: got a value of type int; write redis://"),
    ],
)
def test_what_does_not_go_with_a_store_is_named(settings: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        AdmissionMiddleware(app, **settings)
    check_error(raised.value, raised.value.field)
    assert str(raised.value).startswith(line)
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"redis": None}, "redis: got None; write redis://"),
        ({"name": "ch at"}, "name: got 'ch at'; write 1 to 64 letters, digits, ., - and _"),
        ({"fail": "shut"}, "fail: got 'shut'; write local_share, closed or open"),
        (
            {"rate_min": -1},
            "rate_min: got -1; write a number of admissions per second, from 0 to 1_000_000_000, or None for a",
        ),
    ],
)
def test_wrong_setting_of_a_fleet_is_one_line(settings: dict[str, Any], line: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Fleet(**{"redis": "redis://a", **settings})
    assert str(raised.value).startswith(line)
