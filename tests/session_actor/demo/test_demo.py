"""The demo itself: it runs, it kills, and it notices when something is missing."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from session_actor import SessionService
from session_actor.demo.child import SESSION_ID
from session_actor.demo.display import Progress
from session_actor.demo.main import SAMPLE
from session_actor.demo.parent import ChildFailed, Kill, Options, Outcome, Parent
from session_actor.demo.plan import Plan, read_plan
from session_actor.demo.protocol import Acknowledged, Ready
from session_actor.demo.verify import verify


def run_demo(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "session_actor", "demo", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def parent_of(folder: Path, **options) -> Parent:
    given = Options(folder, SAMPLE, "written", kills=0, seed=0)._replace(**options)
    return Parent(given, steps=100, progress=Progress(100, 0, io.StringIO()))


def acknowledged(step: int) -> Acknowledged:
    return Acknowledged(step, frame=step + 1, at_us=1_700_000_000_000_000 + step, took_us=80.0)


async def fed_plan(folder: Path, steps: int | None = None) -> Plan:
    """Feed the sample, or its first steps, in this process and without any kill."""
    plan = await read_plan(SAMPLE)
    async with SessionService.open(folder) as service:
        session = await service.session(SESSION_ID, create=True)
        for step in plan.steps[:steps]:
            await getattr(session, step.method)(**step.arguments)
    return plan


def test_the_demo_loses_nothing_over_three_kills_and_shows_it(tmp_path: Path):
    done = run_demo("--kills", "3", "--seed", "1", "--keep", str(tmp_path / "kept"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for row in (r"frames +116", r"kills \(SIGKILL\) +3", r"lost +0 of them", r"recovered +100 % of [\d,]+ fields"):
        assert re.search(row, done.stdout), done.stdout
    for name in ("checkpoint one-third", "branch idea", "branch main (here)", "forked from"):
        assert name in done.stdout
    assert "kill 3 of 3" in done.stderr
    assert "kept: session 'demo'" in done.stdout
    assert (tmp_path / "kept" / "log").is_dir()


def test_kills_that_are_all_aimed_at_the_end_all_hit(tmp_path: Path):
    parent = Parent(Options(tmp_path, SAMPLE, "written", kills=0, seed=0), 118, Progress(118, 3, io.StringIO()))
    parent._aims.extend(Kill(117, in_recovery=False, delay_s=0.003) for _ in range(3))
    outcome = parent.run()
    assert (outcome.kills, outcome.lost, len(outcome.acknowledged)) == (3, [], 118)
    assert outcome.kills_in_a_row == 2


def test_a_folder_that_is_not_empty_is_refused_and_left_alone(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").write_text("mine")
    done = run_demo("--keep", str(tmp_path / "mine"), cwd=tmp_path)
    assert (done.returncode, "is not empty" in done.stderr) == (2, True)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]


def test_a_transcript_that_is_not_there_is_an_error_without_traceback(tmp_path: Path):
    done = run_demo(str(tmp_path / "absent.jsonl"), cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "absent.jsonl" in done.stderr


async def test_every_field_of_a_session_that_was_fed_whole_is_equal(tmp_path: Path):
    plan = await fed_plan(tmp_path / "store")
    verdict = await verify(tmp_path / "store", plan, Outcome())
    assert verdict.differences == []
    assert verdict.equal == verdict.fields > 12 * len(plan.frames)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"user_input": "something else"}, "frame 9: user_input"),
        ({"decisions": ("another",)}, "frame 9: decisions"),
        ({"depth": 1}, "frame 9: depth"),
        ({"given_turns": ()}, "frame 9: turns"),
    ],
)
async def test_one_field_that_differs_is_found(tmp_path: Path, change: dict, where: str):
    plan = await fed_plan(tmp_path / "store")
    plan.frames[8] = msgspec.structs.replace(plan.frames[8], **change)
    verdict = await verify(tmp_path / "store", plan, Outcome())
    assert verdict.differences == [where]


async def test_a_frame_a_name_and_a_time_that_are_missing_are_found(tmp_path: Path):
    plan = await fed_plan(tmp_path / "store")
    outcome = Outcome(acknowledged={3: acknowledged(3)})
    plan.checkpoints["never-made"] = 5
    plan.frames.append(msgspec.structs.replace(plan.frames[-1], id=len(plan.frames) + 1))
    verdict = await verify(tmp_path / "store", plan, outcome)
    missing = len(plan.frames)
    assert f"frame {missing}: id" in verdict.differences
    assert f"frame {missing}: turns" in verdict.differences
    assert "checkpoint 'never-made'" in verdict.differences
    assert "frame 4: at_us" in verdict.differences


def test_an_acknowledged_step_that_a_recovery_does_not_find_is_lost(tmp_path: Path):
    parent = parent_of(tmp_path)
    for message in (Ready(0, 1.0), acknowledged(0), acknowledged(1), acknowledged(2), Ready(1, 2.0), acknowledged(1)):
        parent._take(message)
    assert parent.outcome.lost == [1, 2]
    assert sorted(parent.outcome.acknowledged) == [0, 1]


def test_a_child_that_fails_by_itself_ends_the_demo_and_says_why(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ChildFailed, match="the child ended with code 1"):
        parent_of(tmp_path / "file").run()
