"""HERDGATE_* in the environment: how texts become values, and which variables are none of ours."""

import os

import pytest

from herdgate_gateway.settings import Settings, load
from tests.herdgate_gateway.test_settings import SECRET, faults_of


def value_of(settings: Settings, field: str) -> object:
    value: object = settings
    for name in field.split("."):
        value = getattr(value, name)
    return value


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("RATE", "250", "rate", 250.0),
        ("RATE", "2.5e2", "rate", 250.0),
        ("RATE", "none", "rate", None),
        ("MAX_OPEN", "10", "max_open", 10),
        ("MAX_OPEN", "none", "max_open", None),
        ("ENFORCE", "false", "enforce", False),
        ("ENFORCE", "0", "enforce", False),
        ("ENFORCE", "Off", "enforce", False),
        ("ENFORCE", "yes", "enforce", True),
        ("LISTEN", "127.0.0.1:1", "listen", ("127.0.0.1:1",)),
        ("LISTEN", "127.0.0.1:1, [::1]:2,", "listen", ("127.0.0.1:1", "[::1]:2")),
        ("LISTEN", '["unix:/run/a,b.sock"]', "listen", ("unix:/run/a,b.sock",)),
        ("WORKERS", "[]", "workers", ()),
        ("ALLOWED_ORIGINS", "any", "allowed_origins", "any"),
        ("ALLOWED_ORIGINS", "https://a.example", "allowed_origins", ("https://a.example",)),
        ("HEALTH_PATH", "off", "health_path", None),
        ("HEALTH_PATH", "/alive", "health_path", "/alive"),
        ("FORWARDING_HEADER", "forwarded", "forwarding_header", "forwarded"),
        ("ADMIN__LISTEN", "off", "admin.listen", None),
        ("ADMIN__LISTEN", "[::1]:9901", "admin.listen", "[::1]:9901"),
        ("ADMIN", '{"listen": "127.0.0.1:1"}', "admin.listen", "127.0.0.1:1"),
        ("RELAY__IDLE_S", "none", "relay.idle_s", None),
        ("RELAY__MAX_QUEUE", "1", "relay.max_queue", 1),
        ("RELAY__MAX_MESSAGE_BYTES", "5", "relay.max_fragment_bytes", 5),
    ],
)
def test_text_becomes_the_kind_of_its_field(name: str, text: str, field: str, value: object) -> None:
    found = value_of(load({}, None, {f"HERDGATE_{name}": text}), field)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "field"),
    [
        ("RATE", "fast", "rate"),
        ("HEALTH_PATH", "/\udcff", "health_path"),
        ("RATE", "nan", "rate"),
        ("RATE", "inf", "rate"),
        ("RATE", "true", "rate"),
        ("MAX_OPEN", "1.5", "max_open"),
        ("ENFORCE", "maybe", "enforce"),
        ("LISTEN", '["a', "listen"),
        ("LISTEN", '[["127.0.0.1:1"]]', "listen"),
        ("LISTEN", ",", "listen"),
        ("ADMIN", "off", "admin"),
        ("ADMIN", "[1]", "admin"),
        ("ROUTES", "default", "routes"),
        ("ROUTES", "{}", "routes"),
        ("ROUTES", "[1]", "routes[0]"),
        ("ROUTES", "[]", "routes"),
        ("ROUTES", '[{"name": "a", "max_open": "5"}]', "routes[0].max_open"),
    ],
)
def test_text_that_is_no_value_names_field_and_variable(name: str, text: str, field: str) -> None:
    (line,) = faults_of(environ={f"HERDGATE_{name}": text})
    assert line.startswith(f"{field}: got ")
    assert line.endswith(f"(env HERDGATE_{name})")


def test_variable_for_one_value_holds_over_the_table() -> None:
    environ = {"HERDGATE_RELAY__SETUP_S": "2", "HERDGATE_RELAY": '{"setup_s": 1, "close_s": 1}'}
    settings = load({}, None, environ)
    assert (settings.relay.setup_s, settings.relay.close_s) == (2, 1)
    assert settings.sources["relay.setup_s"] == "env HERDGATE_RELAY__SETUP_S"
    assert settings.sources["relay.close_s"] == "env HERDGATE_RELAY"


def test_empty_variable_is_unset() -> None:
    assert load({}, None, {"HERDGATE_RATE": "", "HERDGATE_NOTHING": ""}) == load({}, None, {})


def test_other_variables_are_left_alone() -> None:
    assert load({}, None, {"RATE": "5", "herdgate_rate": "5", "HERDGATE_CONFIG": "/etc/h.toml"}).rate is None
    load({}, None, {name: text for name, text in os.environ.items() if not name.startswith("HERDGATE_")})


@pytest.mark.parametrize(
    "name",
    [
        "HERDGATE_SERVICE_HOST",
        "HERDGATE_SERVICE_PORT",
        "HERDGATE_SERVICE_PORT_HTTP",
        "HERDGATE_PORT",
        "HERDGATE_PORT_8000_TCP",
        "HERDGATE_PORT_8000_TCP_ADDR",
        "HERDGATE_ADMIN_SERVICE_HOST",
        "HERDGATE_ADMIN_PORT_9901_TCP_PROTO",
    ],
)
def test_what_kubernetes_tells_of_a_service_called_herdgate_is_no_setting(name: str) -> None:
    assert load({}, None, {name: "tcp://10.0.0.1:8000"}) == load({}, None, {})


@pytest.mark.parametrize(
    ("name", "way_out"),
    [
        ("HERDGATE_RAET", "did you mean HERDGATE_RATE?"),
        ("HERDGATE_RELAY_SETUP_S", "did you mean HERDGATE_RELAY__SETUP_S?"),
        ("HERDGATE_SECRET", "did you mean HERDGATE_SECRETS?"),
        ("HERDGATE_Rate", "did you mean HERDGATE_RATE?"),
        ("HERDGATE_ROUTES__0__NAME", "write all routes as JSON in HERDGATE_ROUTES"),
        ("HERDGATE_RATE__MAX", "did you mean HERDGATE_RATE?"),
        ("HERDGATE_QQQQQ", "unset it; HERDGATE_RELAY__SETUP_S is setup_s of [relay]"),
    ],
)
def test_unknown_variable_is_answered_with_the_one_that_was_meant(name: str, way_out: str) -> None:
    assert faults_of(environ={name: "hunter2"}) == [f"{name}: got a name that is no setting; {way_out}"]


def test_secrets_are_split_and_never_shown_in_a_fault() -> None:
    settings = load({}, None, {"HERDGATE_SECRETS": f"{SECRET},{SECRET}2"})
    assert settings.secret_texts() == (SECRET, f"{SECRET}2")
    assert SECRET not in repr(settings)
    for name, text in [("SECRETS", "hunter2"), ("SECRETS", '["hunter2'), ("ADMIN__TOKEN", "hunter2\n")]:
        (line,) = faults_of(environ={f"HERDGATE_{name}": text})
        assert "hunter2" not in line


def test_flags_given_as_text_are_read_like_variables() -> None:
    settings = load({"relay.max_queue": "3", "listen": ["127.0.0.1:5"], "workers": "ws://a:1,ws://b:1"}, None, {})
    assert settings.relay.max_queue == 3
    assert settings.listen == ("127.0.0.1:5",)
    assert settings.workers == ("ws://a:1", "ws://b:1")
    assert faults_of({"routes": "x"})[0].endswith("(flag)")
    assert faults_of({"relay.setup": 5}) == ["relay.setup: got a name that is no setting; did you mean setup_s? (flag)"]
