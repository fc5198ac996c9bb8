"""What clients recorded."""

from herdgate_loadtest.engine.tally import Tally


def test_tries_per_second_are_those_of_the_last_whole_second() -> None:
    tally = Tally(100.0)
    for moment in (100.0, 100.9, 101.0, 101.5, 101.99, 102.3):
        tally.tried(moment)
    assert tally.tries == 6
    assert [tally.tries_per_s(now) for now in (100.5, 101.2, 102.2, 103.2, 104.2)] == [0, 2, 3, 1, 0]


def test_labels_of_a_strange_server_are_bounded() -> None:
    tally = Tally(0.0)
    tally.answered("101")
    for status in range(400, 600):
        tally.answered(str(status))
    tally.answered("101")
    assert len(tally.answers) == 51
    assert tally.answers["101"] == 2
    assert tally.answers["other"] == 151
    assert tally.answers.total() == 202
