"""The page about the command: its scenarios can be played, and what it shows is what is printed."""

import re
import tomllib
from pathlib import Path

from herdgate_loadtest.engine import BEHAVIOURS
from herdgate_loadtest.simulate.herd import simulate
from herdgate_loadtest.simulate.reading import KEYS, parse_scenario
from herdgate_loadtest.simulate.report import as_text

PAGE = (Path(__file__).parents[3] / "docs" / "simulate.md").read_text()


def blocks(language: str) -> list[str]:
    """The examples of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_scenarios_of_the_page_bring_everybody_back() -> None:
    found = blocks("toml")
    assert len(found) == 2
    for text in found:
        outcome = simulate(parse_scenario(tomllib.loads(text)))
        assert sum(kind.back for kind in outcome.record.behaviours.values()) == outcome.record.clients


def test_what_the_page_shows_is_what_is_printed() -> None:
    scenario = parse_scenario(tomllib.loads(blocks("toml")[0]))
    assert blocks("text") == [as_text(scenario, [simulate(scenario)], compared=False) + "\n"]


def test_every_key_is_on_the_page() -> None:
    assert [
        key for key in KEYS if f"`{key}`" not in PAGE and f"`[{key}]`" not in PAGE and f"`[[{key}]]`" not in PAGE
    ] == []


def test_agreement_is_told_of_behaviours_that_there_are() -> None:
    told = re.findall(r"^\| `(\w+)` \| [-+]?\d+\.\d+(?: %)?, ", PAGE, re.MULTILINE)
    assert len(told) == 10
    assert set(told) <= set(BEHAVIOURS)
