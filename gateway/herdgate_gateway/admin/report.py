"""A status for people: small tables under a line that says how the gateway is."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["rate_text", "report"]

ROUTE_HEAD = ("route", "state", "rate", "tokens", "hints", "active", "pending", "held", "admitted", "denied")
CHILD_HEAD = ("child", "state", "pid", "restarts")
WORKER_HEAD = ("worker", "state", "active", "pending", "failures")


def report(status: Mapping[str, Any]) -> str:
    """The text of `/status.json`'s content, without a newline at its end."""
    lines = [_headline(status), *_drain(status.get("drain")), ""]
    lines += _table([ROUTE_HEAD, *(_route(name, gate) for name, gate in status["gates"].items())])
    lines += [line for name, gate in status["gates"].items() if (line := _reasons(name, gate))]
    fleet = next((gate["fleet"] for gate in status["gates"].values()), None)
    if fleet:
        lines += ["", _fleet(fleet)]
    if status["children"]:
        lines += ["", *_table([CHILD_HEAD, *map(_child, status["children"])])]
    if status["workers"]:
        head, row = (WORKER_HEAD, _worker) if not fleet else ((*WORKER_HEAD, "room"), _worker_of_fleet)
        lines += ["", *_table([head, *map(row, status["workers"])])]
    return "\n".join(lines)


def rate_text(rate: float | None) -> str:
    """A rate with its unit."""
    return "no limit" if rate is None else f"{rate:,.10g}/s"


def _headline(status: Mapping[str, Any]) -> str:
    state = "ready" if status["ready"] else f"not ready: {status['reason']}"
    return f"herdgate {status['version']}, up {_duration(status['uptime_s'])}, {state}"


def _drain(drain: Mapping[str, Any] | None) -> Sequence[str]:
    if drain is None:
        return ()
    how = f"drain by {drain['trigger']}: {drain['state']} for {drain['since_s']:.0f} s"
    return (f"{how}, {drain['open']:,} sockets open, {drain['left_s']:.0f} s left",)


def _route(name: str, gate: Mapping[str, Any]) -> Sequence[str]:
    fraction = "" if gate["admit_fraction"] == 1 else f", fraction {gate['admit_fraction']:g}"
    tokens = "-" if gate["tokens"] is None else f"{int(gate['tokens']):,}"
    counts = [sum(klass["hints"] for klass in gate["classes"].values())]
    counts += [gate[field] for field in ("open", "pending", "held", "admitted")] + [sum(gate["denied"].values())]
    return (name, gate["state"] + fraction, rate_text(gate["rate"]), tokens, *(f"{count:,}" for count in counts))


def _fleet(fleet: Mapping[str, Any]) -> str:
    if not fleet["is_up"]:
        return "fleet: Redis does not answer; this gateway decides alone"
    counts = (f"{fleet[field]:,} {word}" for field, word in (("open", "active"), ("pending", "pending")))
    return f"fleet: {_gateways(fleet['gateways'])}, {', '.join(counts)}"


def _gateways(count: int) -> str:
    return f"{count:,} gateway{'' if count == 1 else 's'}"


def _reasons(name: str, gate: Mapping[str, Any]) -> str:
    told = ", ".join(f"{count:,} {reason}" for reason, count in gate["denied"].items() if count)
    return f"{name} denied: {told}" if told else ""


def _child(child: Mapping[str, Any]) -> Sequence[str]:
    return (str(child["number"]), child["state"], str(child["pid"] or "-"), f"{child['restarts']:,}")


def _worker(worker: Mapping[str, Any]) -> Sequence[str]:
    counts = (worker[field] for field in ("open", "pending", "failures"))
    return (worker["url"], worker["state"], *(f"{count:,}" for count in counts))


def _worker_of_fleet(worker: Mapping[str, Any]) -> Sequence[str]:
    """With the sockets that it may still get of all gateways."""
    room = worker["room"]
    return (
        *_worker(worker),
        "-" if room is None else "full" if room == 0 else f"{room:,}" if room != "draining" else room,
    )


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _duration(seconds: float) -> str:
    minutes, rest_s = divmod(int(seconds), 60)
    hours, rest_min = divmod(minutes, 60)
    if hours:
        return f"{hours} h {rest_min} min"
    return f"{minutes} min {rest_s} s" if minutes else f"{rest_s} s"
