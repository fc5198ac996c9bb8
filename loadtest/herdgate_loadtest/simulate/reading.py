"""Scenarios out of TOML files: every fault is one line, and all of them are told at once.

Rules: nothing is converted or guessed. The calendar's settings are judged by `Limits` itself, behaviours by the engine.
"""

import difflib
import math
import tomllib
from collections.abc import Mapping
from typing import Any

from herdgate.core.limits import Limits
from herdgate.core.numbers import LEAST_RATE, MOST_RATE
from herdgate_loadtest.engine import BEHAVIOURS, parse_behaviour
from herdgate_loadtest.errors import ConfigurationError, UnreadableError
from herdgate_loadtest.input_file import decoded, read_file
from herdgate_loadtest.simulate.scenario import Failure, GatewayDown, RateChange, Scenario, Worker, WorkerKilled
from herdgate_loadtest.simulate.table import Table

__all__ = ["KEYS", "MOST_CLIENTS", "parse_scenario", "read_scenario"]

MOST_CLIENTS = 10_000_000
_MOST_GATEWAYS, _MOST_WORKERS, _MOST_FAILURES = 1_000, 1_000, 10_000
_LONGEST_S = 1_000_000
_CALENDAR = ("burst", "hold_s", "grace_s", "hint_cap_s", "horizon_s")
KEYS = (
    *("clients", "rate", "seed", "spread_s", "max_wait_s", "max_held", "gateways", "answers_per_s", "until_s"),
    *("behaviours", "workers", "failures"),
    *_CALENDAR,
)
"""Keys of a scenario."""

_KINDS = {"gateway": ("at_s", "gateway", "for_s"), "worker": ("at_s", "worker", "for_s"), "rate": ("at_s", "rate")}
_ROUNDING = 1e-6  # of shares: a third, three times, is no whole


def read_scenario(file: str) -> Scenario:
    """The scenario in a file.

    Raises:
        UnreadableError: it cannot be opened, is no TOML, or something in it is wrong; it names every fault.
    """
    text = decoded(read_file(file))
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise UnreadableError(["is nested too deeply"]) from None
    except ValueError as error:
        raise UnreadableError([f"is not TOML: {error}"]) from None
    return parse_scenario(table)


def parse_scenario(content: Mapping[str, Any]) -> Scenario:
    """The scenario in a table.

    Raises:
        UnreadableError: names every fault.
    """
    table = Table(content, KEYS)
    gateways = table.whole("gateways", "a whole number of gateways", 1, least=1, most=_MOST_GATEWAYS)
    workers = _workers(table)
    until_s = table.number("until_s", "seconds", None, least=0.001, most=_LONGEST_S)
    scenario = Scenario(
        clients=table.whole("clients", "a whole number of clients", 1, least=1, most=MOST_CLIENTS, needed=True),
        limits=_limits(table),
        behaviours=_behaviours(table),
        seed=table.whole("seed", "a whole number", 1, least=0, most=(1 << 63) - 1),
        spread_s=table.number("spread_s", "seconds", 0.3, least=0, most=_LONGEST_S),
        max_wait_s=table.number("max_wait_s", "seconds", 0.5, least=0, most=_LONGEST_S),
        max_held=table.whole("max_held", "a whole number of handshakes", 1_000, least=0, most=MOST_CLIENTS),
        gateways=gateways,
        answers_per_s=table.number("answers_per_s", "answers per second", None, least=LEAST_RATE, most=MOST_RATE),
        workers=workers,
        failures=_failures(table, gateways, len(workers), until_s or _LONGEST_S),
        until_s=until_s,
    )
    if table.faults:
        raise UnreadableError(table.faults)
    return scenario


def _limits(table: Table) -> Limits:
    """The calendar's settings, without those that are wrong, so that others are judged too."""
    rate = table.number("rate", "admissions per second", 1.0, least=LEAST_RATE, most=MOST_RATE, needed=True)
    given = {name: table.values[name] for name in _CALENDAR if name in table.values}
    while True:
        try:
            return Limits(rate=rate, **given)
        except ConfigurationError as error:
            table.faults.append(str(error).replace(", or None for ", ", or leave it out for "))
            if given.pop(error.field, None) is None:  # a default that does not go with what was given
                given.clear()


def _behaviours(table: Table) -> dict[str, float]:
    shares: dict[str, float] = {}
    given = table.sub("behaviours", "write shares, as in obey = 1.0")
    if given is None:
        return {"obey": 1.0}
    before = len(table.faults)
    for name in given.values:
        try:
            behaviour = parse_behaviour(name)
        except ConfigurationError as error:
            near = difflib.get_close_matches(name, BEHAVIOURS, n=1)
            meant = f"did you mean {near[0]}? " if near and not name.startswith(near[0]) else ""
            table.faults.append(ConfigurationError("behaviours", name, meant + error.way_out))
            continue
        share = given.number(name, "a share of the clients", 0.0, least=0, most=1)
        shares[behaviour.name] = shares.get(behaviour.name, 0.0) + share
    total = math.fsum(shares.values())
    if len(table.faults) == before and abs(total - 1) > _ROUNDING:
        table.faults.append(f"behaviours: their shares add up to {total:g}; make them add up to 1")
    return shares


def _workers(table: Table) -> tuple[Worker, ...]:
    workers = tuple(
        Worker(
            capacity=each.whole("capacity", "a whole number of sockets", None, least=0, most=MOST_CLIENTS),
            latency_s=each.number("latency_s", "seconds", 0.0, least=0, most=_LONGEST_S),
        )
        for each in table.several("workers", ("capacity", "latency_s"), most=_MOST_WORKERS)
    )
    return workers or (Worker(),)


def _failures(table: Table, gateways: int, workers: int, until_s: float) -> tuple[Failure, ...]:
    tables = table.several("failures", most=_MOST_FAILURES)
    found = [_failure(each, gateways, workers, until_s) for each in tables]
    return tuple(failure for failure in found if failure is not None)


def _failure(table: Table, gateways: int, workers: int, until_s: float) -> Failure | None:
    kinds = [kind for kind in _KINDS if kind in table.values]
    if len(kinds) != 1:
        what = " and ".join(kinds) or "nothing"
        table.faults.append(ConfigurationError(table.name, what, "write one of gateway, worker and rate"))
        return None
    (kind,) = kinds
    table.refuse_unknown(_KINDS[kind])
    at_s = table.number("at_s", "seconds", 0.0, least=0, most=until_s, needed=True)
    if kind == "rate":
        return RateChange(at_s, table.number("rate", "admissions per second", 0.0, least=0, most=MOST_RATE))
    for_s = table.number("for_s", "seconds", None, least=0, most=_LONGEST_S)
    if kind == "gateway":
        number = table.whole("gateway", "the number of a gateway", 1, least=1, most=gateways)
        return GatewayDown(at_s, number, for_s)
    return WorkerKilled(at_s, table.whole("worker", "the number of a worker", 1, least=1, most=workers), for_s)
