"""The settings of a client as people write them, validated by pydantic.

Rules: nothing is converted but a whole number to a float; an unknown key, a wrong type and a contradiction are
faults, one line each, under the key as it was written. 0 is a value, null is one where it means "no limit", a key
that is absent is neither.
"""

import math
import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from herdgate_loadtest.vet.model import Language, ResetOn

__all__ = ["Settings"]

_LONGEST_MS = 1e10  # four months
_MOST_ITEMS = 1000
_match_cron = re.compile(r"@(?:hourly|daily|midnight|weekly|monthly|yearly|annually)|\S+(?:[ \t]+\S+){4,5}").fullmatch
_match_cron_field = re.compile(r"[\dA-Za-z*/,?#L-]+").fullmatch


def _no_limit(value: Any) -> Any:
    """Infinity, in formats that have it, is no limit."""
    return None if isinstance(value, float) and value == math.inf else value


def _share(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("write a share, 0 to 1; whether there is any jitter is use_jitter")
    return value


def _printable(value: str) -> str:
    if not value.isprintable():
        raise ValueError("write printable text, in one line")
    return value


def _cron(value: str) -> str:
    if not _match_cron(value.strip()) or not (value.startswith("@") or all(map(_match_cron_field, value.split()))):
        raise ValueError('write a cron line of 5 fields, such as "0 * * * *"')
    return value


def _named(value: Any) -> Any:
    """A trigger that is only a name."""
    return {"name": value} if isinstance(value, str) else value


def _all(value: Any) -> Any:
    """The word for no limit, of codes."""
    return None if value == "all" else value


Text = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Cron = Annotated[str, AfterValidator(_cron)]
Milliseconds = Annotated[float, Field(ge=0, le=_LONGEST_MS, allow_inf_nan=False)]
NoneOrMilliseconds = Annotated[Milliseconds | None, BeforeValidator(_no_limit)]
Tries = Annotated[int, Field(ge=0, le=10**9)]
Codes = Annotated[list[Annotated[int, Field(ge=0, le=4999)]], Field(max_length=_MOST_ITEMS)]
Statuses = Annotated[list[Annotated[int, Field(ge=100, le=599)]], Field(max_length=_MOST_ITEMS)]
AllOrCodes = Annotated[Codes | None, BeforeValidator(_all)]
AllOrStatuses = Annotated[Statuses | None, BeforeValidator(_all)]


class _Table(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class TriggerTable(_Table):
    """Something that dials."""

    name: Text
    every_ms: Annotated[float, Field(ge=1, le=_LONGEST_MS, allow_inf_nan=False)] | None = None


NamedTrigger = Annotated[TriggerTable, BeforeValidator(_named)]


class StageTable(_Table):
    """A step of a connection attempt."""

    name: Text
    backoff: bool = True
    timeout_ms: Milliseconds | None = None


class Settings(_Table):
    """Every setting, under our names; defaults are what is assumed."""

    client_id: Text | None = None
    strategy: Literal["none", "full", "equal", "proportional", "decorrelated", "hints"] = "full"
    use_jitter: bool = True
    jitter: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), BeforeValidator(_share)] = 0.5
    initial_interval_ms: Milliseconds = 1000.0
    multiplier: Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)] = 2.0
    max_interval_ms: NoneOrMilliseconds = 30_000.0
    delays_ms: Annotated[list[Milliseconds], Field(min_length=1, max_length=_MOST_ITEMS)] | None = None
    offset_ms: Milliseconds = 0.0
    min_delay_ms: Milliseconds = 100.0
    first_at_once: bool = False
    first_window_ms: Milliseconds | None = None
    jitter_from_attempt: Annotated[int, Field(ge=1, le=1000)] = 1
    jitter_before_cap: bool = False
    cap_before_power: bool = True
    language: Language | None = None
    max_retries: Annotated[Tries | None, BeforeValidator(_no_limit)] = None
    reset_on: ResetOn = "stable"
    reset_after_ms: Milliseconds = 30_000.0
    honour_retry_after: bool = True
    hint_jitter_ms: Milliseconds = 0.0
    hint_cap_ms: NoneOrMilliseconds = None
    browser: bool = False
    schedule: Cron | None = None
    align_ms: Annotated[float, Field(ge=1, le=_LONGEST_MS, allow_inf_nan=False)] | None = None
    schedule_spread_ms: Milliseconds = 0.0
    triggers: Annotated[list[NamedTrigger], Field(min_length=1, max_length=100)] = [TriggerTable(name="close")]
    shared_backoff: bool = True
    retry_close_codes: AllOrCodes = None
    fatal_close_codes: Codes | None = None
    retry_statuses: AllOrStatuses = None
    fatal_statuses: Statuses | None = None
    stages: Annotated[list[StageTable], Field(max_length=100)] = []
    layers: Annotated[list[Annotated[int, Field(ge=1, le=1000)]], Field(max_length=20)] = []

    @model_validator(mode="after")
    def _agree(self) -> Self:
        said = self.model_fields_set
        if "use_jitter" in said and "strategy" in said and self.use_jitter == (self.strategy == "none"):
            raise ValueError("use_jitter and strategy contradict each other; write one of them")
        if not self.use_jitter and "jitter" in said and self.jitter > 0:
            raise ValueError("use_jitter and jitter contradict each other; write one of them")
        if "jitter" in said and "strategy" in said and self.strategy not in {"proportional", "none"}:
            raise ValueError("jitter is a share of the delay, of the strategy proportional; leave it or strategy out")
        if self.strategy == "decorrelated" and self.delays_ms is not None:
            raise ValueError("delays_ms and strategy decorrelated contradict each other; write one of them")
        if self.strategy == "hints" and not self.honour_retry_after:
            raise ValueError("strategy hints and honour_retry_after contradict each other; write one of them")
        if self.reset_on != "stable" and {"reset_on", "reset_after_ms"} <= said:
            raise ValueError('reset_after_ms belongs to reset_on = "stable"; leave one of them out')
        return self
