"""Kinds of settings, checked strictly: a bool is no number, "5" is no 5, and a fault says what to write instead.

What a part of the gateway checks is left to that part, field by field, so that a range stands in one place. A check
raises `ConfigurationError`; `herdgate_gateway.settings.faults` puts the dotted field in place of the name it carries.

TOML has no null: a field that may be without a value has a word for it (`Absent`).
"""

from collections.abc import Callable
from typing import Any

from pydantic import BeforeValidator, GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from herdgate.core.clients import AddressRules
from herdgate.core.errors import ConfigurationError
from herdgate.core.limits import MAX_HORIZON_S, ClientLimits, Limits
from herdgate.core.numbers import MOST_RATE, check_number, check_rate

__all__ = [
    "SECRETS",
    "Absent",
    "address_limit",
    "as_in",
    "as_tuple",
    "checked",
    "core_limit",
    "handshakes",
    "held",
    "process_count",
    "tier_limit",
    "wait_s",
    "whole_rate",
]

MOST_PROCESSES = 256

SECRETS = ("secrets", "token", "redis")
"""Fields whose values are never shown, however wrong they are."""

_LOOSEST_LIMITS: dict[str, Any] = {
    "rate": 1.0,
    "hold_s": 0.0,
    "grace_s": MAX_HORIZON_S,
    "hint_cap_s": 1.0,
    "horizon_s": MAX_HORIZON_S,
}
_LOOSEST_ADDRESSES: dict[str, Any] = {"ipv6_prefix": 128, "ipv6_network_prefix": 1}


class Absent:
    """Marks a field that takes a word for "no value", in the file as in the environment."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._read, handler(source))

    def _read(self, value: object) -> object:
        return None if value == self.word else value


def checked(check: Callable[[str, Any], object]) -> BeforeValidator:
    """Calls `check(name of the field, value)`, which raises `ConfigurationError`, and keeps the value."""

    def run(value: object, info: ValidationInfo) -> object:
        check(info.field_name or "", value)
        return value

    return BeforeValidator(run)


def as_in(make: Callable[..., object], **loosest: Any) -> BeforeValidator:
    """What `make` takes under the field's own name.

    Args:
        loosest: its other arguments, such that this one may have all of its range: how one field bounds another is
            checked when all are known.
    """
    return checked(lambda name, value: make(**(loosest | {name: value})))


def _read_tuple(value: object, info: ValidationInfo) -> object:
    if isinstance(value, tuple):
        return value
    if not isinstance(value, list):
        given = "a value not shown" if info.field_name in SECRETS else value
        raise ConfigurationError(info.field_name or "", given, "write a list, as in [...]")
    return tuple(value)


def _check_wait(name: str, value: object) -> None:
    check_number(name, value, least=0, unit="seconds")


def _check_held(name: str, value: object) -> None:
    check_number(name, value, least=0, unit="a whole number of handshakes", whole=True)


def _check_rate(name: str, value: object) -> None:
    """No gateway serves without a rate, so that is no way out."""
    if value is not None:
        check_number(name, value, least=0, most=MOST_RATE, unit="a number of admissions per second")
        check_rate(name, value, unit="a number of admissions per second")


def _check_processes(name: str, value: object) -> None:
    check_number(name, value, least=1, most=MOST_PROCESSES, unit="a whole number of processes", whole=True)


def _check_handshakes(name: str, value: object) -> None:
    check_number(name, value, least=1, unit="a number of TLS handshakes per second", none="four times the rate")


core_limit = as_in(Limits, **_LOOSEST_LIMITS)
tier_limit = as_in(ClientLimits, rate=1.0)
address_limit = as_in(AddressRules, **_LOOSEST_ADDRESSES)
wait_s = checked(_check_wait)
whole_rate = checked(_check_rate)
held = checked(_check_held)
handshakes = checked(_check_handshakes)
process_count = checked(_check_processes)
as_tuple = BeforeValidator(_read_tuple)
"""A list of TOML or JSON, as a tuple, so that nobody changes it later."""
