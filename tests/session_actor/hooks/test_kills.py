"""kill -9 between any two steps of an end with three mandatory hooks, one of which fails twice."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

NAMES = {"bill", "learn", "export"}


class Workers:
    """One child that forks a worker for every life."""

    def __init__(self, child: subprocess.Popen[str]) -> None:
        self._child = child

    def live(self, folder: Path, what: str, kill_at: int = 0) -> int:
        task = {"root": str(folder / "store"), "notes": str(folder / "notes"), "what": what, "kill_at": kill_at}
        self._child.stdin.write(json.dumps(task) + "\n")
        self._child.stdin.flush()
        answer = self._child.stdout.readline().strip()
        assert answer != "failed", f"{what} killed at {kill_at}"
        return int(answer)


@pytest.fixture(scope="module")
def workers():
    script = str(Path(__file__).with_name("child_ender.py"))
    with subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        yield Workers(child)
        child.stdin.close()
        assert child.wait(10) == 0


def check(folder: Path, what: str) -> str:
    """What the workers noted is what may happen; returns what the last one found."""
    path = folder / "notes"
    lines = [line.split(" ") for line in path.read_text().splitlines()] if path.exists() else []
    done, keys = defaultdict(int), defaultdict(set)
    through = found = None
    for line in lines:
        match line:
            case ["begin", name, key, _]:
                assert through is None, f"{name} ran after it was done"
                keys[name].add(key)
            case ["ok", name, _, shown]:
                done[name] += 1
                assert shown == "hello"
            case ["found", ended]:
                through = found = ended
    assert found is not None
    assert all(len(of_one) == 1 for of_one in keys.values())
    if ["acknowledged"] in lines:
        assert found == ("gone" if what == "delete" else "done")
    if found == "None" or not lines[:-2]:
        assert set(done) == set(keys) == set()
    else:
        assert set(done) == NAMES
    return found


@pytest.mark.parametrize("what", ["end", "delete"])
def test_each_completes_and_none_is_forgotten_and_none_runs_after_its_success(workers, tmp_path, what, request):
    (tmp_path / "whole").mkdir()
    count = workers.live(tmp_path / "whole", what)
    found = set()
    # Each step in a full run of the faults, else every other one: a session that is whole and not ended lasts two.
    first, stride = (1, 1) if request.config.option.faults == "full" else (random.choice([1, 2]), 2)
    for kill_at in range(first, count + 1, stride):
        folder = tmp_path / str(kill_at)
        folder.mkdir()
        workers.live(folder, what, kill_at)
        assert workers.live(folder, "go_on") > 0
        found.add(check(folder, what))
    assert count > 30
    assert found <= ({"gone", "None"} if what == "delete" else {"gone", "None", "done"})
    assert len(found) > 1


def test_so_it_is_when_the_kills_follow_one_another(workers, tmp_path):
    chance = random.Random(42)
    for life in range(6):
        what = chance.choice(["end", "delete"])
        folder = tmp_path / str(life)
        folder.mkdir()
        workers.live(folder, what, chance.randint(20, 60))
        for _ in range(4):
            workers.live(folder, "go_on", chance.randint(5, 40))
        assert workers.live(folder, "go_on") > 0
        check(folder, what)
