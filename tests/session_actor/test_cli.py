"""The commands `verify` and `repair`: what they print, what they answer to a shell, and that they need no arguments."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from session_actor import Hook, HookContext, SessionService
from session_actor.__main__ import main


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    """A store with one session."""
    async with SessionService.open(tmp_path / "store") as service:
        session = await service.session("user-42", create=True)
        for number in range(5):
            await session.push(f"secret {number}", "answer")
    return tmp_path / "store"


def damage(folder: Path, text: bytes = b"secret 2") -> None:
    for path in [*folder.glob("log/*.ndjson"), *folder.glob("journals/*/*.ndjson")]:
        data = bytearray(path.read_bytes())
        at = data.find(text)
        if at >= 0:
            data[at] ^= 1
            path.write_bytes(data)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_a_sound_store_verifies(folder, capsys):
    assert main(["verify", str(folder)]) == 0
    (summary,) = lines(capsys)
    assert summary.startswith("1 session, 6 records, ")
    assert summary.endswith(": no damage")


async def test_what_the_library_keeps_for_its_hooks_is_counted_apart(folder, capsys):
    async def bill(_: HookContext) -> None: ...

    async with SessionService.open(folder, hooks=[Hook("bill", bill, "ended", mandatory=True)]) as service:
        await service.end("user-42")
    assert main(["verify", str(folder)]) == 0
    assert lines(capsys)[0].startswith("1 session and what the library keeps for its hooks, ")
    assert main(["verify", str(folder), "--json"]) == 0
    summary = json.loads(lines(capsys)[-1])["summary"]
    assert (summary["sessions"], summary["own"]) == (1, 1)


def test_damage_is_printed_a_line_each_and_answered_with_one(folder, capsys):
    damage(folder)
    assert main(["verify", str(folder)]) == 1
    found, summary = lines(capsys)
    assert found.startswith("damage: ")
    assert "'user-42'" in found
    assert "python -m session_actor repair" in found
    assert "secret" not in found
    assert summary.endswith(": 1 damaged place")


def test_findings_are_json_when_asked_for(folder, capsys):
    damage(folder)
    assert main(["verify", str(folder), "--json"]) == 1
    found, summary = [json.loads(line) for line in lines(capsys)]
    assert (found["severity"], found["session"]) == ("damage", "user-42")
    assert {"kind", "path", "what", "advice", "offset"} <= found.keys()
    assert summary["summary"]["damage"] == 1


def test_notes_alone_are_no_damage(folder, capsys):
    (folder / "notes.txt").write_text("mine")
    assert main(["verify", str(folder)]) == 0
    note, summary = lines(capsys)
    assert note.startswith("note: stranger: ")
    assert summary.endswith("no damage, 1 note")


@pytest.mark.parametrize("command", [["verify"], ["repair"], ["repair", "--write"]])
def test_what_cannot_run_answers_two(tmp_path, command, capsys):
    assert main([command[0], str(tmp_path / "missing"), *command[1:]]) == 2
    assert "missing" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["verify"], ["repair"], ["repair", "--write"]])
async def test_a_store_in_use_answers_five(folder, command, capsys):
    async with SessionService.open(folder):
        assert main([command[0], str(folder), *command[1:]]) == 5
    assert str(os.getpid()) in capsys.readouterr().err


def test_repair_of_a_sound_store_has_nothing_to_do(folder, capsys):
    assert main(["repair", str(folder)]) == 0
    assert lines(capsys) == ["nothing to do"]


def test_repair_tells_what_it_would_do_and_does_it_when_told_to(folder, capsys):
    (folder / "catalog.db").unlink()
    assert main(["repair", str(folder)]) == 1
    step, summary = lines(capsys)
    assert step.startswith("repair: catalog: ")
    assert summary == f"1 step to do: `python -m session_actor repair {folder} --write`"
    assert not (folder / "catalog.db").exists()
    assert main(["repair", str(folder), "--write"]) == 0
    assert lines(capsys)[-1] == "1 step done"
    assert main(["verify", str(folder)]) == 0
    assert main(["repair", str(folder), "--write"]) == 0


def test_what_is_left_is_told_and_answered_with_one(folder, capsys):
    damage(folder)
    assert main(["repair", str(folder), "--write"]) == 1
    found, summary = lines(capsys)
    assert found.startswith("damage: ")
    assert "--salvage" in found
    assert summary == "1 damaged place left: see above what to do"
    assert main(["repair", str(folder), "--write", "--salvage", "readable", "--session", "user-42"]) == 0
    assert main(["verify", str(folder)]) == 0


def test_steps_are_json_when_asked_for(folder, capsys):
    damage(folder)
    assert main(["repair", str(folder), "--salvage", "prefix", "--json"]) == 1
    (step,) = [json.loads(line) for line in lines(capsys)]
    assert step["session"] == "user-42"


def test_salvage_prints_its_steps_and_nothing_else(folder, capsys):
    damage(folder)
    assert main(["repair", str(folder), "--salvage", "readable", "--write", "--json"]) == 0
    printed = capsys.readouterr()
    assert [json.loads(line)["session"] for line in printed.out.splitlines()] == ["user-42"]
    assert printed.err == ""


def test_an_unknown_salvage_is_refused(folder, capsys):
    with pytest.raises(SystemExit) as refused:
        main(["repair", str(folder), "--salvage", "all"])
    assert refused.value.code == 2
    assert "readable" in capsys.readouterr().err


def test_the_commands_run_as_a_module(folder):
    for command in (["verify", str(folder)], ["repair", str(folder), "--write"]):
        done = subprocess.run([sys.executable, "-m", "session_actor", *command], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout


def test_the_lines_that_are_advised_do_what_they_say(folder, capsys):
    folder = folder.rename(folder.with_name("my store"))
    damage(folder)
    assert main(["verify", str(folder)]) == 1
    advised = lines(capsys)[0].partition("to do: `")[2].partition("`")[0]
    assert f"'{folder}' --salvage readable" in advised
    assert advised.endswith(" --write")
    assert main(shlex.split(advised)[3:]) == 0
    assert main(["verify", str(folder)]) == 0


@pytest.mark.parametrize("salvage", ["prefix", "readable"])
def test_a_dry_run_that_only_salvage_can_help_says_so_and_with_it_the_line_that_does_it(folder, salvage, capsys):
    damage(folder)
    assert main(["repair", str(folder)]) == 1
    assert lines(capsys)[-1] == "1 damaged place left: see above what to do"
    assert main(["repair", str(folder), "--salvage", salvage, "--session", "user-42"]) == 1
    advised = lines(capsys)[-1].partition("`")[2].partition("`")[0]
    assert advised.endswith(f" --salvage {salvage} --session user-42 --write")
    assert main(shlex.split(advised)[3:]) == 0
    assert main(["verify", str(folder)]) == 0


@pytest.mark.parametrize("write", [[], ["--write"]])
def test_a_session_that_is_not_there_cannot_be_salvaged(folder, write, capsys):
    damage(folder)
    assert main(["repair", str(folder), "--salvage", "readable", "--session", "nosuch", *write]) == 2
    assert "no session 'nosuch'" in capsys.readouterr().err
    assert main(["verify", str(folder)]) == 1


def test_a_store_that_was_never_finished_is_told_in_one_clear_line(tmp_path, capsys):
    (tmp_path / "log").mkdir(mode=0o700)
    assert main(["verify", str(tmp_path)]) == 0
    note, summary = lines(capsys)
    assert note.endswith("no record is in it; to do: nothing, opening the store makes it")
    assert summary == "0 sessions, 0 records, 0 bytes read: no damage, 1 note"


@pytest.mark.parametrize("command", [["verify"], ["repair"], ["repair", "--write"]])
def test_a_directory_that_is_no_store_answers_two(tmp_path, command, capsys):
    (tmp_path / "x").write_text("mine")
    assert main([command[0], str(tmp_path), *command[1:]]) == 2
    assert "is no session-actor store" in capsys.readouterr().err
