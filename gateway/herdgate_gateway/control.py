"""`herdgate status`, `rate`, `fraction` and `drain`: look at a running gateway, change its admissions, and end it.

They ask the control socket of the settings, else its admin listener; `--socket` and `--url` name another one.
"""

import json
import os
import time
from pathlib import Path
from typing import Annotated

import typer

from herdgate_gateway.admin.client import AdminClient
from herdgate_gateway.admin.report import rate_text, report
from herdgate_gateway.errors import ConfigurationError, HerdgateError
from herdgate_gateway.listeners import Tcp, Unix, read_listen
from herdgate_gateway.settings import CONFIG_VARIABLE, load

__all__ = ["drain", "fraction", "rate", "status"]

SocketOption = Annotated[Path | None, typer.Option("--socket", help="Control socket. Default: admin.socket.")]
UrlOption = Annotated[
    str | None, typer.Option("--url", help="Admin listener, http://host:port. Default: admin.listen, without a socket.")
]
TokenOption = Annotated[
    str | None,
    typer.Option(
        "--token",
        help="For changes over HTTP. Default: admin.token, which no list of processes shows.",
    ),
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", envvar=CONFIG_VARIABLE, help="Settings of the gateway, TOML.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as JSON, and nothing else.")]

LOOK_S = 0.5
GONE = 3
"""Questions without an answer, one after the other, after which a gateway has ended."""

WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read here, not bound


def status(
    *,
    socket: SocketOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a running gateway admits, refuses and holds."""
    answer = _client(socket, url, token, config).status()
    typer.echo(json.dumps(answer, indent=2) if as_json else report(answer))


def rate(
    per_second: Annotated[
        str, typer.Argument(help="Admissions per second; 0: nobody. none: no limit; not in a fleet.")
    ],
    *,
    socket: SocketOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the rate of a running gateway, from now on; promises made stretch with it."""
    answer = _client(socket, url, token, config).change("rate", per_second)
    typer.echo(json.dumps(answer) if as_json else f"rate: {rate_text(answer.get('rate'))}")


def fraction(
    share: Annotated[str, typer.Argument(help="Share of client keys let past, 0 to 1; always the same ones.")],
    *,
    socket: SocketOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the share of client keys that a running gateway lets past, from now on."""
    answer = _client(socket, url, token, config).change("fraction", share)
    typer.echo(json.dumps(answer) if as_json else f"fraction: {answer.get('fraction')}")


def drain(
    *,
    deadline: Annotated[str | None, typer.Option(help="Seconds it may take. Default: drain.call_s.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Return once nobody is left, as a preStop hook has to.")] = False,
    socket: SocketOption = None,
    url: UrlOption = None,
    token: TokenOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move the sockets of a running gateway to others, one by one. It lets nobody in any more; SIGTERM ends it."""
    client = _client(socket, url, token, config)
    answer = client.drain(deadline)
    become = _wait_drained(client) if wait else "drain begun"
    typer.echo(json.dumps(answer) if as_json else become)


def _wait_drained(client: AdminClient) -> str:
    """Return once nobody is left, or the gateway has ended; what has become of it."""
    failures = 0
    while failures < GONE:
        time.sleep(LOOK_S)  # the counts are those of a moment ago
        try:
            drain = client.status().get("drain")
        except HerdgateError:
            failures += 1
            continue
        if drain is None:
            return "ended, and another gateway is there by now"
        if drain["state"] == "drained":
            return "drained"
        failures = 0
    return "ended"


def _client(socket: Path | None, url: str | None, token: str | None, config: Path | None) -> AdminClient:
    if socket is not None and url is not None:
        raise ConfigurationError("--url", url, "write either --url or --socket")
    admin = load({}, config, os.environ).admin.settings()
    token = admin.token if token is None else token
    if address := socket or url or admin.socket:
        return AdminClient(address, token)
    return AdminClient(_reachable(admin.listen), token)


def _reachable(listen: str | None) -> str | Path:
    """Where to connect to, for an address that somebody listens on."""
    match read_listen(listen, "admin.listen") if listen else None:
        case Unix(path):
            return Path(path)
        case Tcp(host, port) if port:
            host = WILDCARDS.get(host, host)
            return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        case _:
            raise ConfigurationError("admin.listen", listen, "nothing to connect to; write --socket or --url")
