"""The suite's own net: it must catch what a test leaves behind, and run on the loop that was asked for."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PROBES = """
import asyncio
import threading

held = []


async def test_leaves_a_task():
    held.append(asyncio.ensure_future(asyncio.Event().wait()))


def test_leaves_a_file(tmp_path):
    held.append(open(tmp_path / "open", "w"))


def test_leaves_a_thread():
    gate = threading.Event()
    held.append(gate)
    threading.Thread(target=gate.wait).start()
    timer = threading.Timer(2.5, gate.set)
    timer.daemon = True
    timer.start()


async def test_leaves_nothing(tmp_path):
    task = asyncio.ensure_future(asyncio.Event().wait())
    task.cancel()
    await asyncio.to_thread((tmp_path / "closed").write_text, "")
    print("on", type(asyncio.get_running_loop()).__module__)
"""


def run_probes(folder: Path, *arguments: str, loop: str) -> tuple[int, str]:
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    (folder / "test_probes.py").write_text(PROBES)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n")
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:randomly", *arguments, str(folder)]
    environment = {**os.environ, "SESSION_ACTOR_TEST_LOOP": loop}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_a_task_a_thread_and_a_file_that_are_left_behind_fail_their_tests(tmp_path: Path):
    code, output = run_probes(tmp_path, loop="asyncio")
    failed = re.findall(r"^ERROR .*::(\w+)", output, re.MULTILINE)
    assert (code, failed) == (1, ["test_leaves_a_task", "test_leaves_a_file", "test_leaves_a_thread"]), output
    assert "on asyncio.unix_events" in output


def test_the_suite_runs_on_uvloop_when_asked(tmp_path: Path):
    code, output = run_probes(tmp_path, "-k", "test_leaves_nothing", loop="uvloop")
    assert code == 0, output
    assert "on uvloop" in output


def test_an_unknown_loop_is_refused(tmp_path: Path):
    code, output = run_probes(tmp_path, loop="trio")
    assert code != 0
    assert "SESSION_ACTOR_TEST_LOOP is 'trio': use one of asyncio, uvloop" in output
