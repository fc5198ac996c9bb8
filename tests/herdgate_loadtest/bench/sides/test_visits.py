"""Only refusals as they ought to be are counted."""

import pytest

from herdgate_loadtest.bench.sides.visit import Manner
from herdgate_loadtest.bench.sides.visits import Tally, Visits
from tests.herdgate_loadtest.bench.sides.answering import answering, upgraded

TICKET = b"herdgate-ticket: 1.AAGiK5AfGORhESYAAAAAPTqBMdtJLVnpNQ\r\n"


def refusal(status: int = 503, headers: bytes = b"retry-after: 5\r\n") -> bytes:
    return b"HTTP/1.1 %d Refused\r\n%bcontent-length: 2\r\n\r\nno" % (status, headers)


def close_frame(code: int, reason: bytes) -> bytes:
    payload = code.to_bytes(2, "big") + reason
    return bytes((0x88, len(payload))) + payload


def visit(answer: bytes, manner: Manner = "http", *, with_ticket: bool = False, upgrade: bool = False) -> Tally:
    with answering(lambda request: (upgraded(request) if upgrade else b"") + answer) as port:
        return Visits(manner, with_ticket=with_ticket).run(port, 0.05)


@pytest.mark.parametrize("status", [429, 503])
def test_refusal_with_a_time_to_come_back_is_done(status: int) -> None:
    tally = visit(refusal(status))

    assert tally.done > 10
    assert (tally.admitted, tally.faults(0)) == (0, [])


def test_ticket_is_looked_for_where_one_is_due() -> None:
    assert visit(refusal(headers=b"retry-after: 5\r\n" + TICKET), with_ticket=True).faults(0) == []

    tally = visit(refusal(), with_ticket=True)
    assert tally.done == 0
    assert list(tally.wrong) == ["refused without a ticket"]


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (refusal(headers=b""), "refused without a time to come back"),
        (refusal(403), "answered 403"),
        (refusal(200), "answered 200"),
        (b"", "the connection ended without an answer"),
        (
            b"HTTP/1.1 503 Refused\r\nretry-after: 5\r\ncontent-length: 9\r\n\r\nno",
            "the connection ended within the answer",
        ),
        (b"HTTP/1.1 101 Switching Protocols\r\n\r\n", "101 without Upgrade: websocket"),
    ],
)
def test_any_other_answer_is_wrong(answer: bytes, what: str) -> None:
    tally = visit(answer)

    assert (tally.done, tally.admitted) == (0, 0)
    assert list(tally.wrong) == [what]
    assert tally.faults(0) == [f"{tally.wrong[what]} of {tally.wrong[what]} visits: {what}"]


def test_who_was_let_in_is_not_refused() -> None:
    tally = visit(b"", upgrade=True)

    assert tally.done == 0
    assert tally.admitted > 10
    assert tally.faults(0)
    assert tally.faults(1_000_000) == []


@pytest.mark.parametrize(("admitted", "is_fine"), [(0, True), (1, False)])
def test_who_has_no_rate_lets_in_nobody(admitted: int, *, is_fine: bool) -> None:
    assert (Tally(admitted=admitted, took_s=2.0).faults(0) == []) == is_fine


@pytest.mark.parametrize(("admitted", "is_fine"), [(4, True), (5, False)])
def test_rate_explains_so_many(admitted: int, *, is_fine: bool) -> None:
    assert (Tally(admitted=admitted, took_s=2.0).faults(1) == []) == is_fine


def test_close_with_a_time_to_come_back_is_done() -> None:
    tally = visit(close_frame(1013, b'{"retry_ms":5000}'), "close", upgrade=True)

    assert tally.done > 10
    assert tally.faults(0) == []


@pytest.mark.parametrize(
    ("frame", "what"),
    [
        (close_frame(1013, b""), "refused without a time to come back"),
        (close_frame(1012, b'{"retry_ms":5000}'), "closed with 1012"),
        (b"\x81\x02no", "a frame of opcode 1"),
        (b"", "ended without a close frame"),
    ],
)
def test_any_other_frame_is_wrong(frame: bytes, what: str) -> None:
    tally = visit(frame, "close", upgrade=True)

    assert (tally.done, tally.admitted, list(tally.wrong)) == (0, 0, [what])


def test_page_that_is_refused_over_http_is_wrong() -> None:
    assert list(visit(refusal(), "close").wrong) == ["answered 503"]


def test_worker_that_closes_has_let_in() -> None:
    assert visit(close_frame(1000, b""), "close", upgrade=True).admitted > 10


def test_pace_is_kept_and_told() -> None:
    with answering(lambda _: refusal()) as port:
        tally = Visits("http", with_ticket=False).run(port, 0.5, pace=200)

    assert 50 <= tally.done <= 100  # a busy machine may miss the last ones
    assert tally.kept == pytest.approx(tally.done / 100)


def test_port_that_nobody_serves_is_wrong() -> None:
    with answering(lambda _: refusal()) as port:
        pass
    tally = Visits("http", with_ticket=False).run(port, 0.02)

    assert tally.done == 0
    assert tally.wrong
