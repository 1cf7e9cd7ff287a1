"""System calls that a signal interrupts (EINTR), by strace: they are made again, and nobody notices."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .tracing import trace, why_not_traced
from .verified import damage_in

HERE = Path(__file__).parent
CALLS = ("openat", "write", "pwrite64", "read", "pread64", "fdatasync", "ftruncate", "fallocate")


def test_interrupted_calls_are_made_again(tmp_path, faults):
    """Every fifth one of all kinds together; in a full run also of each kind alone."""
    why_not = why_not_traced()
    if why_not is not None:
        pytest.skip(why_not)
    for calls in [",".join(CALLS), *(CALLS if faults.scale == 1 else ())]:
        work_interrupted(tmp_path / calls, calls)


def work_interrupted(folder: Path, calls: str) -> None:
    command = [sys.executable, HERE / "interrupted.py", folder]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child,
        trace(child.pid, calls, "error=EINTR:when=2+5") as strace,
    ):
        told, complaint = child.communicate(timeout=60)
        strace.wait(60)
    assert child.returncode == 0, complaint.decode()
    assert json.loads(told.splitlines()[-1]) == [True, ["a"]]
    assert damage_in(folder) == []
