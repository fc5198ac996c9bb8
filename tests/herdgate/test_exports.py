"""The public API: its names, and how each of them is called. A change here is a change for users: see CHANGELOG.md."""

import inspect
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from typing import Any

import pytest

import herdgate

NAMES = {
    "AddressRules": "*, trusted_proxies=, forwarding_header=, ipv6_prefix=, ipv6_network_prefix=, exempt_networks=",
    "AdmissionClass": "name, share=",
    "AdmissionMiddleware": (
        "app, limits=, *, gate=, store=, secrets=, processes=, websocket_paths=, http_paths=, preflight_path=, "
        "addresses=, client_key=, exempt_keys=, client_class=, allowed_origins=, denial=, statuses=, max_wait_s=, "
        "max_held=, enforce=, on_decision="
    ),
    "ClassSnapshot": "hints, show_rate, admitted",
    "ClientLimits": "rate=, burst=, open=, scope=",
    "ConfigurationError": "field, given, way_out",
    "Decision": "outcome, client, path, reason=, retry_s=, enforced=",
    "Fleet": "redis, name=, fail=, rate_min=, setup_target_s=, pending_target=",
    "FleetSnapshot": "is_up, gateways, pending, open, calls, rooms=",
    "Gate": "limits, *, secrets=, route=, processes=, beside=, fleet=, clock=, wall_clock=, rng=",
    "GateSnapshot": (
        "state, rate, burst, tokens, classes, firm_s, admit_fraction, pending, open, held, admitted, denied, "
        "gone, unenforced, exempt, client_keys, fleet="
    ),
    "HerdgateError": None,
    "Limits": (
        "rate, burst=, max_pending=, max_open=, max_memory_bytes=, client=, anonymous=, address=, network=, "
        "max_clients=, admit_fraction=, classes=, session_ttl_s=, hold_s=, grace_s=, hint_cap_s=, horizon_s="
    ),
    "LoadReport": "app, fleet, *, name, capacity=",
    "Refused": "reason, status=, *, challenge=",
}

METHODS = {
    "AddressRules": {"client": "peer, forwarded=", "is_trusted": "address"},
    "AdmissionMiddleware": {},
    "Gate": {
        "aclose": "",
        "ask": "arrival, answer",
        "decide": "arrival",
        "drain": "",
        "holding": "denied",
        "let_past": "client, *, exempt",
        "invite": "klass=, *, firm",
        "is_session_token": "text",
        "refuse": "reason, klass=",
        "reserve": "arrival",
        "resume": "",
        "set_admit_fraction": "fraction",
        "session_token": "",
        "set_limits": "limits",
        "set_rate": "rate",
        "set_secrets": "secrets",
        "set_workers": "names",
        "snapshot": "",
        "start": "siblings=",
        "undo": "admitted",
    },
    "Limits": {"divided": "processes"},
    "LoadReport": {"aclose": "", "drain": "", "resume": ""},
}


def surface(call: Callable[..., Any]) -> str:
    """The parameters of a call: `name`, or `name=` where there is a default; `*` before those given by name only."""
    parts = []
    for parameter in inspect.signature(call).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        parts.append(parameter.name + ("" if parameter.default is parameter.empty else "="))
    return ", ".join(parts)


def test_names_are_these_and_sorted() -> None:
    assert herdgate.__all__ == sorted(NAMES)


@pytest.mark.parametrize("name", [name for name, called in NAMES.items() if called is not None])
def test_every_name_is_called_as_it_always_was(name: str) -> None:
    assert surface(getattr(herdgate, name)) == NAMES[name]


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_these_and_called_as_they_always_were(name: str) -> None:
    kind = getattr(herdgate, name)
    found = {
        method: surface(call).removeprefix("self").removeprefix(", ")
        for method, call in vars(kind).items()
        if inspect.isfunction(call) and not method.startswith("_")
    }
    assert found == METHODS[name]


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_documented(name: str) -> None:
    documented = inspect.getdoc(getattr(herdgate, name)) or ""
    assert len(documented) > 20
    kind = getattr(herdgate, name)
    if is_dataclass(kind):
        assert {field.name for field in fields(kind)} <= set(re.findall(r"^ +(\w+):", documented, re.MULTILINE))


@pytest.mark.parametrize("name", ["ClientLimits", "Decision", "GateSnapshot", "Limits"])
def test_values_are_frozen_and_have_no_room_for_more(name: str) -> None:
    kind = getattr(herdgate, name)
    assert kind.__dataclass_params__.frozen
    assert "__slots__" in vars(kind)


def test_errors_have_one_root() -> None:
    assert issubclass(herdgate.HerdgateError, Exception)
    assert herdgate.ConfigurationError.__bases__ == (herdgate.HerdgateError, ValueError)


def test_version_is_the_one_of_the_distribution() -> None:
    assert herdgate.__version__ == version("herdgate")
