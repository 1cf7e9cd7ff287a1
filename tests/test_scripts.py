"""The script that finds the Pythons for `make setup` and `make test-all`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "pythons"
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
BASE = os.path.realpath(sys._base_executable)


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def run(tmp_path: Path):
    """Runs the script on a machine that has only the programs below `bin` and `home`."""

    def run_script(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path / "home")}
        return subprocess.run(
            ["/bin/sh", SCRIPT, *arguments], env=environment, capture_output=True, text=True, check=False
        )

    return run_script


def test_a_python_on_the_path_is_found(tmp_path: Path, run):
    program(tmp_path / "bin" / f"python{VERSION}", f'exec {BASE} "$@"')
    done = run()
    assert (done.returncode, os.path.realpath(done.stdout.strip())) == (0, BASE)


def test_a_shim_that_does_not_start_is_passed_over_for_the_version_behind_it(tmp_path: Path, run):
    program(tmp_path / "bin" / f"python{VERSION}", "echo 'command not found' >&2; exit 127")
    program(tmp_path / "home" / ".pyenv" / "versions" / f"{VERSION}.9" / "bin" / "python", f'exec {BASE} "$@"')
    done = run("first")
    assert (done.returncode, os.path.realpath(done.stdout.strip())) == (0, BASE)


def test_a_python_that_is_too_old_or_cannot_make_environments_is_passed_over(tmp_path: Path, run):
    program(tmp_path / "bin" / "python3", "exit 1")
    done = run()
    assert (done.returncode, done.stdout) == (1, "")
    assert "No Python 3.11 to 3.14" in done.stderr
