"""What docs/hooks.md says is so, and its pieces of code run."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
from pathlib import Path

import pytest

from session_actor.hooks import breaker, mandatory
from session_actor.hooks.hook import PHASES, Hook

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "hooks.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))
CODE = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))


def words_below(heading: str) -> set[str]:
    """The words in the first column of the table under a heading."""
    section = re.search(rf"## {heading}\n.*?(?=\n## |\Z)", PAGE, re.DOTALL)[0]
    return set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`.*?) \|", section, re.MULTILINE))))


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_test_that_the_page_names_exists(path, name):
    assert re.search(rf"def {name}\(", (ROOT / "tests" / path).read_text(encoding="utf-8"))


def test_every_phase_and_every_event_is_on_the_page():
    assert words_below("When hooks are called") == set(PHASES)
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "session_actor" / "hooks").glob("*.py"))
    assert words_below("Events") == set(re.findall(r'\(\*EVENT, "(\w+)"\)', sources))


def test_the_figures_on_the_page_are_those_of_the_code():
    assert (mandatory.TRIES, mandatory.UNFINISHED) == (5, 10)
    assert [mandatory.BACKOFF.delay_s(number, lambda: 0.5) for number in (1, 2, 3, 4)] == [1, 4, 16, 64]
    assert (breaker.FAILURES, breaker.WINDOW_S, breaker.REST_S) == (3, 60, 30)
    assert Hook("x", print, "ended").timeout_s == 30


async def test_the_pieces_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = compile(CODE, "hooks.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names: dict[str, object] = {}
    running = eval(code, names)
    if inspect.iscoroutine(running):
        async with asyncio.timeout(20):
            await running
    assert list(names["bills"].values()) == ["user-42: 0 tokens, paid"]
    printed = capsys.readouterr().out
    assert "user-42 is back (created)" in printed
    assert "a hook may not change the session that it was called for ('user-1')" in printed
