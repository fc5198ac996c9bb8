"""What Autobahn's reports say, and where gateways differ from the worker that stands behind them.

A case has two verdicts: what became of its messages, and how the connection was closed. Both are compared.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

__all__ = ["Report", "Verdict", "differing", "failed", "is_allowed", "read_report", "table"]

SECTIONS = {
    1: "framing",
    2: "pings and pongs",
    3: "reserved bits",
    4: "opcodes",
    5: "fragmentation",
    6: "UTF-8",
    7: "closing",
    9: "sizes",
    10: "fragments of its own",
    12: "compression, payloads",
    13: "compression, parameters",
}
COMPRESSION = frozenset({12, 13})
COLUMNS = ("OK", "NON-STRICT", "INFORMATIONAL", "UNIMPLEMENTED", "FAILED")
CLEAN = frozenset({"OK", "INFORMATIONAL"})


class Verdict(NamedTuple):
    """Of one case, in Autobahn's words.

    Attributes:
        behavior: of the messages.
        close: of the closing handshake.
    """

    behavior: str
    close: str

    @property
    def column(self) -> str:
        """Where it is counted: FAILED too if only the closing handshake was not clean."""
        return self.behavior if self.behavior in COLUMNS and self.close in CLEAN else "FAILED"

    def __str__(self) -> str:
        return f"{self.behavior}, close {self.close}"


WITHOUT_COMPRESSION = Verdict("UNIMPLEMENTED", "OK")
"""What message mode may have in the sections on compression, for it agrees on no extension."""

RACES = frozenset({"3.4", "4.1.5", "4.2.5"})
"""Cases that send a message, then byte by byte a frame that breaks the protocol. OK is an echo that comes before the
breach is read, NON-STRICT one that does not: both conform, and the worker alone has now the one, now the other."""

WORKER_FAILS = frozenset({"7.1.5"})
"""Cases that the worker fails itself: for websockets a close frame between the fragments of a message is a breach."""

Report = Mapping[str, Verdict]
"""Verdicts by case: "6.4.1"."""


def read_report(folder: Path, target: str) -> Report:
    """The verdicts on a target, out of the `index.json` of a run.

    Raises:
        OSError, KeyError, ValueError: the run has not come to its end.
    """
    cases = json.loads((folder / "index.json").read_text())[target]
    return {case: Verdict(found["behavior"], found["behaviorClose"]) for case, found in cases.items()}


def differing(direct: Report, other: Report) -> Iterator[tuple[str, Verdict | None, Verdict | None]]:
    """Cases with another verdict than direct's, in order; None: it was not run."""
    for case in sorted({*direct, *other}, key=_place):
        if direct.get(case) != other.get(case):
            yield case, direct.get(case), other.get(case)


def is_allowed(target: str, case: str, verdict: Verdict | None) -> bool:
    """True if this target may have this verdict although direct has another one."""
    if case in RACES:
        return verdict in (Verdict("OK", "OK"), Verdict("NON-STRICT", "OK"))
    return target == "messages" and _section(case) in COMPRESSION and verdict == WITHOUT_COMPRESSION


def failed(direct: Report) -> list[str]:
    """Cases that the worker fails, and is not known to."""
    return [case for case, verdict in direct.items() if verdict.column == "FAILED" and case not in WORKER_FAILS]


def table(reports: Mapping[str, Report]) -> Iterator[str]:
    """Lines of a Markdown table: for each section and target, how many cases have which verdict."""
    yield f"| section | target | cases | {' | '.join(COLUMNS)} |"
    yield f"|---|---|{'---:|' * (1 + len(COLUMNS))}"
    for section in sorted({_section(case) for report in reports.values() for case in report}):
        for target, report in reports.items():
            yield _row(f"{section} {SECTIONS.get(section, '')}", target, _in_section(report, section))
    for target, report in reports.items():
        yield _row("all", target, list(report.values()))


def _row(section: str, target: str, verdicts: list[Verdict]) -> str:
    counts = Counter(verdict.column for verdict in verdicts)
    return f"| {section} | {target} | {len(verdicts)} | {' | '.join(str(counts[name]) for name in COLUMNS)} |"


def _in_section(report: Report, section: int) -> list[Verdict]:
    return [verdict for case, verdict in report.items() if _section(case) == section]


def _section(case: str) -> int:
    return _place(case)[0]


def _place(case: str) -> tuple[int, ...]:
    return tuple(int(part) for part in case.split("."))
