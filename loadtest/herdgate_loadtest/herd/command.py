"""`herdgate herd URL`: a herd on Locust, cut off in one instant; its recovery makes the exit code.

Rules: all options are judged before Locust is started (`run_locust`). With several processes and no master of their
own, they meet on a loopback port that is free.
"""

import socket
import sys
from typing import Annotated, Any

import typer

from herdgate_loadtest.errors import ConfigurationError
from herdgate_loadtest.herd.bounds import BOUNDS
from herdgate_loadtest.herd.options import OPTIONS, wanted
from herdgate_loadtest.herd.run_locust import run_locust, variable_of
from herdgate_loadtest.output_file import check_output

__all__ = ["herd"]

_DEFAULTS = {option.name: option.default for option in OPTIONS}
_TEXTS = {option.name: option.text for option in OPTIONS}


def _option(name: str, flag: str = "") -> Any:
    text = _TEXTS[name]
    return typer.Option(flag or f"--{name}", help=text[0].upper() + text[1:] + ".", envvar=variable_of(name))


def herd(
    urls: Annotated[
        list[str], typer.Argument(metavar="URL...", help="ws://HOST:PORT/PATH; several gateways: several.")
    ],
    *,
    clients: Annotated[str, _option("clients")] = _DEFAULTS["clients"],
    rate: Annotated[str, _option("rate")] = _DEFAULTS["rate"],
    burst: Annotated[str, _option("burst")] = "",
    ramp: Annotated[str, _option("ramp")] = "",
    hold: Annotated[str, _option("hold")] = _DEFAULTS["hold"],
    cut: Annotated[str, _option("cut")] = _DEFAULTS["cut"],
    kill_pid: Annotated[
        list[int] | None, typer.Option(help="With --cut kill: a process that is killed (SIGKILL). Repeat it for more.")
    ] = None,
    gateway: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="Admin listener (http://HOST:PORT) or control socket of a gateway. --cut drain tells the first one to "
            "drain; in the end all are asked for permits that nobody gave back. Repeat it for more.",
        ),
    ] = None,
    token: Annotated[str, _option("token")] = "",
    expect: Annotated[str, _option("expect")] = "",
    deadline: Annotated[str, _option("deadline")] = _DEFAULTS["deadline"],
    rounds: Annotated[str, _option("rounds")] = _DEFAULTS["rounds"],
    messages: Annotated[str, _option("messages")] = _DEFAULTS["messages"],
    sources: Annotated[str, _option("sources")] = "",
    origin: Annotated[str, _option("origin")] = "",
    header: Annotated[list[str] | None, typer.Option(help="One more header, 'X-User: {n}'. Repeat it.")] = None,
    failover: Annotated[
        bool, typer.Option("--failover", help="A client goes on to the next URL only when one has failed it.")
    ] = False,
    spread: Annotated[str, _option("spread")] = _DEFAULTS["spread"],
    timeout: Annotated[str, _option("timeout")] = _DEFAULTS["timeout"],
    seed: Annotated[str, _option("seed")] = _DEFAULTS["seed"],
    processes: Annotated[int, typer.Option(help="Processes that hold sockets on this machine.")] = 1,
    master: Annotated[bool, typer.Option("--master", help="Lead processes that join from other machines.")] = False,
    expect_workers: Annotated[int, typer.Option(help="With --master: how many join before it begins.")] = 1,
    worker: Annotated[bool, typer.Option("--worker", help="Join a master; it has all the other options.")] = False,
    master_host: Annotated[str, typer.Option(help="With --worker: where the master is.")] = "127.0.0.1",
    master_port: Annotated[int, typer.Option(help="Port of the master, for --master and --worker.")] = 5557,
    web: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Serve Locust's web page there, and begin when it says so.")
    ] = "",
    report: Annotated[str, typer.Option(help="Write an HTML report with plots to this file.")] = "",
    locust_html: Annotated[str, typer.Option(help="Write Locust's own HTML report to this file.")] = "",
    max_recovery_ratio: Annotated[float | None, typer.Option(help=f"Most {BOUNDS['recovery_ratio']}.")] = None,
    max_t95: Annotated[float | None, typer.Option(help=f"Most {BOUNDS['t95_s']}.")] = None,
    max_t100: Annotated[float | None, typer.Option(help=f"Most {BOUNDS['t100_s']}.")] = None,
    max_attempts: Annotated[float | None, typer.Option(help=f"Most {BOUNDS['attempts_per_client']}, a client.")] = None,
    max_peak: Annotated[float | None, typer.Option(help=f"Most {BOUNDS['peak_admitted_per_s']}.")] = None,
    max_denial_ms: Annotated[float | None, typer.Option(help=f"Most {BOUNDS['denial_p99_ms']}, p99.")] = None,
    max_failed: Annotated[int | None, typer.Option(help=f"Most {BOUNDS['failed']}.")] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each round's result record, and nothing else.")
    ] = False,
) -> None:
    """Hold many WebSockets, cut them off in the same instant, and see how they come back.

    Exit code: 0 all came back, the run is valid and within the bounds; 1 not; 2 nothing was run; 130 it was stopped by
    Ctrl-C, 143 by SIGTERM.
    """
    most = {
        "recovery_ratio": max_recovery_ratio,
        "t95_s": max_t95,
        "t100_s": max_t100,
        "attempts_per_client": max_attempts,
        "peak_admitted_per_s": max_peak,
        "denial_p99_ms": max_denial_ms,
        "failed": max_failed,
    }
    given = {
        "clients": clients,
        "rate": rate,
        "burst": burst,
        "ramp": ramp,
        "hold": hold,
        "cut": cut,
        "kill-pid": ",".join(map(str, kill_pid or ())),
        "gateway": " ".join(gateway or ()),
        "token": token,
        "expect": expect,
        "deadline": deadline,
        "rounds": rounds,
        "messages": messages,
        "sources": sources,
        "origin": origin,
        "header": "\n".join(header or ()),
        "failover": "yes" if failover else "",
        "spread": spread,
        "timeout": timeout,
        "seed": seed,
        "most": ",".join(f"{name}={bound!r}" for name, bound in most.items() if bound is not None),
        "report": report,
    }
    asked = wanted(urls, given)
    if processes < 1:
        raise ConfigurationError("--processes", processes, "write a number, 1 or more")
    if not worker:
        asked.plan.preflight(expect_workers if master else processes)
    place = _place(processes, master=master, worker=worker, host=master_host, port=master_port, many=expect_workers)
    look = ["--headless", "--only-summary"] if not web else _web(web)
    if locust_html:
        check_output("--locust-html", locust_html)
    sys.exit(run_locust(["--host", " ".join(urls), *place, *look], given, as_json=as_json, html=locust_html))


def _place(processes: int, *, master: bool, worker: bool, host: str, port: int, many: int) -> list[str]:
    """Locust's options that say which processes there are."""
    if worker:
        return ["--worker", "--master-host", host, "--master-port", str(port), *_processes(processes)]
    if master:
        return ["--master", "--master-bind-port", str(port), "--expect-workers", str(many)]
    if processes == 1:
        return []
    free = str(_free_port())
    return [
        "--master-bind-host",
        "127.0.0.1",
        "--master-bind-port",
        free,
        "--master-port",
        free,
        *_processes(processes),
    ]


def _processes(processes: int) -> list[str]:
    return ["--processes", str(processes)] if processes > 1 else []


def _web(place: str) -> list[str]:
    host, colon, port = place.rpartition(":")
    if not colon or not port.isdecimal():
        raise ConfigurationError("--web", place, "write HOST:PORT, as in 127.0.0.1:8089")
    return ["--web-host", host or "127.0.0.1", "--web-port", port]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
