"""The suite's own net: it must catch what a test leaves behind, and run on the loop that was asked for."""

from __future__ import annotations

import ast
import asyncio
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")

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
"""


@pytest.fixture
def conftest():
    """The conftest as a module of its own, to call its hook."""
    spec = importlib.util.spec_from_file_location("conftest_under_test", CONFTEST)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_task_a_thread_and_a_file_that_are_left_behind_fail_their_tests(tmp_path: Path):
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "test_probes.py").write_text(PROBES)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    failed = re.findall(r"^ERROR .*::(\w+)", done.stdout, re.MULTILINE)
    assert failed == ["test_leaves_a_task", "test_leaves_a_file", "test_leaves_a_thread"], done.stdout + done.stderr
    assert "4 passed, 3 errors" in done.stdout


@pytest.mark.parametrize("name", ["asyncio", "uvloop"])
def test_the_suite_runs_on_the_loop_that_is_asked_for(conftest, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SESSION_ACTOR_TEST_LOOP", name)
    (factory,) = conftest.pytest_asyncio_loop_factories(config=None, item=None).values()
    loop = factory()
    loop.close()
    assert type(loop).__module__.split(".")[0] == name


async def test_this_test_runs_on_that_loop():
    asked = os.environ.get("SESSION_ACTOR_TEST_LOOP", "asyncio")
    assert type(asyncio.get_running_loop()).__module__.split(".")[0] == asked


def test_an_unknown_loop_is_refused(conftest, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SESSION_ACTOR_TEST_LOOP", "trio")
    with pytest.raises(pytest.UsageError, match="'trio': use one of asyncio, uvloop"):
        conftest.pytest_asyncio_loop_factories(config=None, item=None)


def test_every_sweep_of_which_a_run_does_a_part_is_done_whole_by_make_faults():
    root = CONFTEST.parent.parent
    sweeps = {
        f"{path.relative_to(root)}::{test.name}"
        for path in CONFTEST.parent.rglob("test_*.py")
        if "faults" not in path.relative_to(CONFTEST.parent).parts
        if "faults" in (source := path.read_text(encoding="utf-8"))
        for test in ast.walk(ast.parse(source))
        if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef) and test.name.startswith("test_")
        if "faults" in {argument.arg for argument in test.args.args}
    }
    listed = re.search(r"^SWEEPS := ((?:.*\\\n)*.*)$", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = set(listed[1].replace("\\\n", " ").split())
    assert len(sweeps) > 3
    assert {sweep for sweep in sweeps if not {sweep, sweep.partition("::")[0]} & named} == set()
