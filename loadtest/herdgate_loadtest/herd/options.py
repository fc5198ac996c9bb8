"""The options of a herd, for Locust's command line, its web page and `herdgate herd` alike, and the plan they make.

Rules: everything arrives as text, as a web page has nothing else, and is judged here, in one line that names the
option. Locust's names have `--herd-` in front, and come from the environment as `HERD_...` too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from herdgate_loadtest.engine import CrowdConfig, parse_clients
from herdgate_loadtest.engine.options import as_typed, read_header, read_sources
from herdgate_loadtest.engine.target import Target
from herdgate_loadtest.errors import ConfigurationError, LoadtestError
from herdgate_loadtest.herd.bounds import BOUNDS
from herdgate_loadtest.herd.gateways import check_token
from herdgate_loadtest.herd.plan import HowToCut, Plan
from herdgate_loadtest.output_file import check_output

__all__ = ["OPTIONS", "SECRET", "Option", "Wanted", "wanted"]


class Option(NamedTuple):
    """One option: its name, its default and what it is."""

    name: str
    default: str
    text: str


OPTIONS = (
    Option("clients", "1000", "a number (they obey), or as in obey=900,hint=50,fixed:15=50"),
    Option("rate", "500", "admissions per second the fleet may do"),
    Option("burst", "", "admissions at once; empty: one second of the rate"),
    Option("ramp", "", "clients per second to begin with; empty: the rate; 0: all at once"),
    Option("hold", "1", "seconds between the last admission and the cut"),
    Option("cut", "reset", "reset, close (by the clients), kill (processes), drain (a gateway), observe (the server)"),
    Option("kill-pid", "", "ids of the processes to kill (SIGKILL), with commas; on the machine of Locust's master"),
    Option("gateway", "", "admin listeners, http://HOST:PORT, or control sockets, with spaces; drain: the first one"),
    Option("token", "", "the admin.token of the gateways, for drain over HTTP"),
    Option("expect", "", "clients that are cut off by kill, drain or observe; empty: at least one"),
    Option("deadline", "120", "seconds to come up, on top of the ramp, and to recover"),
    Option("rounds", "1", "how often the herd is cut off"),
    Option("messages", "0", "messages a second over all sockets, which the server has to echo"),
    Option("sources", "", "number of loopback source addresses, or addresses with commas; empty: the system's choice"),
    Option("origin", "", "Origin header: makes the clients browsers; empty: none"),
    Option("header", "", "more headers, one a line, as in 'X-User: {n}'"),
    Option("failover", "", "yes: a client goes on to the next URL only when one has failed it"),
    Option("spread", "0.3", "seconds over which clients first come back"),
    Option("timeout", "10", "seconds a try, or an echo, may take"),
    Option("seed", "1", "of every random choice"),
    Option("most", "", "bounds that make the exit code, as in recovery_ratio=1.15,failed=0"),
    Option("report", "", "file for an HTML report with plots; empty: none"),
    Option("record", "", "file to which each round's result record is added, as a JSON line; empty: none"),
)

SECRET = "token"  # noqa: S105 - its name
"""The option that no list of processes shall show: it is passed on in the environment."""

_PLACES = {"url": "URL", "urls": "URL"}
"""Settings of the crowd that are no option here."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that was asked for.

    Attributes:
        plan: what is played.
        token: of the plan's gateways; "": none.
        most: bounds, see `herdgate_loadtest.herd.bounds.BOUNDS`.
        report: file for the HTML report; "": none.
        record: file for the records; "": none.
    """

    plan: Plan
    token: str = field(repr=False)
    most: Mapping[str, float]
    report: str
    record: str


def wanted(urls: Sequence[str], given: Mapping[str, Any]) -> Wanted:
    """Read the options; those that are not given have their defaults.

    Raises:
        LoadtestError: names the option, what was given, the way out.
    """
    texts = {name: _text(given.get(name), default) for name, default, _ in OPTIONS}
    try:
        check_token(texts["token"])
        if texts["report"]:
            check_output("--report", texts["report"])
        return Wanted(_plan(urls, texts), texts["token"], _most(texts["most"]), texts["report"], texts["record"])
    except ConfigurationError as error:
        raise LoadtestError(as_typed(error, _PLACES)) from None


def _text(given: Any, default: str) -> str:
    return default if given is None else str(given).strip()


def _plan(urls: Sequence[str], texts: Mapping[str, str]) -> Plan:
    rate = _number("rate", texts)
    for url in urls:
        Target.of(url)
    crowd = CrowdConfig(
        urls=tuple(urls),
        clients=parse_clients(texts["clients"]),
        sources=read_sources(texts["sources"]),
        origin=texts["origin"] or None,
        headers=tuple(read_header(line) for line in texts["header"].splitlines() if line.strip()),
        failover=_yes("failover", texts),
        moves_on=texts["cut"] == "drain",
        spread_s=_number("spread", texts),
        timeout_s=_number("timeout", texts),
        seed=_whole("seed", texts),
    )
    return Plan(
        crowd,
        rate=rate,
        burst=_number("burst", texts) if texts["burst"] else max(1.0, rate),
        ramp=_number("ramp", texts) if texts["ramp"] else rate,
        hold_s=_number("hold", texts),
        cut=cast("HowToCut", texts["cut"]),  # the plan checks it
        kill_pids=tuple(_pid(part) for part in texts["kill-pid"].split(",") if part.strip()),
        gateways=tuple(texts["gateway"].split()),
        expect=_whole("expect", texts) if texts["expect"] else None,
        deadline_s=_number("deadline", texts),
        rounds=_whole("rounds", texts),
        messages=_number("messages", texts),
    )


def _most(text: str) -> dict[str, float]:
    most = {}
    for part in filter(None, text.split(",")):
        name, _, bound = part.strip().partition("=")
        if name not in BOUNDS:
            raise ConfigurationError("--most", part, f"write NAME=NUMBER, with a name of {', '.join(BOUNDS)}")
        most[name] = _number("most", {"most": bound})
    return most


def _number(name: str, texts: Mapping[str, str]) -> float:
    try:
        return float(texts[name])
    except ValueError:
        raise ConfigurationError(f"--{name}", texts[name], "write a number") from None


def _whole(name: str, texts: Mapping[str, str]) -> int:
    try:
        return int(texts[name])
    except ValueError:
        raise ConfigurationError(f"--{name}", texts[name], "write a whole number") from None


def _pid(text: str) -> int:
    return _whole("kill-pid", {"kill-pid": text.strip()})


def _yes(name: str, texts: Mapping[str, str]) -> bool:
    if texts[name].lower() not in ("", "no", "false", "yes", "true"):
        raise ConfigurationError(f"--{name}", texts[name], "write yes or no")
    return texts[name].lower() in ("yes", "true")
