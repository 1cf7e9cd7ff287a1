"""What docs/hooks.md says of tests, phases, events and figures is so."""

from __future__ import annotations

import re
from pathlib import Path

from session_actor.hooks import breaker, mandatory
from session_actor.hooks.hook import PHASES, Hook

from ...named_tests import missing_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")


def words_below(heading: str) -> set[str]:
    """The words in the first column of the table under a heading."""
    section = re.search(rf"## {heading}\n.*?(?=\n## |\Z)", PAGE, re.DOTALL)[0]
    return set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", section, re.MULTILINE))))


def test_the_tests_that_the_page_names_exist():
    assert missing_of(PAGE) == []


def test_every_phase_and_every_event_is_on_the_page():
    assert words_below("When hooks are called") == set(PHASES)
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "session_actor" / "hooks").glob("*.py"))
    assert words_below("Events") == set(re.findall(r'\(\*EVENT, "(\w+)"\)', sources))


def test_the_figures_on_the_page_are_those_of_the_code():
    assert (mandatory.TRIES, mandatory.UNFINISHED) == (5, 10)
    assert [mandatory.BACKOFF.delay_s(number, lambda: 0.5) for number in (1, 2, 3, 4)] == [1, 4, 16, 64]
    assert (breaker.FAILURES, breaker.WINDOW_S, breaker.REST_S) == (3, 60, 30)
    assert Hook("x", print, "ended").timeout_s == 30
