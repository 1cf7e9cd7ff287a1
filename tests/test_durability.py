"""What docs/durability.md says of tests, lines and files is so."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from session_actor.persistence.format.record import verify

from .named_tests import missing_of

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "durability.md").read_text(encoding="utf-8")
STORE = sorted((ROOT / "persistence").rglob("*.py"))
SOURCES = "\n".join(path.read_text(encoding="utf-8") for path in STORE)
TABLES = [table.splitlines() for table in re.findall(r"^\|.*?(?=\n\n|\Z)", PAGE, re.DOTALL | re.MULTILINE)]
SAMPLES = [
    line for block in re.findall(r"^```text\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE) for line in block.splitlines()
]


def test_the_tests_that_the_page_names_exist():
    assert missing_of(PAGE) == []


def test_every_promise_names_a_test():
    promises = [row for table in TABLES if "shown by" in table[0] for row in table[2:]]
    assert len(promises) > 30
    assert [row for row in promises if not re.search(r"`[\w/]+\.py::\w+` \|$", row)] == []


def test_every_line_that_the_page_shows_is_a_line_of_the_store():
    assert len(SAMPLES) > 4
    assert [line for line in SAMPLES if not verify(line.encode() + b"\n")] == []


def events_in(call: ast.Call) -> set[str]:
    """The names that a call may tell as an event: what `tell` is given first, else what looks like one."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    texts = {
        node.value
        for argument in (call.args[:1] if name == "tell" else call.args)
        for node in ast.walk(argument)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return texts if name in {"tell", "degrade"} else {text for text in texts if text.endswith("_failed")}


def test_the_events_on_the_page_are_those_that_the_store_tells():
    (table,) = re.findall(r"^\| event \|.*?\n\n", PAGE, re.DOTALL | re.MULTILINE)
    names = " ".join(row.split("|")[1] for row in table.splitlines() if row)
    nodes = [node for path in STORE for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    told = {name for node in nodes if isinstance(node, ast.Call) for name in events_in(node)}
    usual = {
        node.value
        for function in nodes
        if isinstance(function, ast.FunctionDef)
        for node in function.args.defaults
        if isinstance(node, ast.Constant) and str(node.value).endswith("_failed")
    }
    assert set(re.findall(r"`([a-z_]+)`", names)) == told | usual


def test_every_kind_of_finding_is_on_the_page():
    (table,) = [table for table in TABLES if table[0].startswith("| finding ")]
    kinds = {kind for row in table[2:] for kind in re.findall(r"`(\w+)`", row.split("|")[1])}
    told = set(re.findall(r'\b(?:note|damage)\(\s*"(\w+)"', SOURCES)) | set(re.findall(r'_damage\("(\w+)"', SOURCES))
    told |= set(re.findall(r'\btell\("(\w+)", walk\.path', SOURCES))  # of either kind
    assert kinds == told
