"""Runs Autobahn's fuzzing client against a worker, and against gateways in front of it; compares case by case.

    python -m compliance.run FOLDER WSTEST [CASE ...]     # cases as in "6.*"; none: all of them

Exits with 0 if both gateways have the worker's own verdict in every case, or differ only where they may
(`compliance.verdicts` says where); with 1 if not; with 2 if nothing could be compared.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from compliance.targets import MODES, TargetError, targets
from compliance.verdicts import Report, differing, failed, is_allowed, read_report, table

__all__ = ["main"]

ALL = ("*",)
LEAST_CASES = 517
"""Cases of Autobahn 25.10.1, all of which are run."""

WITHIN_S = 3600.0
"""Seconds for one target; a sixth of it is usual, nearly all for compression."""


def main(folder: Path, wstest: Path, cases: Sequence[str] = ALL) -> int:
    """Run, and write what came of it; the exit code.

    Args:
        folder: for settings, logs and Autobahn's own reports.
        wstest: the command of that name.
        cases: patterns of cases.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with targets(folder) as urls:
            reports = {target: _judge(folder, wstest, target, url, cases) for target, url in urls.items()}
    except (TargetError, OSError, KeyError, ValueError, subprocess.SubprocessError) as error:
        return _nothing(f"not run to its end, see {folder}: {error}")
    _say(*table(reports))
    return _compare_all(reports, LEAST_CASES if tuple(cases) == ALL else 1)


def _judge(folder: Path, wstest: Path, target: str, url: str, cases: Sequence[str]) -> Report:
    sys.stderr.write(f"compliance: {target}, at {url}\n")
    reports, spec = folder / target, folder / f"{target}.json"
    (reports / "index.json").unlink(missing_ok=True)
    servers = [{"agent": target, "url": url}]
    spec.write_text(json.dumps({"outdir": str(reports), "servers": servers, "cases": list(cases)}))
    with (folder / f"{target}-client.log").open("wb") as log:
        command = [str(wstest), "-m", "fuzzingclient", "-s", str(spec)]
        subprocess.run(command, cwd=folder, stdout=log, stderr=log, timeout=WITHIN_S, check=True)  # noqa: S603
    return read_report(reports, target)


def _compare_all(reports: Mapping[str, Report], least: int) -> int:
    direct = reports["direct"]
    if len(direct) < least:
        return _nothing(f"{len(direct)} cases were run, and {least} are wanted")
    if cases := failed(direct):
        return _nothing(f"the worker itself fails {', '.join(cases)}")
    faults = sum([_compare(target, direct, reports[target]) for target in MODES])
    return 1 if faults else 0


def _compare(target: str, direct: Report, report: Report) -> int:
    """Write where it differs, cases with the same verdicts on one line; how often it may not."""
    lines: dict[str, list[str]] = {}
    faults = 0
    for case, there, here in differing(direct, report):
        may = is_allowed(target, case, here)
        faults += not may
        lines.setdefault(f"{here}; direct: {there}; {'it may' if may else 'IT MAY NOT'}", []).append(case)
    _say(*(f"{target}: {what}: {' '.join(cases)}" for what, cases in lines.items()))
    _say(f"{target}: {sum(map(len, lines.values()))} of {len(report)} cases differ from direct, {faults} may not")
    return faults


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def _nothing(why: str) -> int:
    sys.stderr.write(f"compliance: {why}\n")
    return 2


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: python -m compliance.run FOLDER WSTEST [CASE ...]")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an exit ends what was started
    try:
        sys.exit(main(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute(), sys.argv[3:] or ALL))
    except KeyboardInterrupt:
        sys.exit(130)
