"""What docs/handover.md says of tests and events is so."""

from __future__ import annotations

import re
from pathlib import Path

from ...named_tests import missing_of

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "handover.md").read_text(encoding="utf-8")


def test_the_tests_that_the_page_names_exist():
    assert missing_of(PAGE) == []


def test_the_events_on_the_page_are_those_that_are_told():
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "session_actor" / "handover").glob("*.py"))
    told = set(re.findall(r'\btell\("(\w+)"', sources))
    table = re.search(r"## Events\n.*?(?=\n## )", PAGE, re.DOTALL)[0]
    assert told == set(re.findall(r"^\| `(\w+)` ", table, re.MULTILINE))
