"""What a gateway says of a handshake, and what a worker makes of it."""

import pytest

from herdgate_gateway.worker_kit.stamps import StampError, judge, read_stamp
from tests.herdgate_gateway.worker_kit.serving_worker import id_in, stamp

NAME = id_in(5)


def headers(**changed: str | None) -> list[tuple[bytes, bytes]]:
    """Of a good stamp, with some values changed or taken out."""
    told: dict[str, str | None] = {"connection-id": NAME, "shard": "5", "epoch": "7"}
    told.update({name.replace("_", "-"): value for name, value in changed.items()})
    return [(f"herdgate-{name}".encode(), value.encode()) for name, value in told.items() if value is not None]


def test_good_stamp_is_read() -> None:
    assert read_stamp([(b"host", b"x"), *headers(), (b"herdgate-gateway", b"00")]) == (NAME, 5, 7, "allow")


def test_epoch_of_a_later_generation_is_read() -> None:
    assert read_stamp(headers(epoch=str((3 << 40) + 1))).epoch == (3 << 40) + 1


@pytest.mark.parametrize(
    "changed",
    [
        {"connection_id": None},
        {"shard": None},
        {"epoch": None},
        {"connection_id": ""},
        {"connection_id": "a b"},
        {"connection_id": "a" * 129},
        {"shard": "1024"},
        {"shard": "-1"},
        {"shard": "05"},
        {"shard": "six"},
        {"shard": "6"},
        {"epoch": "0"},
        {"epoch": "-7"},
        {"epoch": "7.0"},
        {"epoch": "9" * 20},
        {"epoch": "\u0667"},
        {"epoch": ""},
        {"duplicates": "maybe"},
        {"duplicates": ""},
    ],
    ids=str,
)
def test_nonsense_is_refused(changed: dict[str, str | None]) -> None:
    with pytest.raises(StampError, match=r"^this worker serves gateways of its fleet only: "):
        read_stamp(headers(**changed))


@pytest.mark.parametrize("name", ["connection-id", "shard", "epoch"])
def test_header_that_comes_twice_is_refused(name: str) -> None:
    doubled = [pair for pair in headers() if pair[0] == f"herdgate-{name}".encode()]
    with pytest.raises(StampError, match="once each"):
        read_stamp([*headers(), *doubled])


def test_stamps_of_these_tests_are_good_ones() -> None:
    pairs = [(name.lower().encode(), value.encode()) for name, value in stamp(5, 7)]
    assert read_stamp(pairs) == (NAME, 5, 7, "allow")


@pytest.mark.parametrize(
    ("stamped", "mine", "known", "verdict"),
    [
        (7, 7, 7, "in"),
        (8, 7, 7, "look"),
        (6, 7, 7, "refuse"),
        (7, None, 7, "refuse"),  # frozen, or given away
        (6, None, 7, "refuse"),
        (8, None, 7, "look"),
        (1, None, 0, "look"),  # never heard of
        (8, 7, 9, "refuse"),  # somebody has it since, and it is not told to me yet
        (9, 9, 8, "in"),
    ],
)
def test_verdicts(stamped: int, mine: int | None, known: int, verdict: str) -> None:
    assert judge(stamped, mine, known) == verdict
