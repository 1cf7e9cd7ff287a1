"""Python's development mode finds nothing: no task left or lost, no file open, no warning."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHILD = Path(__file__).with_name("child_everything.py")


def test_a_service_that_has_seen_everything_leaves_no_task_and_no_warning_in_development_mode(folder):
    environment = {**os.environ, "PYTHONASYNCIODEBUG": "1"}
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", CHILD, folder],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
    )
    complaints = [line for line in done.stderr.splitlines() if "server_crashed" not in line]
    assert complaints == []
    assert done.returncode == 0
