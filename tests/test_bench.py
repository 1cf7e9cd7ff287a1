"""Every bench runs in its small size and prints the agreed lines. How fast anything is, is not tested here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
KEYS = ["bench", "peer", "op", "variant", "depth", "n", "p50_us", "mean_us", "p99_us", "ops_per_s"]
# No Elixir on the path: starting it would take longer than all the rest.
ALONE = {**os.environ, "PATH": ""}


def run_bench(name: str, directory: Path) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "bench", name, "--quick", "--json", "--directory", str(directory)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False, env=ALONE)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", ["operations", "overhead", "recovery", "actors", "journal"])
def test_a_bench_prints_lines_with_exactly_the_agreed_keys(name, tmp_path):
    lines = run_bench(name, tmp_path)

    assert lines
    assert all(list(line) == KEYS for line in lines)
    assert {line["bench"] for line in lines} == {name}
    assert "session-actor" in {line["peer"] for line in lines}
    assert all((line["p50_us"] is None) or line["p50_us"] > 0 for line in lines)
    assert not list(tmp_path.iterdir())


def test_nothing_that_was_acknowledged_at_written_or_synced_is_lost_at_a_kill(tmp_path):
    lines = run_bench("kill", tmp_path)

    lost = {line["variant"]: line["n"] for line in lines if line["op"] == "lost" and line["peer"] == "session-actor"}
    assert set(lost) == {"async", "written", "synced"}
    assert lost["written"] == lost["synced"] == 0
    assert all(list(line) == KEYS for line in lines)
