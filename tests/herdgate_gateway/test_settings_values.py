"""Every field, with values it takes and values it does not. What is wrong is one line that names the field."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from herdgate_gateway.errors import SettingsError
from herdgate_gateway.settings import load
from herdgate_gateway.settings.model import Settings
from herdgate_gateway.settings.routes import RouteTable
from herdgate_gateway.settings.table import Table, inner_table, key_of

NAN, INFINITE = float("nan"), float("inf")
SECRET = "a secret of enough bytes"
NO_NUMBER: list[Any] = ["5", True, [], {}, NAN, INFINITE, -INFINITE]
NO_COUNT: list[Any] = [*NO_NUMBER, 1.5, -1]
NO_SECONDS: list[Any] = [*NO_NUMBER, -1]
NO_TEXT: list[Any] = [5, True, [], {}, ""]
NO_LIST: list[Any] = ["text", 5, True, {}, [5], [["/a"]]]
NETWORKS: tuple[list[Any], list[Any]] = ([[], ["10.0.0.0/8", "::1"]], [*NO_LIST, ["10.0.0.1/8"], ["proxy"], [""]])

Values = dict[str, tuple[list[Any], list[Any]]]

TOP: Values = {
    "listen": (
        [["127.0.0.1:0"], ["[::1]:80", "unix:/run/a.sock", "fd:3", "systemd"]],
        [*NO_LIST, [], ["127.0.0.1"], [":8000"], ["::1:80"], ["a:65536"], ["unix:"], ["fd:x"], ["a:1", "a:1"]],
    ),
    "listener": (["own", "asyncio"], [*NO_TEXT, "other"]),
    "workers": (
        [[], ["ws://127.0.0.1:9001", "ws://[::1]:9001", "ws://worker-0.workers:80"]],
        [
            *NO_LIST,
            *[
                [url]
                for url in ("127.0.0.1:9001", "wss://a:1", "ws://a:0", "ws://a:99999", "ws://a:1/path", "ws://", "")
            ],
            ["ws://u@a:1"],
            ["ws://a:1", "ws://a:1"],
        ],
    ),
    "processes": ([1, 4, 256], [*NO_COUNT, 0, 257, "none"]),
    "rate": ([0, 5, 0.5, 1e9, "none"], [*NO_NUMBER, -1, 1e10]),
    "burst": ([1, 1.5, "none"], [*NO_NUMBER, 0, 0.5]),
    "admit_fraction": ([0, 0.5, 1], [*NO_NUMBER, -0.1, 1.1, "none"]),
    "hold_s": ([0, 60], [*NO_SECONDS, 4_000, "none"]),
    "grace_s": ([1.5, 3_600], [*NO_SECONDS, 4_000]),
    "hint_cap_s": ([1, 600], [*NO_SECONDS, 0.5, 4_000]),
    "horizon_s": ([30, 3_600], [*NO_SECONDS, 0.5, 4_000]),
    "max_open": ([0, 5, "none"], NO_COUNT),
    "max_pending": ([0, 5, "none"], NO_COUNT),
    "max_memory_bytes": ([0, 1 << 40, "none"], NO_COUNT),
    "secrets": ([[SECRET], [SECRET, SECRET + "2"]], [*NO_LIST, [], ["short"], SECRET]),
    "trusted_proxies": NETWORKS,
    "forwarding_header": (["x-forwarded-for", "forwarded"], [*NO_TEXT, "x-real-ip", "X-Forwarded-For"]),
    "proxy_protocol": ([False], ["true", 1, 0, [], "none"]),
    "ipv6_prefix": ([48, 128], [*NO_COUNT, 0, 129]),
    "ipv6_network_prefix": ([1, 64], [*NO_COUNT, 0, 129]),
    "exempt_networks": NETWORKS,
    "allowed_origins": (
        ["same-host", "any", [], ["https://a.example"]],
        ["*", "https://a.example", 5, True, {}, [5], ["a.example"], ["https://*.example"]],
    ),
    "health_path": (["/", "/healthz", "off"], [*NO_TEXT, "healthz", "/a b", "/a?b", "/*", False]),
    "preflight_path": (["/ask", "off"], [*NO_TEXT, "ask", False]),
    "max_wait_s": ([0, 5], [*NO_SECONDS, "none"]),
    "max_held": ([0, 5], NO_COUNT),
    "enforce": ([True, False], ["true", 1, 0, [], "none"]),
    "tls": ([{}, {"certificate": "c.pem", "key": "k.pem"}], ["text", 5, [], [{}]]),
    "admin": ([{}], ["off", 5, [], False]),
    "relay": ([{}], ["text", 5, []]),
    "breaker": ([{}], ["text", 5, []]),
    "drain": ([{}], ["text", 5, []]),
    "fleet": ([{}], ["text", 5, []]),
    "leases": ([{}], ["text", 5, []]),
    "classes": ([[{"name": "a", "share": 1}], [{"name": "a"}]], ["text", 5, [], {}, {"name": "a"}]),
    "session_ttl_s": ([1, 86_400], [*NO_SECONDS, 0, "none"]),
    "routes": ([[{"name": "a"}]], ["text", 5, [], {}, {"name": "a"}]),
}

SECTIONS: dict[str, Values] = {
    "tls": {"certificate": ([], [*NO_TEXT, "c.pem"]), "key": ([], [*NO_TEXT, "k.pem"])}
    | {"handshakes_per_s": ([1, 500.5, "auto"], [*NO_NUMBER, -1, 0])},
    "admin": {
        "listen": (["off", "127.0.0.1:1", "unix:/run/a.sock"], [*NO_TEXT, "9901", "localhost", False]),
        "token": (["a token to control with"], [*NO_TEXT, "line\nbreak", " space"]),
        "socket": (["/run/herdgate.sock"], [*NO_TEXT, "a\0b"]),
        "stale_after_s": ([0.1, 5], [*NO_SECONDS, 0]),
    },
    "relay": {
        "max_message_bytes": ([1 << 20, 1 << 30], [*NO_COUNT, 0]),
        "max_fragment_bytes": ([1, 1 << 20], [*NO_COUNT, 0, 1 << 21]),
        "max_queue": ([1, 100], [*NO_COUNT, 0]),
        "setup_s": ([0.5, 60], [*NO_SECONDS, 0]),
        "idle_s": ([0.5, 3_600, "none"], [*NO_SECONDS, 0]),
        "close_s": ([0.5, 60], [*NO_SECONDS, 0, "none"]),
        "stall_s": ([0.5, 60], [*NO_SECONDS, 0]),
        "max_age_s": ([0.5, 86_400, "none"], [*NO_SECONDS, 0]),
        "mode": (["splice", "messages"], [*NO_TEXT, "bytes"]),
    },
    "breaker": {
        "failures": ([1, 5], [*NO_COUNT, 0]),
        "open_s": ([0, 5], NO_SECONDS),
        "ramp_s": ([0, 5], NO_SECONDS),
    },
}

REDIS = "redis://127.0.0.1:6379"
SECTIONS["fleet"] = {
    "redis": ([REDIS, "redis+cluster://a:1,b:2", "unix:///run/r.sock"], [*NO_TEXT, "127.0.0.1", "http://a"]),
    "name": (["chat", "A-z_0.1"], [*NO_TEXT, "a b", "a" * 65]),
    "fail": (["local_share", "closed", "open"], [*NO_TEXT, "shut"]),
    "rate_min": ([0, 5, "none"], [*NO_NUMBER, -1]),
    "setup_target_s": ([0.1, 5], [*NO_SECONDS, 0, "none"]),
    "pending_target": ([0.1, 1], [*NO_NUMBER, 0, 2, "none"]),
}

SECTIONS["drain"] = {
    **{f"{trigger}_s": ([0, 25, 86_400], [*NO_SECONDS, 86_401, "none"]) for trigger in ("sigterm", "call")},
    **{f"{trigger}_s": ([0, 25, 86_400], [*NO_SECONDS, 86_401, "none"]) for trigger in ("file", "sign", "settle")},
    "share": ([0.01, 1], [*NO_NUMBER, 0, 1.1, "none"]),
    "max_draining": ([1, 5, "half"], [*NO_COUNT, 0]),
    "message": (["a restart"], [*NO_TEXT, "a" * 65_537]),
    "file": (["/run/drain"], [*NO_TEXT, "a\0b"]),
    "aws": ([{}, {"ecs": True}], ["text", 5, []]),
}

GROUP = "arn:aws:elasticloadbalancing:eu-west-1:123456789012:targetgroup/web/0123456789abcdef"
SECTIONS["drain.aws"] = {
    "target_groups": ([[], [GROUP], [GROUP, GROUP + "0"]], [*NO_LIST, ["web"], [GROUP, GROUP], [GROUP + "/a"]]),
    "target": (
        ["10.0.1.5:8000", "10.0.1.5", "i-0123456789abcdef0", "[fd00::1]:80", "fd00::1"],
        [*NO_TEXT, "web", "web:80", "10.0.1.5:0", "10.0.1.5:x", "10.0.1:80", "[fd00::1]", "i-:80"],
    ),
    "ecs": ([True, False], ["true", 1, 0, [], "none"]),
    "every_s": ([1, 5, 60], [*NO_SECONDS, 0.5, 61, "none"]),
}

SECTIONS["leases"] = {
    "table": (["herd", "a.b-c_1"], [*NO_TEXT, "a b", "ab"]),
    "region": (["eu-west-1"], NO_TEXT),
    "endpoint_url": (["http://127.0.0.1:4566", "https://a.example"], [*NO_TEXT, "127.0.0.1:4566", "ftp://a"]),
}

TIER: tuple[list[Any], list[Any]] = ([{}, {"rate": 5, "burst": 9, "open": 1}], ["text", 5, [], [{}]])
ROUTE: Values = {
    "name": (["a", "A-z_0"], [*NO_TEXT, "a b", "a/b", "a" * 65]),
    "paths": ([["*"], ["/a", "/b/*"]], [*NO_LIST, ["a"], ["/a*b"]]),
    "max_open": ([0, 5, "none"], NO_COUNT),
    "max_pending": ([0, 5, "none"], NO_COUNT),
    "denial": (["auto", "http", "close"], [*NO_TEXT, "json"]),
    "statuses": ([{}, {"rate": 503, "auth": 403}], ["rate", 5, [], {"rate": 200}, {"rate": "503"}, {"late": 503}]),
    "max_wait_s": ([0, 5, "inherit"], [*NO_SECONDS, "none"]),
    "max_held": ([0, 5, "inherit"], NO_COUNT),
    "enforce": ([True, False, "inherit"], ["true", 1, 0, []]),
    "allowed_origins": (["same-host", "any", "inherit", ["https://a.example"]], ["*", 5, [5], ["a.example"]]),
    "client": TIER,
    "anonymous": TIER,
    "address": TIER,
    "network": TIER,
    "client_key": ([{"header": "x-user"}, {"cookie": "id"}], ["x-user", 5, [], {}, {"header": "a", "cookie": "b"}]),
    "client_class": ([{"header": "x-tier"}, {"cookie": "id"}], ["x-tier", 5, [], {}, {"header": "a", "cookie": "b"}]),
    "connection_id": (
        ["random", {"path": 2}, {"query": "id"}, {"header": "x-id"}, {"cookie": "id"}],
        ["query", 5, [], {}, {"path": 1, "query": "b"}],
    ),
    "duplicates": (["allow"], [*NO_TEXT, "both"]),
    "auth": ([{"url": "http://a/"}], ["jwt", 5, [], {}, {"url": "http://a/", "jwt": {"keys": "k"}}]),
}

TIERS: Values = {
    "rate": ([0, 5, "none"], [*NO_NUMBER, -1]),
    "burst": (["none"], [*NO_NUMBER, 0]),
    "open": ([0, 5, "none"], NO_COUNT),
    "scope": (["process", "fleet"], [*NO_TEXT, "all"]),
}
NAMES: tuple[list[Any], list[Any]] = ([], [*NO_TEXT, "a b", "a;b"])
KEYS: dict[str, Values] = {
    "client": TIERS,
    "anonymous": TIERS,
    "address": TIERS,
    "network": TIERS,
    "client_key": {"header": NAMES, "cookie": NAMES, "claim": NAMES},
    "client_class": {"header": NAMES, "cookie": NAMES, "claim": NAMES},
    "connection_id": {"path": ([1, 100], [*NO_COUNT, 0, "id"]), "query": NAMES, "header": NAMES, "cookie": NAMES},
}

AUTH: Values = {
    "jwt": ([], ["text", 5, [], {}]),
    "url": (["http://a/", "https://a.example:8443/check?x=1"], [*NO_TEXT, "a.example", "ftp://a/", "http://"]),
    "timeout_s": ([0.5, 5], [*NO_SECONDS, 0]),
    "max_busy": ([0, 5], NO_COUNT),
    "headers": ([[], ["cookie"]], [*NO_LIST, ["a b"], ["connection"]]),
    "response_headers": ([[], ["x-user"]], [*NO_LIST, ["a b"]]),
}
JWT: Values = {
    "keys": (["keys.json", "https://id.example/jwks"], [5, True, [], {}]),
    "algorithms": ([["RS256"], ["ES256", "EdDSA"], ["HS256"]], [*NO_LIST, [], ["none"], ["HS256", "RS256"]]),
    "audience": ([[], ["chat"]], ["chat", 5, True, {}, [5]]),
    "issuer": (["https://id.example"], [5, True, [], {}]),
    "leeway_s": ([0, 300], [*NO_SECONDS, 301]),
    "from": (["header", "query", "cookie"], [*NO_TEXT, "body"]),
    "name": (["x-token"], [*NO_TEXT, "ä"]),
}

CLASS: Values = {
    "name": (["resume", "A-z_0"], [*NO_TEXT, "a b", "a" * 65]),
    "share": ([0, 0.5, 1], [*NO_NUMBER, -1, 1.1, "none"]),
}

Case = tuple[str, dict[str, Any], Any]


def cases(*, good: bool) -> Iterator[Case]:
    """The dotted field, all settings, the value in them."""
    for field, values in TOP.items():
        for value in values[0 if good else 1]:
            yield field, {field: value}, value
    for section, fields in SECTIONS.items():
        for field, values in fields.items():
            for value in values[0 if good else 1]:
                yield f"{section}.{field}", in_section(section, field, value), value
    for field, values in CLASS.items():
        for value in values[0 if good else 1]:
            yield f"classes[0].{field}", {"classes": [{"name": "a", field: value}]}, value
    for place, route, value in route_cases(good=good):
        yield f"routes[0].{place}", {"routes": [{"name": "a", **route}]}, value


def in_section(section: str, field: str, value: object) -> dict[str, Any]:
    """All settings, with what the section cannot do without."""
    needed: dict[str, dict[str, object]] = {
        "fleet": {"redis": REDIS},
        "leases": {"table": "herd"},
        "drain.aws": {"target_groups": [GROUP]},
    }
    table = {**needed.get(section, {}), field: value}
    outer, _, inner = section.partition(".")
    return {outer: {inner: table} if inner else table}


def route_cases(*, good: bool) -> Iterator[Case]:
    for field, values in ROUTE.items():
        for value in values[0 if good else 1]:
            yield field, {field: value}, value
    for table, fields in KEYS.items():
        for field, values in fields.items():
            for value in values[0 if good else 1]:
                yield f"{table}.{field}", {table: {field: value}}, value
    for field, values in AUTH.items():
        for value in values[0 if good else 1]:
            yield f"auth.{field}", {"auth": {"url": "http://a/", field: value}}, value
    for field, values in JWT.items():
        for value in values[0 if good else 1]:
            yield f"auth.jwt.{field}", {"auth": {"jwt": {"keys": "k", field: value}}}, value


def parameters(*, good: bool) -> list[Any]:
    return [pytest.param(*case, id=f"{case[0]}={case[2]!a:.40}") for case in cases(good=good)]


def literal(value: object) -> str:
    """A value in TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {literal(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    return json.dumps(value) if isinstance(value, bool | str) else str(value)


def write(folder: Path, settings: dict[str, Any]) -> Path:
    file = folder / "herdgate.toml"
    file.write_text("".join(f"{key} = {literal(value)}\n" for key, value in settings.items()))
    return file


@pytest.mark.parametrize(("field", "settings", "value"), parameters(good=True))
def test_right_value_is_taken(tmp_path: Path, field: str, settings: dict[str, Any], value: object) -> None:
    load({}, write(tmp_path, settings), {"HERDGATE_HINT_CAP_S": "30"} if field == "horizon_s" else {})


@pytest.mark.parametrize(("field", "settings", "value"), parameters(good=False))
def test_wrong_value_is_one_line_that_names_the_field(
    tmp_path: Path, field: str, settings: dict[str, Any], value: object
) -> None:
    with pytest.raises(SettingsError) as raised:
        load({}, write(tmp_path, settings), {})
    (fault,) = raised.value.faults
    assert fault.field.startswith(field) or (field.startswith("tls.") and fault.field.startswith("tls."))
    text = str(fault)
    assert text.startswith(f"{fault.field}: got ")
    assert "; " in text, "and a way out"
    assert "\n" not in text
    assert len(text) < 300


def fields_of(table: type[Table], at: str = "") -> Iterator[str]:
    for name, field in table.model_fields.items():
        yield at + key_of(name, field)
        inner = inner_table(field.annotation)
        if inner is not None and inner is not RouteTable:
            yield from fields_of(inner, f"{at}{key_of(name, field)}.")


def test_no_field_is_left_out_of_the_tables() -> None:
    tried = {field.removeprefix("routes[0].") for field, _, _ in cases(good=False) if field.startswith("routes[0].")}
    assert tried == set(fields_of(RouteTable))
    tried = {field.replace("[0]", "") for field, _, _ in cases(good=False) if not field.startswith("routes[0].")}
    assert tried == set(fields_of(Settings))
