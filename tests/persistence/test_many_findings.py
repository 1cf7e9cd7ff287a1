"""However much is found, none of it hides another: repair mends all, or says that more is to be done."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from session_actor.cli.repair import run_repair
from session_actor.persistence.checking import findings as kept
from session_actor.persistence.checking.verify import check
from session_actor.persistence.repair.repair import ROUNDS_MAX, repair

from .stores import cut_all, fill, flip, journals, kinds

MANY = 40


@pytest.fixture
async def root(tmp_path, monkeypatch) -> Path:
    await fill(tmp_path / "store", in_log=0)
    await cut_all(tmp_path / "store")
    monkeypatch.setattr(kept, "KEPT_MAX", 3)
    return tmp_path / "store"


def publish(root: Path) -> None:
    """Files that others may read, as a copy makes them that keeps no modes."""
    (root / "aside").mkdir(mode=0o700, exist_ok=True)
    for number in range(MANY):
        (root / "aside" / f"{number}.torn").touch(mode=0o644)
        (root / "aside" / f"{number}.torn").chmod(0o644)


def litter(root: Path, count: int) -> None:
    """Files that a prune or a cut left behind, and as many that are none of the store's."""
    first = journals(root, "a")[0]
    header = first.read_bytes().splitlines(keepends=True)[0]
    for number in range(count):
        stale = first.with_name(first.name.replace("-1.", f"-{1000 + number}."))
        stale.write_bytes(header)
        stale.chmod(0o600)
        strange = first.with_name(f"{number}.txt")
        strange.touch(mode=0o600)


def coded(root: Path, *, write: bool, salvage=None) -> int:
    return run_repair(root, write=write, salvage=salvage, sessions=None, as_json=True)


def test_notes_hide_no_damage(root, capsys):
    flip(journals(root, "a")[0], 300)
    publish(root)
    litter(root, 5)
    found = check(root)
    assert (kinds(found), found.damaged) == (["journal"], True)
    assert found.cut == {"mode", "leftover", "stranger"}
    assert [finding.kind for finding in repair(root).left] == ["journal"]
    assert coded(root, write=True) == 1
    assert "journal" in capsys.readouterr().out
    salvaged = repair(root, write=True, salvage="readable")
    assert ([step.kind for step in salvaged.steps], salvaged.left, salvaged.more) == (["journal"], [], False)


def test_all_modes_are_one_step(root):
    publish(root)
    repairs = repair(root, write=True)
    assert [(step.kind, step.path) for step in repairs.steps] == [("mode", str(root))]
    assert {path.stat().st_mode & 0o777 for path in (root / "aside").iterdir()} == {0o600}
    assert check(root).list == []


def test_more_than_is_kept_in_one_round_is_mended_to_the_end(root):
    litter(root, 3 * ROUNDS_MAX + 5)
    repairs = repair(root, write=True)
    assert (len(repairs.steps), repairs.left, repairs.more) == (3 * ROUNDS_MAX + 5, [], False)
    assert set(kinds(check(root), "note")) == {"stranger"}
    assert coded(root, write=True) == 0


def test_what_strangers_there_are_leaves_nothing_to_do(root, capsys):
    litter(root, 5)
    repair(root, write=True)
    assert run_repair(root, write=True, salvage=None, sessions=None, as_json=False) == 0
    assert "nothing to do" in capsys.readouterr().out


def test_more_damage_than_is_kept_is_left_and_said_to_be_so(root, capsys):
    for path in journals(root):
        flip(path, 300)
    assert run_repair(root, write=True, salvage=None, sessions=None, as_json=False) == 1
    assert "more is to be done" in capsys.readouterr().out
    repairs = repair(root, write=True, salvage="readable")
    assert (repairs.left, repairs.more) == ([], False)
    assert not check(root).damaged


def test_rounds_that_ran_out_say_so(root, monkeypatch):
    monkeypatch.setattr("session_actor.persistence.repair.repair.ROUNDS_MAX", 1)
    (root / "catalog.db").unlink()
    publish(root)
    first = repair(root, write=True)
    assert ([step.kind for step in first.steps], first.left, first.more) == (["catalog"], [], True)
    monkeypatch.undo()
    assert not repair(root, write=True).more
    shutil.rmtree(root / "aside")
    assert check(root).list == []
