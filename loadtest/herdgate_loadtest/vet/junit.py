"""Verdicts as JUnit XML: a suite a client, a case a rule and a case a figure of the fleet.

Errors are failures, warnings are output of a case that passed, what cannot be read is an error.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from herdgate_loadtest.vet.fleet import BOUNDS
from herdgate_loadtest.vet.rules import RULES, Finding
from herdgate_loadtest.vet.verdict import Unreadable, Vetted

__all__ = ["as_junit"]

_match_illegal = re.compile("[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""XML 1.0, section 2.2; controls that it only discourages too."""


def as_junit(results: Sequence[Vetted | Unreadable]) -> bytes:
    """The document, UTF-8."""
    root = ET.Element("testsuites", name="herdgate vet")
    for result in results:
        suite = ET.SubElement(root, "testsuite", name=_legal(result.source))
        if isinstance(result, Unreadable):
            _add_unreadable(suite, result)
        else:
            _add_rules(suite, result)
            _add_figures(suite, result)
        _count(suite)
    _total(root)
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _add_unreadable(suite: ET.Element, result: Unreadable) -> None:
    case = _case(suite, "settings")
    ET.SubElement(case, "error", message=_legal(result.faults[0])).text = _legal("\n".join(result.faults))


def _add_rules(suite: ET.Element, result: Vetted) -> None:
    found = {finding.rule: finding for finding in result.findings}
    for rule in RULES:
        case = _case(suite, rule.id)
        if rule.id in found:
            _add_finding(case, found[rule.id])


def _add_finding(case: ET.Element, finding: Finding) -> None:
    text = _legal(f"{finding.detail}\nwhy: {finding.reason}\nfix: {finding.fix}")
    if finding.severity == "error":
        ET.SubElement(case, "failure", message=_legal(finding.detail), type=finding.rule).text = text
    else:
        ET.SubElement(case, "system-out").text = f"warning: {text}"


def _add_figures(suite: ET.Element, result: Vetted) -> None:
    beyond = {each.figure: each for each in result.exceeded}
    for figure, bound in BOUNDS.items():
        case = _case(suite, f"fleet.{figure}")
        if figure in beyond:
            message = f"{beyond[figure].shown}, may be {bound.most:g}"
            ET.SubElement(case, "failure", message=message, type=figure).text = f"{bound.what}\nwhy: {bound.why}"


def _case(suite: ET.Element, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=suite.get("name", ""), name=name)


def _count(suite: ET.Element) -> None:
    for name, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
        suite.set(name, str(len(list(suite.iter(tag)))))


def _total(root: ET.Element) -> None:
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))


def _legal(text: str) -> str:
    return _match_illegal.sub("\N{REPLACEMENT CHARACTER}", text)
