"""What docs/window.md says of tests, words, figures and records is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from session_actor import ModelProfile
from session_actor.budget.reserves import reserves
from session_actor.dialects import DIALECTS
from session_actor.events import Requested
from session_actor.ledger.notes import ADDED, OMITTED
from session_actor.requests import dialect_of
from session_actor.tokens.images import RULES, image_tokens, unknown_image_tokens

from .named_tests import missing_of

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "window.md").read_text(encoding="utf-8")
TABLES = [table.splitlines() for table in re.findall(r"^\|.*?(?=\n\n|\Z)", PAGE, re.DOTALL | re.MULTILINE)]


def rows_below(head: str) -> list[list[str]]:
    """The cells of the table whose head begins so."""
    (table,) = [table for table in TABLES if table[0].startswith(head)]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in table[2:]]


def words_in(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def number(cell: str) -> int:
    return int(cell.replace(",", ""))


def test_the_tests_that_the_page_names_exist():
    assert missing_of(PAGE) == []


def test_every_rule_names_a_test():
    rules = [row for table in TABLES if "shown by" in table[0] for row in table[2:]]
    assert len(rules) > 60
    assert [row for row in rules if not re.search(r"`[\w/]+\.py::\w+` \|$", row)] == []


@pytest.mark.parametrize(("head", "words"), [("| omitted ", OMITTED), ("| added ", ADDED)])
def test_every_word_of_a_note_is_on_the_page(head, words):
    told = [word for row in rows_below(head) for word in words_in(row[0])]
    assert sorted(told) == sorted(words)


def test_every_key_that_extra_may_not_set_is_on_the_page():
    told = {words_in(row[0])[0]: set(words_in(row[1])) for row in rows_below("| dialect | `extra`")}
    assert told == {name: dialect_of(name).OWNED for name in DIALECTS}


def test_every_field_of_a_record_is_on_the_page():
    told = {word for row in rows_below("| field ") for word in words_in(row[0])}
    assert told == set(Requested.__struct_fields__)


def test_the_reserves_on_the_page_are_those_that_are_kept():
    rows = [[number(cell) for cell in row] for row in rows_below("| window ")]
    assert len(rows) > 4
    for window, *told in rows:
        profile = ModelProfile(name="any", window=window, max_output=window, family="o200k")
        kept = reserves(profile)
        assert told == [kept.output, kept.safety, kept.allowance, reserves(profile, calibrated=True).allowance]


def test_the_prices_of_images_on_the_page_are_those_that_are_reckoned():
    told = {words_in(row[0])[0]: [number(cell) for cell in row[2:]] for row in rows_below("| rule | how")}
    assert told == {rule: [image_tokens(1_000, 1_000, rule), unknown_image_tokens(rule)] for rule in RULES}
