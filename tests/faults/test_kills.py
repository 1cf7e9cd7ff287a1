"""SIGKILL: at random moments of a writer under load, and at every system call of each operation."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .tracing import why_not_traced

pytestmark = pytest.mark.timeout(1500)

HERE = Path(__file__).parent
KILLS = 5_000
PROCESSES = 2
OPERATIONS = (
    ("create", "push", "push_synced", "delete"),
    ("rotate_and_cut", "rotate_and_cut_in_threads", "close_with_snapshots", "prune"),
    ("repair", "repair_readable", "salvage_at_load"),
    ("compact", "uncompact", "retract"),
)


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, HERE / script, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def counted(process: subprocess.Popen[str]) -> Any:
    """What a script of this folder counted; it fails when something does not hold."""
    with process:
        told, complaint = process.communicate(timeout=1400)
    assert process.returncode == 0, told + complaint
    return json.loads(told)


def test_kills_at_random_moments_lose_nothing_that_was_acknowledged_and_bring_nothing_back(tmp_path, faults):
    """Sessions push, pop, move, fork and are deleted at `written`: all is as acknowledged, or one operation further."""
    kills = faults.count(KILLS) // PROCESSES
    seeds = [f"{faults.seed}/{process}" for process in range(PROCESSES)]
    processes = [start("kill_load.py", tmp_path / f"store {seed[-1]}", kills, seed) for seed in seeds]
    for found in [counted(process) for process in processes]:
        assert found["kills"] >= kills
        assert found["acknowledged"] > kills


@pytest.mark.parametrize("operations", OPERATIONS, ids=" ".join)
def test_a_kill_at_any_system_call_of_an_operation_leaves_a_store_that_is_whole(tmp_path, faults, operations):
    why_not = why_not_traced()
    if why_not is not None:
        pytest.skip(why_not)
    every = round(1 / faults.scale)
    found = counted(start("kill_points.py", tmp_path, every, 1 + faults.number() % every, *operations))
    assert [one["operation"] for one in found] == list(operations)
    assert all(one["points"] > 0 or every > 1 for one in found), found
