"""What the demo ends with: 0, or 1 when a promise was broken."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from session_actor.demo.main import SAMPLE, _percent, run_demo
from session_actor.demo.parent import ChildFailed, Outcome, Parent
from session_actor.demo.verify import Verdict

from .test_demo import fed_plan


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Runs the demo with a stand-in for the process that kills; it feeds the store here, whole or in part."""

    def run(durability: str, found: Callable[[Path], Outcome]) -> int:
        monkeypatch.setattr(Parent, "run", lambda parent: found(parent._options.directory))
        return run_demo(SAMPLE, kills=0, seed=1, durability=durability, keep=tmp_path / "kept")

    return run


@pytest.mark.parametrize(
    ("durability", "lost", "code"),
    [("written", [7], 1), ("synced", [7], 1), ("async", [7], 0), ("written", [], 0), ("async", [], 0)],
)
def test_what_is_lost_breaks_the_promise_of_written_and_synced_and_of_no_other(run, capsys, durability, lost, code):
    def found(folder: Path) -> Outcome:
        asyncio.run(fed_plan(folder))
        return Outcome(lost=lost)

    assert run(durability, found) == code
    assert re.search(rf"lost +{len(lost)} of them", capsys.readouterr().out)


@pytest.mark.parametrize("durability", ["async", "written", "synced"])
def test_a_difference_is_a_failure_at_every_level_and_never_shown_as_100_per_cent(run, capsys, durability):
    def found(folder: Path) -> Outcome:
        asyncio.run(fed_plan(folder, steps=100))
        return Outcome()

    assert run(durability, found) == 1
    shown = capsys.readouterr().out
    assert "differs: frame" in shown
    assert re.search(r"recovered +\d\d\.\d\d % of", shown)


def test_a_session_that_cannot_be_recovered_is_a_failure(run, capsys):
    def found(folder: Path) -> Outcome:
        asyncio.run(fed_plan(folder))
        (folder / "FORMAT").write_text("something else")
        return Outcome()

    assert run("written", found) == 1
    assert "the session was not recovered" in capsys.readouterr().err


def test_a_child_that_fails_by_itself_is_a_failure(run, capsys):
    def found(folder: Path) -> Outcome:
        raise ChildFailed("the child ended with code 3: ")

    assert run("written", found) == 1
    assert "the child ended with code 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("equal", "shown"),
    [(1_000_000, "100 %"), (999_999, "99.99 %"), (500_000, "50.00 %"), (0, "0.00 %")],
)
def test_the_share_that_was_recovered_is_100_only_when_nothing_is_missing(equal, shown):
    assert _percent(Verdict(fields=1_000_000, equal=equal)) == shown
