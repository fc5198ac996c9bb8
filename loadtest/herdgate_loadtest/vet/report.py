"""Verdicts as text and as JSON. JSON is UTF-8 whatever the locale, one object, `"Infinity"` for what is infinite."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from herdgate.core.errors import printable
from herdgate_loadtest.vet.attempts import Attempt, attempts_of
from herdgate_loadtest.vet.verdict import Unreadable, Vetted, worst

__all__ = ["as_json", "as_text"]

Result = Vetted | Unreadable

_match_unprintable = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


def as_json(results: Sequence[Result], seed: int, attempts: int) -> bytes:
    """`verdict` (the worst), `seed`, and `clients`: one object each."""
    report = {
        "verdict": worst(results),
        "seed": seed,
        "clients": [_object(result, seed, attempts) for result in results],
    }
    text = json.dumps(_finite(report), ensure_ascii=False, indent=2, allow_nan=False)
    return (_match_unprintable.sub(_escaped, text) + "\n").encode()


def _escaped(found: re.Match[str]) -> str:
    """As JSON can say it, where a terminal would obey it, or UTF-8 has no bytes for it; it is inside of a text."""
    return f"\\u{ord(found[0]):04x}"


def _object(result: Result, seed: int, attempts: int) -> dict[str, Any]:
    if isinstance(result, Unreadable):
        return {"source": result.source, "verdict": result.verdict, "faults": list(result.faults)}
    figures = asdict(result.figures)
    return {
        "source": result.source,
        "client_id": result.known.client.client_id or None,
        "verdict": result.verdict,
        "findings": [asdict(finding) for finding in result.findings],
        "fleet": {
            "figures": figures,
            "exceeded": [
                {"figure": each.figure, "value": each.value, "most": each.bound.most, "what": each.bound.what}
                for each in result.exceeded
            ],
        },
        "effective": {each.name: {"value": each.value, "source": each.source} for each in result.known.effective},
        "attempts": [asdict(each) for each in attempts_of(result.known.client, attempts, seed)],
    }


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return "Infinity" if isinstance(value, float) and math.isinf(value) else value


def as_text(results: Sequence[Result], seed: int, attempts: int) -> bytes:
    """For people: verdict, findings with reason and fix, what the fleet did, settings in force."""
    parts = ["\n".join(_lines(result, seed, attempts)) for result in results]
    return ("\n\n".join(parts) + "\n").encode()


def _lines(result: Result, seed: int, attempts: int) -> Iterator[str]:
    if isinstance(result, Unreadable):
        yield f"{printable(result.source)}: unreadable"
        yield from (f"  {fault}" for fault in result.faults)
        return
    name = f" ({result.known.client.client_id})" if result.known.client.client_id else ""
    yield f"{printable(result.source)}{name}: {result.verdict}"
    for finding in result.findings:
        yield f"  {finding.severity} {finding.rule}: {finding.detail}"
        yield f"    why: {finding.reason}"
        yield f"    fix: {finding.fix}"
    yield from _fleet_lines(result)
    yield from _settings_lines(result)
    if attempts:
        yield f"  delays with seed {seed}:"
        yield from map(_attempt_line, attempts_of(result.known.client, attempts, seed))


def _fleet_lines(result: Vetted) -> Iterator[str]:
    figures = result.figures
    back = f"back after {figures.last_back_s:.3g} s, in {figures.tries_per_client:.3g} tries each"
    gone = f", {100 * figures.gave_up:.3g} % gave up" if figures.gave_up else ""
    yield f"  fleet of 2,000 at 100 a second: {back}{gone}; at most {100 * figures.peak_share:.3g} % within 100 ms"
    yield f"    let in and dropped, over and over, each comes back after {figures.flap_wait_s:.3g} s"
    for each in result.exceeded:
        yield f"  error fleet {each.figure}: {each.shown}, may be {each.bound.most:g}: {each.bound.what}"
        yield f"    why: {each.bound.why}"


def _settings_lines(result: Vetted) -> Iterator[str]:
    for source, title in (("file", "said"), ("preset", "by preset"), ("default", "default")):
        values = [each for each in result.known.effective if each.source == source and each.name != "client_id"]
        if values:
            shown = (f"{each.name}={json.dumps(each.value, ensure_ascii=False)}" for each in values)
            yield f"  {title}: {' '.join(shown)}"


def _attempt_line(attempt: Attempt) -> str:
    if attempt.least_s == attempt.longest_s:
        return f"    {attempt.number:4}  {attempt.delay_s:9.3f} s"
    return f"    {attempt.number:4}  {attempt.delay_s:9.3f} s  of {attempt.least_s:.3f} to {attempt.longest_s:.3f}"
