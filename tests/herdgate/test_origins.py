"""Which pages may connect."""

import pytest

from herdgate.core.errors import ConfigurationError
from herdgate.origins import OriginRules, is_same_host

ALLOWED = OriginRules(["https://app.example", "http://localhost:3000", "https://[2001:db8::1]:8443", "app://desktop"])
SAME_HOST = OriginRules("same-host")


@pytest.mark.parametrize(
    "origin",
    [
        "https://app.example",
        "https://app.example:443",
        "https://APP.example",
        "HTTPS://app.example",
        "http://localhost:3000",
        "https://[2001:db8::1]:8443",
        "app://desktop",
    ],
)
def test_listed_origin_passes_however_it_is_spelled(origin: str) -> None:
    assert ALLOWED.allow(origin, "any.host")
    assert ALLOWED.allow_sharing(origin, "any.host")


@pytest.mark.parametrize(
    "origin",
    [
        "http://app.example",
        "https://app.example:8443",
        "https://app.example:0",
        "https://app.example.evil.example",
        "https://evilapp.example",
        "https://sub.app.example",
        "https://app.example@evil.example",
        "https://user@app.example",
        "https://app.example/",
        "https://app.example?x",
        "https://app.example#x",
        "https://evil.example#https://app.example",
        "https://app.example:x",
        "https://app.example:99999",
        "https://[2001:db8::1",
        "http://localhost",
        "app.example",
        "//app.example",
        "https://",
        "https:app.example",
        "null",
        "",
        "*",
        "https://app.example https://evil.example",
    ],
)
def test_any_other_origin_is_refused(origin: str) -> None:
    assert not ALLOWED.allow(origin, "app.example")
    assert not ALLOWED.allow_sharing(origin, "app.example")


@pytest.mark.parametrize("rules", [ALLOWED, SAME_HOST, OriginRules(None), OriginRules([])])
def test_arrival_without_an_origin_comes_from_no_page_and_passes(rules: OriginRules) -> None:
    assert rules.allow(None, "app.example")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", ""])
def test_nothing_is_checked_without_rules_but_only_the_same_host_may_read(origin: str) -> None:
    rules = OriginRules(None)
    assert rules.allow(origin, "app.example")
    assert not rules.allow_sharing(origin, "app.example")
    assert rules.allow_sharing("https://app.example", "app.example")


def test_empty_list_lets_no_page_in() -> None:
    assert not OriginRules([]).allow("https://app.example", "app.example")


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://app.example", "app.example"),
        ("https://app.example", "APP.example:443"),
        ("http://app.example:80", "app.example"),
        ("http://localhost:3000", "localhost:3000"),
        ("http://[::1]:3000", "[::1]:3000"),
    ],
)
def test_same_host_is_the_host_and_port_of_the_host_header(origin: str, host: str) -> None:
    assert SAME_HOST.allow(origin, host)
    assert is_same_host(origin, host)


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://app.example", "app.example:80"),
        ("http://localhost:3000", "localhost"),
        ("http://localhost:3000", "localhost:8000"),
        ("https://evil.example", "app.example"),
        ("https://app.example", ""),
        ("https://app.example", "app.example/x"),
        ("https://app.example", "user@app.example"),
        ("https://app.example", "app.example:x"),
        ("null", "null"),
        ("", ""),
    ],
)
def test_any_other_host_is_not_the_same(origin: str, host: str) -> None:
    assert not SAME_HOST.allow(origin, host)
    assert not is_same_host(origin, host)


@pytest.mark.parametrize("setting", ["https://app.example/", "https://APP.example", "https://app.example:443"])
def test_setting_may_be_spelled_as_people_do(setting: str) -> None:
    assert OriginRules([setting]).allow("https://app.example", "")


@pytest.mark.parametrize(
    "setting",
    ["app.example", "*", "https://*", "https://*.example", "https://app.example/chat", "null", "", "https://"],
)
def test_setting_that_can_match_no_origin_is_an_error(setting: str) -> None:
    with pytest.raises(ConfigurationError, match=r"allowed_origins: got .*; write origins such as"):
        OriginRules([setting])


def test_one_origin_without_a_list_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r'; write "same-host", a list, or None for all'):
        OriginRules("https://app.example")
