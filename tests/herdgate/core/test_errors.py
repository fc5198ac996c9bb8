"""What a wrong setting is told: one line that names the field, what was given and the way out."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import pytest

from herdgate import AddressRules, ClientLimits, ConfigurationError, HerdgateError, Limits
from herdgate.core.answers import STATUS
from herdgate.core.errors import printable
from herdgate.core.numbers import LEAST_RATE
from herdgate.core.tickets import TicketSigner
from herdgate.denial import read_statuses
from herdgate.origins import OriginRules
from herdgate.paths import PathPatterns

SECRET = b"the secret nobody may read"

WRONG: dict[str, Any] = {
    "negative": -1,
    "a little negative": -1e-9,
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "bool": True,
    "number as text": "5",
    "text of two lines": "first\nsecond",
    "empty text": "",
    "bytes": b"5",
    "None": None,
    "huge int": 10**400,
    "int that cannot be printed": 10**5_000,
    "list of numbers": [7],
    "list of None": [None],
    "list of lists": [["/a"]],
    "dict": {"a": 1},
    "object": object(),
    "long text": "x" * 10_000,
}
"""Each of these is wrong for every setting, but for those listed with it."""


class Setting(NamedTuple):
    """One setting: how to give it, and which of the values above are right for it."""

    make: Callable[[Any], object]
    right: frozenset[str] = frozenset()


def setting(make: Callable[[Any], object], *right: str) -> Setting:
    return Setting(make, frozenset(right))


def of_limits(name: str, *right: str) -> Setting:
    return setting(lambda value: Limits(**{"rate": 1.0, name: value}), *right)


def of_client_limits(name: str, *right: str) -> Setting:
    return setting(lambda value: ClientLimits(**{name: value}), *right)


def of_addresses(name: str, *right: str) -> Setting:
    return setting(lambda value: AddressRules(**{name: value}), *right)


HUGE = ("huge int", "int that cannot be printed")

SETTINGS: dict[str, Setting] = {
    "Limits.rate": of_limits("rate", "None"),
    "Limits.burst": of_limits("burst", "None"),
    "Limits.max_pending": of_limits("max_pending", "None", *HUGE),
    "Limits.max_open": of_limits("max_open", "None", *HUGE),
    "Limits.max_memory_bytes": of_limits("max_memory_bytes", "None", *HUGE),
    "Limits.client": of_limits("client"),
    "Limits.anonymous": of_limits("anonymous", "None"),
    "Limits.address": of_limits("address"),
    "Limits.network": of_limits("network"),
    "Limits.max_clients": of_limits("max_clients"),
    "Limits.admit_fraction": of_limits("admit_fraction"),
    "Limits.classes": of_limits("classes"),
    "Limits.session_ttl_s": of_limits("session_ttl_s"),
    "Limits.hold_s": of_limits("hold_s"),
    "Limits.grace_s": of_limits("grace_s"),
    "Limits.hint_cap_s": of_limits("hint_cap_s"),
    "Limits.horizon_s": of_limits("horizon_s"),
    "ClientLimits.rate": of_client_limits("rate", "None"),
    "ClientLimits.burst": of_client_limits("burst", "None"),
    "ClientLimits.open": of_client_limits("open", "None", *HUGE),
    "ClientLimits.scope": of_client_limits("scope"),
    "AddressRules.trusted_proxies": of_addresses("trusted_proxies"),
    "AddressRules.forwarding_header": of_addresses("forwarding_header"),
    "AddressRules.ipv6_prefix": of_addresses("ipv6_prefix"),
    "AddressRules.ipv6_network_prefix": of_addresses("ipv6_network_prefix"),
    "AddressRules.exempt_networks": of_addresses("exempt_networks"),
    "TicketSigner.secrets": setting(TicketSigner),
    "PathPatterns.patterns": setting(lambda value: PathPatterns("patterns", value)),
    "OriginRules.allowed_origins": setting(OriginRules, "None"),
    "read_statuses.statuses": setting(read_statuses),
}

CASES = [
    pytest.param(name, wrong, id=f"{name} is {wrong}")
    for name, (_, right) in SETTINGS.items()
    for wrong in WRONG
    if wrong not in right
]


def assert_one_clear_line(error: ConfigurationError, field: str) -> None:
    text = str(error)
    assert text.startswith(f"{field}: got ")
    assert text.isprintable()
    assert len(text) < 250
    assert error.field == field
    assert text.endswith(f"; {error.way_out}")
    assert error.way_out.startswith(("write ", "give "))


@pytest.mark.parametrize(("name", "wrong"), CASES)
def test_wrong_setting_is_one_clear_line(name: str, wrong: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        SETTINGS[name].make(WRONG[wrong])
    assert_one_clear_line(raised.value, name.partition(".")[2])


@pytest.mark.parametrize(
    ("name", "right"), [pytest.param(n, r, id=f"{n} is {r}") for n, s in SETTINGS.items() for r in sorted(s.right)]
)
def test_right_setting_is_taken(name: str, right: str) -> None:
    SETTINGS[name].make(WRONG[right])


def test_table_holds_every_setting() -> None:
    named = {f"{kind.__name__}.{entry.name}" for kind in (Limits, ClientLimits) for entry in fields(kind)}
    named |= {f"AddressRules.{name}" for name in inspect.signature(AddressRules).parameters}
    assert named <= set(SETTINGS)


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (
            lambda: Limits(rate=-1),
            "rate: got -1; write a number of admissions per second, from 0 to 1_000_000_000, or None for no limit",
        ),
        (
            lambda: ClientLimits(rate=5e-324),
            f"rate: got 5e-324; write 0 for nobody, or {LEAST_RATE} or more",
        ),
        (
            lambda: ClientLimits(burst=0.5),
            "burst: got 0.5; write a number of arrivals, from 1 to 1_000_000_000, or None for one second of the rate",
        ),
        (
            lambda: Limits(rate=1, max_open=2.0),  # type: ignore[arg-type]
            "max_open: got 2.0; write a whole number of permits, 0 or more, or None for no limit",
        ),
        (
            lambda: Limits(rate=1, hold_s=5, grace_s=2),
            "grace_s: got 2; write seconds, hold_s at least, from 5 to 3_600",
        ),
        (
            lambda: Limits(rate=1, hint_cap_s=700),
            "horizon_s: got 600.0; write seconds, hint_cap_s at least, from 700 to 3_600",
        ),
        (
            lambda: Limits(rate=1, client=3),  # type: ignore[arg-type]
            "client: got 3; write ClientLimits(rate=..., burst=..., open=..., scope=...); ClientLimits() is no limit",
        ),
        (
            lambda: AddressRules(trusted_proxies=["10.0.0.1/8"]),
            'trusted_proxies: got 10.0.0.1/8; write networks such as "10.0.0.0/8", with no bits set behind the prefix',
        ),
        (
            lambda: AddressRules(ipv6_prefix=56, ipv6_network_prefix=64),
            "ipv6_network_prefix: got 64; write a number of bits from 1 to 56",
        ),
        (
            lambda: OriginRules(["https://*.example"]),
            'allowed_origins: got https://*.example; write origins such as "https://app.example": no path, no *',
        ),
        (
            lambda: read_statuses({"late": 503}),  # type: ignore[dict-item]
            f"statuses: got late; write reasons of {', '.join(STATUS)}",
        ),
        (
            lambda: read_statuses({"rate": 200}),
            "statuses['rate']: got 200; write an HTTP status from 400 to 599",
        ),
        (
            lambda: PathPatterns("http_paths", ["events"]),
            'http_paths: got events; write "/path", "/prefix/*" or "*"; nothing else stands for a part',
        ),
    ],
)
def test_message_names_the_field_the_value_and_the_way_out(make: Callable[[], object], line: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        make()
    assert str(raised.value) == line


@pytest.mark.parametrize(
    ("secrets", "given"),
    [
        (SECRET, "a bytes"),
        (SECRET.decode(), "a str"),
        ({SECRET}, "a set"),
        ([SECRET.decode()], "one that is a str"),
        ([SECRET, bytearray(SECRET)], "one that is a bytearray"),
        ([SECRET, SECRET[:15]], "one of 15 bytes"),
        ([SECRET, b""], "one of 0 bytes"),
        ([], "an empty list"),
        ({"key": SECRET}, "a dict"),
    ],
)
def test_message_about_secrets_shows_none_of_them(secrets: Any, given: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        TicketSigner(secrets)
    assert_one_clear_line(raised.value, "secrets")
    assert f"got {given};" in str(raised.value)
    assert SECRET.decode()[:8] not in str(raised.value)


def test_text_of_others_is_one_line_that_no_terminal_obeys() -> None:
    assert printable("plain, déjà vu") == "plain, déjà vu"
    assert printable("a\nb\x1b[2J\u202e") == r"a\nb\x1b[2J\u202e"


def test_configuration_error_is_a_herdgate_error_and_a_value_error() -> None:
    assert issubclass(ConfigurationError, HerdgateError)
    assert issubclass(ConfigurationError, ValueError)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a word", "a word"),
        ("", "''"),
        ("a\nb", r"'a\nb'"),
        (5, "5"),
        ("ws://me:secret@chat.example/ws", "ws://***@chat.example/ws"),
        ("ws://me:se@c?ret@chat.example/?token=secret", "ws://***@chat.example/?***"),
        (["ws://chat.example", "ws://secret@chat.example"], "['ws://***@chat.example']"),
        ("me:se cret@chat.example", "me:***@chat.example"),
        ("who@chat.example?", "who@chat.example?"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 77 + "..."),
        pytest.param(10**5_000, "a huge int", id="int that cannot be printed"),
    ],
)
def test_what_was_given_is_one_short_line(value: object, shown: str) -> None:
    assert str(ConfigurationError("field", value, "write less")) == f"field: got {shown}; write less"


def test_a_repr_of_several_lines_becomes_one() -> None:
    class Table:
        def __repr__(self) -> str:
            return "row\n  row"

    assert str(ConfigurationError("field", Table(), "write less")) == "field: got row row; write less"


def test_statuses_may_be_any_mapping() -> None:
    class Fixed(Mapping[Any, int]):
        def __getitem__(self, key: Any) -> int:
            return {"rate": 503}[key]

        def __iter__(self) -> Any:
            return iter(["rate"])

        def __len__(self) -> int:
            return 1

    assert read_statuses(Fixed())["rate"] == 503
