"""What docs/transfer.md says of tests and forms is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

from session_actor.transfer import anthropic_parts, openai_parts
from session_actor.transfer.exporting import EXPORT_FORMS
from session_actor.transfer.forms import FORMS
from session_actor.transfer.lines import MAX_LINE_BYTES
from session_actor.transfer.markdown_blocks import LONG_CHARACTERS, LONG_LINES
from session_actor.transfer.notes import NAMED_AT_MOST, Lack
from session_actor.transfer.planting import SUMMARY_LIMIT

from .named_tests import TESTS, missing_of

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "transfer.md").read_text(encoding="utf-8")


def test_the_tests_that_the_page_names_exist():
    assert missing_of(PAGE, TESTS / "session_actor" / "transfer") == []


def test_every_rule_names_a_test():
    tables = [table.splitlines() for table in re.findall(r"^\|.*?(?=\n\n|\Z)", PAGE, re.DOTALL | re.MULTILINE)]
    rules = [row for table in tables if "shown by" in table[0] for row in table[2:]]

    assert len(rules) > 25
    assert [row for row in rules if "::" not in row.split("|")[-2]] == []


def test_every_form_is_on_the_page():
    table = PAGE.split("## The forms")[1].split("\n\n")[2]

    assert tuple(re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE)) == FORMS
    assert all(f'"{form}"' in PAGE or f"`{form}`" in PAGE for form in EXPORT_FORMS)


def test_the_figures_are_those_of_the_code():
    assert f"A line over {MAX_LINE_BYTES >> 20} MB" in PAGE
    assert f"longer than {LONG_LINES} lines or {LONG_CHARACTERS:,} characters" in PAGE
    assert f"A summary over {SUMMARY_LIMIT:,} characters" in PAGE
    assert PAGE.count(f"first {NAMED_AT_MOST:,} of them") == 2


def test_every_lack_and_what_is_left_out_is_on_the_page():
    tables = {
        table.split("|")[1].strip(): table
        for table in re.findall(r"^\| .*?(?=\n\n|\Z)", PAGE, re.DOTALL | re.MULTILINE)
    }

    assert set(re.findall(r"^\| `(\w+)`", tables["`lack`"], re.MULTILINE)) - {"lack"} == set(get_args(Lack))
    named = set(re.findall(r"`(\w+)`", "".join(row.split("|")[1] for row in tables["name"].splitlines())))
    assert named == {*openai_parts._LEFT_OUT, *anthropic_parts._LEFT_OUT, "usage", "collapsed"}
