"""Syncs that the system refuses, by strace: those of the store, and those that SQLite makes for the catalog."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .tracing import trace, why_not_traced
from .verified import damage_in

pytestmark = pytest.mark.timeout(600)

HERE = Path(__file__).parent
SYNCS = 60
"""Of a life that seals a journal which an earlier cut began; some behind it are left out."""


def test_any_sync_may_be_refused(tmp_path, faults):
    why_not = why_not_traced()
    if why_not is not None:
        pytest.skip(why_not)
    for number in faults.some(range(1, SYNCS + 1)):
        work_refused(tmp_path / str(number), number)


def work_refused(folder: Path, number: int) -> None:
    """Keys make it safe to push once more what was refused: all is there, once, and nothing is damaged."""
    command = [sys.executable, HERE / "refused_sync.py", folder]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child,
        trace(child.pid, "fsync,fdatasync", f"error=EIO:when={number}") as strace,
    ):
        told, complaint = child.communicate(timeout=60)
        strace.wait(60)
    assert child.returncode == 0, (number, complaint.decode())
    expected, found = json.loads(told.splitlines()[-1])
    assert found == expected, number
    assert damage_in(folder) == [], number
