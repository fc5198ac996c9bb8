"""How verdicts of a compliance run are compared, and that what it judges can be started."""

import json
from pathlib import Path

import pytest
from websockets.sync.client import connect

from compliance.targets import TargetError, targets
from compliance.verdicts import Report, Verdict, differing, failed, is_allowed, read_report, table

OK = Verdict("OK", "OK")
NON_STRICT = Verdict("NON-STRICT", "OK")
WITHOUT = Verdict("UNIMPLEMENTED", "OK")
FAILED = Verdict("FAILED", "OK")


def report(**changes: Verdict) -> Report:
    """A report on cases of three sections."""
    return {case: changes.get(f"case_{case.replace('.', '_')}", OK) for case in ("1.1.1", "3.4", "9.10.1", "12.1.1")}


def test_report_is_read_by_target(tmp_path: Path) -> None:
    found = {"splice": {"1.1.1": {"behavior": "NON-STRICT", "behaviorClose": "UNCLEAN", "duration": 2}}}
    (tmp_path / "index.json").write_text(json.dumps(found))
    assert read_report(tmp_path, "splice") == {"1.1.1": Verdict("NON-STRICT", "UNCLEAN")}
    with pytest.raises(KeyError):
        read_report(tmp_path, "messages")


def test_reports_that_agree_differ_nowhere() -> None:
    assert list(differing(report(), report())) == []


@pytest.mark.parametrize("other", [FAILED, Verdict("OK", "WRONG CODE")], ids=str)
def test_each_of_both_verdicts_of_a_case_counts(other: Verdict) -> None:
    assert list(differing(report(), report(case_1_1_1=other))) == [("1.1.1", OK, other)]


def test_case_that_was_not_run_differs() -> None:
    assert list(differing({"2.9": OK, "2.10": OK}, {"2.10": OK})) == [("2.9", OK, None)]
    assert list(differing({}, {"2.10": OK, "2.9": OK})) == [("2.9", None, OK), ("2.10", None, OK)]


@pytest.mark.parametrize(
    ("target", "case", "verdict", "may"),
    [
        ("messages", "12.1.1", WITHOUT, True),
        ("messages", "13.7.18", WITHOUT, True),
        ("messages", "12.1.1", FAILED, False),
        ("messages", "12.1.1", None, False),
        ("messages", "1.1.1", WITHOUT, False),
        ("messages", "6.4.1", NON_STRICT, False),
        ("splice", "12.1.1", WITHOUT, False),
        ("splice", "1.1.1", NON_STRICT, False),
        ("splice", "3.4", NON_STRICT, True),
        ("splice", "3.4", OK, True),
        ("splice", "3.4", FAILED, False),
        ("messages", "4.2.5", NON_STRICT, True),
        ("messages", "4.2.5", Verdict("NON-STRICT", "UNCLEAN"), False),
    ],
)
def test_only_races_and_compression_by_messages_may_differ(
    target: str, case: str, verdict: Verdict | None, may: bool
) -> None:
    assert is_allowed(target, case, verdict) is may


def test_worker_that_fails_what_it_is_not_known_to_fail_is_named() -> None:
    assert failed({"7.1.5": Verdict("FAILED", "WRONG CODE"), "1.1.1": OK}) == []
    assert failed(report(case_9_10_1=FAILED)) == ["9.10.1"]
    assert failed(report(case_9_10_1=Verdict("OK", "UNCLEAN"))) == ["9.10.1"]


def test_table_counts_by_section_in_numeric_order() -> None:
    reports = {"direct": report(), "messages": report(case_12_1_1=WITHOUT, case_1_1_1=Verdict("OK", "UNCLEAN"))}
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table(reports)][2:]
    assert [row[0].split()[0] for row in rows] == ["1", "1", "3", "3", "9", "9", "12", "12", "all", "all"]
    assert rows[1][1:] == ["messages", "1", "0", "0", "0", "0", "1"]
    assert rows[7][1:] == ["messages", "1", "0", "0", "0", "1", "0"]
    assert rows[8][1:] == ["direct", "4", "4", "0", "0", "0", "0"]


def test_targets_echo_and_only_bytes_keep_the_compression(tmp_path: Path) -> None:
    with targets(tmp_path) as urls:
        agreed = {}
        for target, url in urls.items():
            with connect(url, proxy=None) as client:
                client.send("ä")
                assert client.recv(timeout=10) == "ä"
                assert client.response is not None
                agreed[target] = "Sec-WebSocket-Extensions" in client.response.headers
    assert agreed == {"direct": True, "splice": True, "messages": False}


def test_target_that_does_not_come_up_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERDGATE_RATE", "fast")
    with pytest.raises(TargetError, match=r"splice\.log"), targets(tmp_path):
        pytest.fail("a gateway serves that cannot")
