"""The command line of the engine: its options, checked once, with errors that name them as they were typed.

Rules: nothing is opened here. Whatever is wrong is a `HerdgateError` of one line.
"""

import argparse
import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, get_args

from herdgate_loadtest.engine.behaviour import parse_clients
from herdgate_loadtest.engine.config import CrowdConfig, loopback_sources
from herdgate_loadtest.engine.crowd import Cut
from herdgate_loadtest.errors import ConfigurationError, LoadtestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["as_typed", "config_of", "parse", "read_header", "read_sources"]

_TYPED = {
    "behaviour": "--clients",
    "clients": "--clients",
    "failover": "--failover",
    "first": "--first",
    "fixed": "--clients",
    "headers": "--header",
    "moves_on": "--failover",
    "origin": "--origin",
    "seed": "--seed",
    "sources": "--sources",
    "spread_s": "--spread",
    "subprotocol": "--subprotocol",
    "timeout_s": "--timeout",
    "url": "--url",
    "urls": "--url",
}
"""Settings of the crowd, as they are typed here."""

_NOTES = """\
clients, by what they do when they are refused:
  obey        come when told, with their ticket
  hint        come when told, without a ticket
  jitter      full jitter, 1 s doubling to 30 s, whatever they are told
  fixed       every second; fixed:15 every 15 s
  prompt      as obey, to the millisecond
  immediate   at once

how a crowd is cut off:
  close       every client says goodbye (close code 1001)
  reset       every client resets its connection, as if the network had gone
  observe     the clients do nothing: the server is expected to cut them off

exit code:
  0           everybody is back and the run is valid
  1           not so: the crowd did not come up, did not come back, or the record says why the run is not valid
  2           nothing was run: an option is wrong, or this machine cannot carry the crowd
  130         interrupted, or nobody reads the output any more
"""


def parse(argv: "Sequence[str] | None" = None) -> argparse.Namespace:
    """Read and check the options.

    Raises:
        ConfigurationError: names the option, what was given, the way out.
        LoadtestError: there is no such option, one is missing, or it has no such value.
    """
    options = _parser().parse_args(argv)
    _check("--rate", options.rate, "admissions per second, more than 0", above=0)
    _check("--ramp", options.ramp, "clients per second, more than 0", above=0)
    _check("--burst", options.burst, "admissions, 0 or more")
    _check("--hold", options.hold, "seconds, 0 or more")
    _check("--deadline", options.deadline, "seconds, 0 or more")
    if options.expect is not None and options.cut != "observe":
        raise ConfigurationError("--expect", options.expect, f"leave it out, or write --cut observe, not {options.cut}")
    return options


def config_of(options: argparse.Namespace) -> CrowdConfig:
    """The crowd that the options describe.

    Raises:
        ConfigurationError: names the option.
    """
    config = CrowdConfig(
        urls=tuple(options.url),
        clients=parse_clients(options.clients),
        sources=read_sources(options.sources),
        origin=options.origin,
        subprotocol=options.subprotocol,
        headers=tuple(read_header(text) for text in options.header),
        spread_s=options.spread,
        failover=options.failover,
        timeout_s=options.timeout,
        first=options.first,
        seed=options.seed,
    )
    if options.expect is not None and not 1 <= options.expect <= config.total:
        raise ConfigurationError("--expect", options.expect, f"write a number of clients, 1 to {config.total}")
    return config


def as_typed(error: ConfigurationError, others: "Mapping[str, str]" = MappingProxyType({})) -> str:
    """The message, with the setting's name as it is typed: here, or, of `others`, elsewhere."""
    typed = {**_TYPED, **others}
    return typed.get(error.field.partition(".")[0], error.field) + str(error).removeprefix(error.field)


class _Parser(argparse.ArgumentParser):
    """Tells what is wrong in one line, and leaves it to the caller to exit."""

    def error(self, message: str) -> NoReturn:
        raise LoadtestError(f"{message.removeprefix('argument ')}; --help shows every option")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m herdgate_loadtest.engine",
        description="One crowd, cut off once. The last line of its output is the result record, as JSON.",
        epilog=_NOTES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def add(option: str, text: str, default: Any = None, **more: Any) -> None:
        shown = "" if default is None else f" (default: {default})"
        parser.add_argument(option, help=text + shown, default=default, **more)

    add("--url", "ws://HOST:PORT/PATH; repeat it for several gateways", action="append", required=True)
    add("--clients", "a number (they obey), or as in obey=900,hint=50,fixed:15=50; see below", "1000")
    add("--sources", "number of loopback source addresses, or addresses with commas (default: the system chooses one)")
    add("--origin", "Origin header: makes the clients browsers (default: none)")
    add("--subprotocol", "subprotocol to offer (default: none)")
    parser.add_argument(
        "--header", action="append", default=[], help="one more header, as in 'X-User: {n}'; may be repeated"
    )
    add("--rate", "admissions per second the fleet may do", 500.0, type=_number)
    add("--burst", "admissions at once (default: one second of the rate)", type=_number)
    add("--ramp", "clients per second to begin with (default: the rate)", type=_number)
    add("--hold", "seconds between the last admission and the cut", 1.0, type=_number)
    add("--cut", "who cuts, and how; see below", "reset", choices=get_args(Cut))
    add("--expect", "with --cut observe: clients the server will cut off (default: all)", type=_whole)
    add("--spread", "seconds over which clients first come back", 0.3, type=_number)
    add("--timeout", "seconds a try may take", 10.0, type=_number)
    add("--deadline", "seconds to come up, on top of the ramp, and to recover", 120.0, type=_number)
    add("--first", "number of the first client, where several crowds are one", 0, type=_whole)
    add("--seed", "of every random choice", 1, type=_whole)
    parser.add_argument(
        "--failover", action="store_true", help="a client goes on to the next URL only when one has failed it"
    )
    parser.add_argument("--json-lines", action="store_true", help="print every event, not only the record")
    return parser


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"got {text}; write a number") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"got {text}; write a whole number") from None


def _check(option: str, value: float | None, unit: str, *, above: float | None = None) -> None:
    if value is None:
        return
    if not 0 <= value < math.inf or value == above:
        raise ConfigurationError(option, value, f"write {unit}")


def read_sources(text: str | None) -> tuple[str, ...]:
    """Addresses to dial from: their number on loopback, or themselves."""
    if not text:
        return ()
    if text.isdecimal():
        return loopback_sources(int(text))
    return tuple(part.strip() for part in text.split(",") if part.strip())


def read_header(text: str) -> tuple[str, str]:
    """Name and value of a header.

    Raises:
        ConfigurationError: it is none.
    """
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise ConfigurationError("headers", text, "write 'Name: value'")
    return name.strip(), value.strip()
