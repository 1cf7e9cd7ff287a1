"""The library is replaced by a newer version in a running process: a field of the state has another name there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from session_actor import HandoverUnusable
from session_actor.handover.values import VERSION, changed

ROOT = Path(__file__).parents[3]
CHILD = Path(__file__).parent / "child_reimport.py"
STEPS = """\
def _milestones(value):
    state = value["state"]
    return value | {"state": {name if name != "checkpoints" else "milestones": state[name] for name in state}}


STEPS: Final[Mapping[int, Callable[[Value], Value]]] = {1: _milestones}
"""


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """A copy of the library whose values are of version 2, in which `checkpoints` are `milestones`."""
    folder = tmp_path / "newer"
    shutil.copytree(ROOT / "session_actor", folder / "session_actor", ignore=shutil.ignore_patterns("__pycache__"))
    values = folder / "session_actor" / "handover" / "values.py"
    text = values.read_text()
    assert "VERSION: Final = 1\n" in text
    text = text.replace("VERSION: Final = 1\n", "VERSION: Final = 2\n")
    before, empty, after = text.partition("STEPS: Final[Mapping[int, Callable[[Value], Value]]] = {}\n")
    assert empty
    values.write_text(before + STEPS + after)
    snapshots = folder / "session_actor" / "server" / "snapshots.py"
    text = snapshots.read_text()
    snapshots.write_text(
        text.replace("    checkpoints: ", "    milestones: ").replace("saved.checkpoints", "saved.milestones")
    )
    return folder


def test_a_newer_version_of_the_library_takes_over_a_running_service(folder, newer):
    done = subprocess.run(
        [sys.executable, CHILD, folder, newer], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    assert "ValueError raised in refuse" in found["said"]
    assert "handed over to another generation of the library" in found["late"]
    assert found["kinds"] == [True, True, True, True], "replies are of the new classes, errors of the caller's"
    assert found["repeated"] == 1
    assert [texts[0] for texts in found["texts"]] == ["1", "2", "3", "4", "5", "6"]
    assert found["parents"] == [None, 1, 2, 3, 4, 5]
    assert found["checkpoints"] == {"here": 1}
    assert found["again"] == 2


def test_a_chain_makes_each_version_of_the_one_before():
    steps = {number: lambda value, number=number: value | {"seen": [*value["seen"], number]} for number in (1, 2, 3)}
    value = {"state": '{"a":1}', "seen": []}

    assert changed(2, value, steps=steps, newest=4) == {"state": '{"a":1}', "seen": [2, 3]}
    assert changed(4, value, steps=steps, newest=4) is value
    assert changed(3, value | {"state": None}, steps=steps, newest=4)["state"] is None
    assert value == {"state": '{"a":1}', "seen": []}


@pytest.mark.parametrize("version", [0, VERSION + 1, True, "1", None])
def test_a_value_of_a_version_that_cannot_be_is_refused(version):
    with pytest.raises(HandoverUnusable, match="version"):
        changed(version, {"state": None})


def test_a_missing_step_and_a_step_that_gives_no_value_are_refused():
    with pytest.raises(HandoverUnusable, match="no step from version 1 to 2"):
        changed(1, {"state": None}, steps={}, newest=2)
    with pytest.raises(HandoverUnusable, match="must return the value"):
        changed(1, {"state": None}, own=lambda version, value: None)
