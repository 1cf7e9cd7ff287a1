"""Exit codes, damage, newer formats, pipes, the extra that is missing, the demo, completion, the doctor."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from session_actor import SessionService
from session_actor.__main__ import main
from session_actor.cli import checks, store_checks
from session_actor.cli.codes import code_of
from session_actor.errors import RecordUnknown, StoreCorrupt

READING = (
    ["show"],
    ["tree"],
    ["replay"],
    ["diff", "first"],
    ["stats"],
    ["tail", "--no-follow", "-n", "99"],
    ["export"],
)


def ask(run, command: list[str], folder: Path):
    name, *options = command
    given = [*options, "user-42"] if name != "diff" else ["user-42", *options]
    return run(name, folder, *given)


def damage(folder: Path, text: bytes) -> None:
    for path in [*folder.glob("log/*.ndjson"), *folder.glob("journals/*/*.ndjson")]:
        data = bytearray(path.read_bytes())
        at = data.find(text)
        if at >= 0:
            data[at] ^= 1
            path.write_bytes(data)


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_damaged_session_is_read_up_to_the_damage_and_answered_with_three(run, folder, command):
    damage(folder, b"secret page")
    ran = ask(run, command, folder)
    assert ran.code == 3
    assert ran.out
    (told,) = ran.err.splitlines()
    assert "is damaged at offset" in told
    assert "secret" not in told
    assert run("list", folder).code == 0


@pytest.mark.parametrize("command", [each for each in READING if each[0] != "tail"], ids=" ".join)
def test_a_session_of_which_nothing_can_be_read_is_answered_with_three(run, folder, command):
    damage(folder, b"session_created")
    ran = ask(run, command, folder)
    assert (ran.code, ran.out) == (3, "")
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("command", [["list"], ["stats"], ["show", "user-42"], ["verify"], ["repair"], ["doctor"]])
def test_a_store_of_a_newer_version_is_answered_with_four(run, folder, command, monkeypatch):
    monkeypatch.setattr("session_actor.persistence.layout.VERSION", 0)
    for arguments in (command, [*command, "--json"]):
        ran = run(arguments[0], folder, *arguments[1:])
        assert ran.code == 4


def test_errors_have_the_codes_that_the_help_tells():
    assert code_of(StoreCorrupt("/x", "why")) == 3
    assert code_of(RecordUnknown("newer")) == 4
    assert code_of(PermissionError()) == 2


@pytest.mark.parametrize("command", [["verify"], ["repair", "--write"], ["import"]])
async def test_a_store_in_use_is_answered_with_five(folder, command, tmp_path):
    (tmp_path / "x.jsonl").write_text('{"role":"user","content":"hi"}\n')
    files = [str(tmp_path / "x.jsonl"), "--form", "openai-chat"] if command == ["import"] else []
    program = (sys.executable, "-m", "session_actor", command[0], str(folder), *files, *command[1:])
    async with SessionService.open(folder):
        done = await asyncio.to_thread(subprocess.run, program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (5, "", 1)
    assert str(os.getpid()) in done.stderr


def test_whoever_stops_reading_ends_it_quietly(made):
    reader, writer = os.pipe()
    os.close(reader)
    command = (sys.executable, "-m", "session_actor", "show", str(made), "user-42")
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_without_the_extra_three_commands_work_and_the_others_say_what_is_missing(made):
    program = (
        "import sys\n"
        "sys.modules['click'] = sys.modules['rich'] = None\n"
        "from session_actor.__main__ import main\n"
        f"made = {str(made)!r}\n"
        "def code(*arguments):\n"
        "    try: return main(list(arguments))\n"
        "    except SystemExit as ended: return ended.code\n"
        "codes = [code('--help'), code('verify', made), code('repair', made, '--json'), code('demo', '--help')]\n"
        "print(*codes, file=sys.stderr)\n"
        "print(code('list', made), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    codes, told, code = done.stderr.splitlines()
    assert (codes, code) == ("0 0 0 0", "2")
    assert told == (
        "`session-actor list` needs click and rich, which come with the extra `cli`: pip install 'session-actor[cli]'"
    )


def test_an_error_that_nobody_expects_is_not_hidden(made, monkeypatch):
    monkeypatch.setattr("session_actor.cli.listing.opened", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        main(["list", str(made)])


def test_the_demo_has_json(run):
    ran = run("demo", "--kills", "0", "--seed", "3", "--json")
    assert ran.code == 0
    (line,) = ran.objects
    assert (line["passed"], line["kills"], line["lost"], line["differing"]) == (True, 0, 0, 0)
    assert "recovered" in ran.err


# --- completion -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_their_scripts(run, shell):
    ran = run("completion", shell)
    assert ran.code == 0
    assert f"_SESSION_ACTOR_COMPLETE={shell}_complete" in ran.out
    assert run("completion", "tcsh").code == 2


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("session-actor sh", {"show"}),
        ("session-actor show DIR us", {"user-42"}),
        ("session-actor show DIR user-42 --fr", {"--frame"}),
        ("session-actor verify --j", {"--json"}),
        ("session-actor export --form ", {"ndjson", "markdown"}),
        ("session-actor show /nowhere us", set()),
    ],
)
def test_commands_options_and_ids_are_completed(made, monkeypatch, capfd, typed, expected):
    words = typed.replace("DIR", str(made)).split(" ")
    monkeypatch.setenv("_SESSION_ACTOR_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    assert main() == 0
    assert {line.partition(",")[2] for line in capfd.readouterr().out.splitlines()} >= expected


def test_no_id_is_completed_of_which_a_shell_would_make_more_than_a_word(tmp_path, monkeypatch, capfd):
    words = ["user-42", "mira@example.org", "a/b:c", "höhe"]
    odd = ["x$(reboot)", "x;reboot", "x`reboot`", "x&", "x|y", "x>y", "x*", "x{a,b}", "!x", "~x", "#x", "x y", "(x)"]

    async def fill() -> None:
        async with SessionService.open(tmp_path / "store") as service:
            for name in (*words, *odd):
                await service.session(name, create=True)

    asyncio.run(fill())
    monkeypatch.setenv("_SESSION_ACTOR_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"session-actor show {tmp_path / 'store'} ")
    monkeypatch.setenv("COMP_CWORD", "3")
    assert main() == 0
    assert sorted(line.partition(",")[2] for line in capfd.readouterr().out.splitlines()) == sorted(words)


# --- doctor -----------------------------------------------------------------------------------------------------------


def verdicts(run, *arguments) -> dict[str, tuple[str, str, str]]:
    *found, summary = run("doctor", *arguments, "--json").objects
    assert summary["ok"] + summary["notes"] + summary["problems"] == len(found)
    return {each["check"]: (each["verdict"], each["what"], each["advice"]) for each in found}


def test_a_sound_machine_and_store_have_no_problem(run, made):
    ran = run("doctor", made)
    assert ran.code == 0
    found = verdicts(run, made)
    assert {name for name, (verdict, *_) in found.items() if verdict == "problem"} == set()
    assert found["sessions"][1].startswith("3 sessions")
    assert found["lock"][1].startswith("free")


async def test_a_store_in_use_is_no_problem_and_is_not_locked_for_the_check(run, folder):
    async with SessionService.open(folder) as service:
        assert f"held by process {os.getpid()}" in verdicts(run, folder)["lock"][1]
        await (await service.session("user-42")).add_user("goes on", durability="synced")
    assert verdicts(run, folder)["lock"][1].startswith("free")


class Disk(NamedTuple):
    """As `shutil.disk_usage` tells it."""

    total: int
    used: int
    free: int


HERE = store_checks.file_system_of("/tmp")


@pytest.mark.parametrize(
    ("change", "check", "verdict"),
    [
        (lambda patch, _: patch.setattr(checks, "PYTHON", (9, 9)), "python", "problem"),
        (lambda patch, _: patch.setattr(checks, "CORE", ("no-such-package",)), "packages", "problem"),
        (lambda patch, _: patch.setattr(checks, "EXTRAS", {"x": (("no-such-package",), "it")}), "extra x", "note"),
        (lambda patch, _: patch.setattr("time.time", lambda: 1000.0), "clock", "problem"),
        (lambda patch, _: patch.setattr("resource.getrlimit", lambda _: (256, 4096)), "open files", "note"),
        (lambda patch, _: patch.setattr("shutil.disk_usage", lambda _: Disk(9, 9, 9)), "space", "problem"),
        (lambda patch, _: patch.setattr("shutil.disk_usage", lambda _: Disk(9, 9, 5 * 10**8)), "space", "note"),
        (lambda patch, _: patch.setattr("shutil.disk_usage", lambda _: Disk(9, 9, 9)), "temporary folder", "problem"),
        (lambda patch, _: patch.setattr("session_actor.persistence.lock._NETWORK", {HERE}), "file system", "problem"),
        (lambda patch, _: patch.setattr(store_checks, "file_system_of", lambda _: "tmpfs"), "file system", "note"),
        (lambda patch, _: patch.setattr("os.access", lambda _, mode: mode != os.W_OK), "access", "problem"),
        (lambda _, folder: (folder / "journals").chmod(0o755), "permissions", "problem"),
        (lambda _, folder: (folder / "FORMAT").unlink(), "format", "problem"),
        (lambda _, folder: (folder / "FORMAT").write_bytes(b"x"), "format", "problem"),
        (lambda patch, _: patch.setattr("session_actor.persistence.layout.VERSION", 0), "format", "problem"),
        (lambda patch, _: patch.setattr(store_checks, "_is_locked", lambda _: None), "lock", "note"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found_and_says_what_to_do(run, folder, monkeypatch, change, check, verdict):
    change(monkeypatch, folder)
    found = verdicts(run, folder)[check]
    assert found[0] == verdict
    assert found[2]
    ran = run("doctor", folder)
    assert "to do: " in ran.out
    assert (ran.code == 0) == (verdict == "note")


@pytest.mark.parametrize(("closed", "id_", "code"), [("stdout", "user-42", 0), ("stderr", "nobody", 2)])
def test_a_closed_stream_is_no_error(run, made, monkeypatch, closed, id_, code):
    monkeypatch.setattr(sys, closed, None)  # as Python has it when the shell closed it
    ran = run("show", made, id_)
    getattr(sys, closed).close()
    assert (ran.code, ran.out, ran.err) == (code, "", "")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no device that is always full")
@pytest.mark.parametrize("arguments", [["--version"], ["schema", "list"]], ids=" ".join)
def test_a_full_disk_under_the_output_gets_one_line(arguments):
    with open("/dev/full", "w") as full:  # noqa: PTH123
        command = [sys.executable, "-m", "session_actor", *arguments]
        ran = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (ran.returncode, len(ran.stderr.splitlines())) == (2, 1)
