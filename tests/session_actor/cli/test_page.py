"""The page docs/command-line.md, and the examples in the help: what they say is so, and what they show runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from session_actor.cli.program import COMMANDS, module_of

from ...named_tests import missing_of
from .conftest import PAGE

SHOWN = re.findall(r"^ {4}(session-actor .*)$", PAGE, re.MULTILINE)
HELPED = [line for name, about in COMMANDS.items() if not about.plain for line in module_of(about).command.examples]


def runnable(lines: list[str]) -> list[str]:
    """Those that end by themselves, and need neither a terminal nor another file or time."""
    last = r"tail conversations/ +#|tail conversations/ user-42 -n|tail .*--json|completion|2026-|import|\$\(|odd"
    return [line for line in dict.fromkeys(lines) if not re.search(last, line)]


def words_of(line: str, made: Path, kiosk: Path) -> list[str]:
    """What is to be run for a line of the page, without the name of the program."""
    store = kiosk / "conversations" if " kiosk" in line else made
    line = line.partition(" | ")[0].replace("conversations/", f"{store}/", 1)
    return shlex.split(line.replace("models.toml", str(kiosk / "models.toml")), comments=True)[1:]


def test_every_command_and_no_other_is_in_the_table():
    assert re.findall(r"^\| `(\w+) ?[^`]*` \| [^|]* \| (?:yes|no)? ?\|$", PAGE, re.MULTILINE) == list(COMMANDS)


def test_the_tests_that_the_page_names_exist():
    assert missing_of(PAGE, Path(__file__).parent) == []


@pytest.mark.parametrize("line", runnable([*SHOWN, *HELPED]))
def test_what_is_shown_runs(run, made, kiosk, tmp_path, monkeypatch, line):
    monkeypatch.chdir(tmp_path)
    words = words_of(line, made, kiosk)
    ran = run(*words)
    assert ran.code in ({0, 1} if {"--exit-code", "--find"} & set(words) else {0}), ran.err


def test_an_export_that_is_shown_is_imported_as_shown(run, made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [line for line in SHOWN if "user-42.ndjson" in line]
    for line in lines:
        assert run(*shlex.split(line.replace("conversations/", f"{made}/", 1))[1:]).code == 0
    assert [each["id"] for each in run("list", tmp_path / "copies", "--json").objects] == ["user-42"]
    assert len(lines) == 2


def test_what_the_page_prints_is_printed(run, made, kiosk):
    *whys, (_, tree) = re.findall(r"^ {4}(session-actor [^\n]*)\n\n```text\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(whys) == PAGE.count("```text") - 1 == 4
    for line, printed in whys:
        assert run(*words_of(line, made, kiosk)).out == printed
    assert run("tree", made, "user-42").out.endswith(tree)
