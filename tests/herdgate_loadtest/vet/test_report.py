"""Verdicts as text, JSON and JUnit."""

import json
import xml.etree.ElementTree as ET

from herdgate_loadtest.vet.fleet import BOUNDS
from herdgate_loadtest.vet.junit import as_junit
from herdgate_loadtest.vet.report import as_json, as_text
from herdgate_loadtest.vet.rules import RULES
from herdgate_loadtest.vet.verdict import Unreadable, Vetted, vet_client, worst
from tests.herdgate_loadtest.vet.vetting import SOUND, known

SEED = 2
SAFE = vet_client("safe.json", known({**SOUND, "client_id": "Zürich ✓"}), SEED)
UNSAFE = vet_client("un<safe>.json", known({"use_jitter": False, "multiplier": 1.0, "hint_jitter_ms": 0}), SEED)
UNREADABLE = Unreadable("odd\x01\udc80.json", ("multiplier: got '2'; write a number", "layers: got 3; write a list"))
ALL: list[Vetted | Unreadable] = [SAFE, UNSAFE, UNREADABLE]


def test_the_worst_verdict_holds() -> None:
    assert worst([SAFE]) == "safe"
    assert worst([UNSAFE, SAFE]) == "unsafe"
    assert worst([SAFE, UNREADABLE, UNSAFE]) == "unreadable"


def test_json_says_everything() -> None:
    report = json.loads(as_json(ALL, SEED, 3).decode("utf-8"))
    assert (report["verdict"], report["seed"]) == ("unreadable", SEED)
    safe, unsafe, unreadable = report["clients"]
    assert (safe["client_id"], safe["verdict"], safe["findings"]) == ("Zürich ✓", "safe", [])
    assert safe["fleet"]["exceeded"] == []
    assert set(BOUNDS) < set(safe["fleet"]["figures"])
    assert unsafe["verdict"] == "unsafe"
    assert {"rule", "severity", "detail", "reason", "fix"} == set(unsafe["findings"][0])
    assert "peak_share" in {each["figure"] for each in unsafe["fleet"]["exceeded"]}
    assert unsafe["effective"]["strategy"] == {"value": "none", "source": "default"}
    assert [each["number"] for each in safe["attempts"]] == [1, 2, 3]
    assert unreadable["faults"] == list(UNREADABLE.faults)


def test_json_is_utf_8_and_has_no_infinity() -> None:
    hammering = vet_client("h", known({"multiplier": 1, "initial_interval_ms": 1, "min_delay_ms": 0}), SEED)
    report = as_json([hammering, UNREADABLE], SEED, 0).decode("utf-8")
    assert json.loads(report)["clients"][0]["fleet"]["figures"]["last_back_s"] == "Infinity"
    assert json.loads(report)["clients"][1]["source"] == UNREADABLE.source


def test_no_report_holds_what_a_terminal_obeys() -> None:
    odd = Unreadable("a\x1b[31m\x9b2J\u202e\x7f.json", ("is closed",))
    text, report, junit = as_text([odd], SEED, 0).decode(), as_json([odd], SEED, 0).decode(), as_junit([odd]).decode()
    assert all(each.isprintable() or each == "\n" for each in text + report)
    assert json.loads(report)["clients"][0]["source"] == odd.source
    assert not any(each in junit for each in "\x1b\x9b\x7f")


def test_many_broken_delays_are_a_count() -> None:
    text = as_text([vet_client("s", known({}, "socket.io"), SEED)], SEED, 0).decode()
    assert "  error fleet broken_delays: 3,985, may be 0: " in text


def test_text_says_what_why_and_what_to_do() -> None:
    text = as_text(ALL, SEED, 2).decode("utf-8")
    assert text.startswith("safe.json (Zürich ✓): safe\n")
    assert "un<safe>.json: unsafe\n  error no-jitter: every delay is the same for all\n    why: " in text
    assert "\n    fix: draw each delay at random" in text
    assert "  error fleet peak_share: 1, may be 0.3: " in text
    assert "  warning hints-unspread: " in text
    assert "\n  multiplier: got '2'; write a number\n  layers: got 3; write a list\n" in text
    assert "  said: " in text
    assert "  default: " in text
    assert text.count("  delays with seed 2:\n       1  ") == 2


def test_junit_is_xml_with_a_case_for_each_rule_and_figure() -> None:
    root = ET.fromstring(as_junit(ALL))
    safe, unsafe, unreadable = root.findall("testsuite")
    cases = [*(rule.id for rule in RULES), *(f"fleet.{figure}" for figure in BOUNDS)]
    assert [case.get("name") for case in safe.findall("testcase")] == cases
    assert (safe.get("tests"), safe.get("failures"), safe.get("errors")) == (str(len(cases)), "0", "0")
    assert unsafe.get("name") == "un<safe>.json"
    failed = {case.get("name") for case in unsafe if case.find("failure") is not None}
    assert {"no-jitter", "multiplier-1", "fleet.peak_share"} <= failed
    assert {case.get("name") for case in unsafe if case.find("system-out") is not None} >= {"hints-unspread"}
    assert unreadable.get("errors") == "1"
    assert unreadable.findtext("testcase/error") == "\n".join(UNREADABLE.faults)
    assert root.get("failures") == unsafe.get("failures")
    assert root.get("tests") == str(2 * len(cases) + 1)
