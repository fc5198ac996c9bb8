"""No log holds a ticket, and none has a line for each refused client."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from herdgate.logs import SERVER_LOGGERS, SUMMARY_S, DenialLog, guard_server_logs, refusing

TICKET = "1.AQGLz-Voe96tvu8AAAAqukUzCjjfpdqAxA"
ACCESS = logging.getLogger("uvicorn.access")


@pytest.fixture(autouse=True)
def _guarded(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """The server's loggers as we guard them; as they were, afterwards."""
    loggers = [logging.getLogger(name) for name in SERVER_LOGGERS]
    before = [(logger, logger.propagate, logger.level, list(logger.filters)) for logger in loggers]
    for logger in loggers:
        logger.propagate, logger.filters = True, []
        logger.setLevel(logging.DEBUG)
    caplog.set_level(logging.DEBUG)
    guard_server_logs()
    yield
    for logger, propagate, level, filters in before:
        logger.propagate, logger.filters = propagate, filters
        logger.setLevel(level)


@pytest.mark.parametrize("name", SERVER_LOGGERS)
@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO, logging.ERROR])
def test_ticket_is_blanked_out_at_every_level(caplog: pytest.LogCaptureFixture, name: str, level: int) -> None:
    logging.getLogger(name).log(level, "GET /ws?herdgate_ticket=%s HTTP/1.1", TICKET)
    assert caplog.messages == ["GET /ws?herdgate_ticket=1.[ticket] HTTP/1.1"]


@pytest.mark.parametrize(
    ("message", "args", "text"),
    [
        (f"cookie: herdgate_ticket_default={TICKET};", (), "cookie: herdgate_ticket_default=1.[ticket];"),
        ("%s and %s", (TICKET, TICKET), "1.[ticket] and 1.[ticket]"),
        ("%r", ([(b"herdgate-ticket", TICKET.encode())],), "[(b'herdgate-ticket', b'1.[ticket]')]"),
        ("%(path)s", ({"path": f"/ws?herdgate_ticket={TICKET}"},), "/ws?herdgate_ticket=1.[ticket]"),
        (f"{TICKET} of %d", (7,), "1.[ticket] of 7"),
        ("nothing %s to hide", ("here",), "nothing here to hide"),
    ],
)
def test_ticket_is_blanked_out_wherever_it_stands(
    caplog: pytest.LogCaptureFixture, message: str, args: tuple[Any, ...], text: str
) -> None:
    ACCESS.info(message, *args)
    assert caplog.messages == [text]


def test_arguments_of_an_access_line_stay_where_its_formatter_reads_them(caplog: pytest.LogCaptureFixture) -> None:
    ACCESS.info('%s - "%s %s HTTP/%s" %d', "192.0.2.1:50123", "GET", f"/ws?herdgate_ticket={TICKET}", "1.1", 429)
    assert caplog.records[0].args == ("192.0.2.1:50123", "GET", "/ws?herdgate_ticket=1.[ticket]", "1.1", 429)


@pytest.mark.parametrize(("message", "args"), [("%d", ("text",)), ("%s %s", (1,)), ("%(a)s", ({"b": 1},))])
def test_line_whose_arguments_do_not_fit_is_the_handlers_business(message: str, args: tuple[Any, ...]) -> None:
    record = ACCESS.makeRecord(ACCESS.name, logging.INFO, "file", 1, message, args, None)
    assert ACCESS.filter(record)


def test_server_is_quiet_about_a_refusal_but_not_about_its_errors(caplog: pytest.LogCaptureFixture) -> None:
    with refusing():
        ACCESS.info("a line about this client")
        ACCESS.debug("another one")
        ACCESS.warning("something else")
    ACCESS.info("the next client")
    assert caplog.messages == ["something else", "the next client"]


def test_refusal_ends_with_an_error_too(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConnectionError), refusing():
        raise ConnectionError
    ACCESS.info("the next client")
    assert caplog.messages == ["the next client"]


def test_guarding_twice_adds_nothing() -> None:
    guard_server_logs()
    assert [len(logging.getLogger(name).filters) for name in SERVER_LOGGERS] == [1] * len(SERVER_LOGGERS)


class Later:
    """An event loop that only remembers what is to be called later."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, seconds: float, call: Callable[[], None]) -> object:
        self.calls.append((seconds, call))
        return object()

    def pass_time(self) -> None:
        calls, self.calls = self.calls, []
        for _, call in calls:
            call()


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    loop = Later()
    monkeypatch.setattr(asyncio, "get_running_loop", lambda: loop)
    return loop


def test_denials_are_a_line_at_once_and_the_rest_is_summed_up_every_ten_seconds(
    caplog: pytest.LogCaptureFixture, later: Later
) -> None:
    log = DenialLog()
    for number in range(1_001):
        log.count("full" if number % 10 else "rate")
    assert [seconds for seconds, _ in later.calls] == [SUMMARY_S] == [10]
    later.pass_time()

    assert caplog.messages == ["denied arrivals: rate 1", "denied arrivals: full 900, rate 100"]
    assert {(record.name, record.levelname) for record in caplog.records} == {("herdgate", "WARNING")}


def test_a_time_without_denials_is_passed_over_in_silence(caplog: pytest.LogCaptureFixture, later: Later) -> None:
    log = DenialLog()
    log.count("rate")
    later.pass_time()
    assert later.calls == []
    log.count("shed")

    assert caplog.messages == ["denied arrivals: rate 1", "denied arrivals: shed 1"]
