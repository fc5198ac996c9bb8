"""From settings to the numbers that are judged: seconds, counts and codes, and what one setting says about another."""

import math

from herdgate_loadtest.vet.model import (
    FATAL_CLOSE_CODES,
    FATAL_STATUSES,
    Client,
    Policy,
    Stage,
    Strategy,
    Trigger,
)
from herdgate_loadtest.vet.settings import Settings

__all__ = ["client_of"]


def client_of(settings: Settings) -> Client:
    """The numbers behind the settings; seconds from milliseconds."""
    strategy = _strategy(settings)
    return Client(
        client_id=settings.client_id or "",
        strategy=strategy,
        jitter=settings.jitter,
        initial_s=settings.initial_interval_ms / 1e3,
        multiplier=settings.multiplier,
        cap_s=_or_infinite(settings.max_interval_ms),
        delays_s=tuple(each / 1e3 for each in settings.delays_ms or ()),
        offset_s=settings.offset_ms / 1e3,
        least_s=_least_s(settings, strategy),
        first_at_once=settings.first_at_once,
        first_window_s=_seconds(settings.first_window_ms),
        jitter_from=settings.jitter_from_attempt,
        jitter_before_cap=settings.jitter_before_cap,
        caps_first=settings.cap_before_power,
        language=settings.language,
        max_retries=settings.max_retries,
        reset_on=settings.reset_on,
        reset_after_s=settings.reset_after_ms / 1e3,
        honours_hints=settings.honour_retry_after or settings.strategy == "hints",
        hint_jitter_s=settings.hint_jitter_ms / 1e3,
        hint_cap_s=_or_infinite(settings.hint_cap_ms),
        browser=settings.browser,
        schedule=settings.schedule,
        align_s=_seconds(settings.align_ms),
        schedule_spread_s=settings.schedule_spread_ms / 1e3,
        triggers=tuple(Trigger(each.name, _seconds(each.every_ms)) for each in settings.triggers),
        shared_backoff=settings.shared_backoff,
        close_codes=_policy(settings, "close_codes", FATAL_CLOSE_CODES),
        statuses=_policy(settings, "statuses", FATAL_STATUSES),
        stages=tuple(Stage(each.name, each.backoff, _seconds(each.timeout_ms)) for each in settings.stages),
        layers=tuple(settings.layers),
        said=_said(settings),
    )


def _said(settings: Settings) -> frozenset[str]:
    """What was said, and what follows from it: a fixed delay says how short it is."""
    said = set(settings.model_fields_set)
    if settings.strategy == "hints":
        said.add("honour_retry_after")
    if _strategy(settings) == "none" and "initial_interval_ms" in said:
        said.add("min_delay_ms")
    return frozenset(said)


def _strategy(settings: Settings) -> Strategy:
    if settings.strategy == "hints":
        return "full"
    if not settings.use_jitter:
        return "none"
    said = settings.model_fields_set
    return "proportional" if "jitter" in said and "strategy" not in said else settings.strategy


def _least_s(settings: Settings, strategy: Strategy) -> float:
    """The clamp is assumed for what is drawn only: a fixed delay says itself how long it is."""
    if "min_delay_ms" not in settings.model_fields_set and strategy == "none":
        return 0.0
    return settings.min_delay_ms / 1e3


def _seconds(ms: float | None) -> float | None:
    return None if ms is None else ms / 1e3


def _or_infinite(ms: float | None) -> float:
    return math.inf if ms is None else ms / 1e3


def _policy(settings: Settings, what: str, default: frozenset[int]) -> Policy:
    """What is said to be fatal is; without a word of either, what no second try mends."""
    retried, fatal = getattr(settings, f"retry_{what}"), getattr(settings, f"fatal_{what}")
    if f"retry_{what}" not in settings.model_fields_set:
        return Policy(default if fatal is None else frozenset(fatal))
    return Policy(frozenset(fatal or ()), None if retried is None else frozenset(retried))
