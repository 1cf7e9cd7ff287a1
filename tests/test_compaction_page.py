"""What docs/compaction.md says of tests, codes, figures and records is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from session_actor.compaction import automatic, gate, merge, options, overlays, planning, ranges
from session_actor.compaction.headings import HEADINGS
from session_actor.compaction.verdict import CODES
from session_actor.events import Compacted, Event, Pinned, Uncompacted

from .named_tests import missing_of
from .session_actor.compaction.hostile_summaries import ALL_CASES

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "compaction.md").read_text(encoding="utf-8")
TABLES = [table.splitlines() for table in re.findall(r"^\|.*?(?=\n\n|\Z)", PAGE, re.DOTALL | re.MULTILINE)]
MODULES = (automatic, gate, merge, overlays, planning, ranges, options)


def rows_below(head: str) -> list[list[str]]:
    """The cells of the table whose head begins so."""
    (table,) = [table for table in TABLES if table[0].startswith(head)]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table[2:]]


def words_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_the_tests_that_the_page_names_exist():
    assert missing_of(PAGE) == []


def test_every_rule_names_a_test():
    rules = [row for table in TABLES if "shown by" in table[0] for row in table[2:]]
    assert len(rules) > 60
    assert [row for row in rules if not re.search(r"`[\w/]+\.py::\w+` \|$", row)] == []


def test_every_code_is_on_the_page_with_what_it_means():
    assert {words_in(code)[0]: means for code, _, means in rows_below("| code ")} == CODES


def test_a_code_is_as_severe_as_the_page_says():
    told = {words_in(code)[0]: set(severity.split(", ")) for code, severity, _ in rows_below("| code ")}
    for case in ALL_CASES:
        if case.code:
            assert ("error" if case.is_refused else "warning") in told[case.code], case.name
    assert {word for severities in told.values() for word in severities} == {"error", "warning"}


def test_the_headings_on_the_page_are_those_of_a_summary():
    assert "```text\n" + "\n".join(HEADINGS) + "\n```" in PAGE


def test_the_figures_on_the_page_are_those_that_are_kept():
    rows = rows_below("| figure ")
    assert len(rows) == 12
    for figure, value, _ in rows:
        (name,) = words_in(figure)
        assert {getattr(module, name) for module in MODULES if hasattr(module, name)} == {int(value.replace(",", ""))}


def test_every_event_is_on_the_page():
    code = "".join(
        (ROOT / "session_actor" / "compaction" / name).read_text("utf-8") for name in ("automatic.py", "handle.py")
    )
    emitted = set(re.findall(r'(?:\*EVENT, |self\._tell\()"(\w+)"', code))
    assert emitted == {"start", "stop", "rejected", "nothing"}
    told = "".join(event for event, _, _ in rows_below("| event "))
    assert set(re.findall(r'\("session_actor", "compaction", "(\w+)"\)', told)) == emitted


@pytest.mark.parametrize("kind", [Compacted, Uncompacted, Pinned])
def test_every_field_of_a_record_is_on_the_page(kind):
    rows = rows_below("| record ")
    told = {word for record, field, _ in rows if words_in(record) == [kind.kind] for word in words_in(field)}
    assert told == set(kind.__struct_fields__) - set(Event.__struct_fields__)
