"""`export` and `import`."""

from __future__ import annotations

import asyncio
import io
import json
import os
import stat
import sys

import pytest

from session_actor import SessionService
from session_actor.__main__ import main
from session_actor.cli.exporting import ForTerminal

from .conftest import ODD


def test_what_was_exported_is_imported_as_an_equal_session(run, made, tmp_path):
    file = tmp_path / "user-42.ndjson"
    (line,) = run("export", made, "user-42", "-o", file, "--json").objects
    assert (line["sessions"], line["size_bytes"], line["damage"]) == (["user-42"], file.stat().st_size, [])
    assert run("export", made, "user-42").out == file.read_text()
    (line,) = run("import", tmp_path / "other", file, "--create", "--json").objects
    assert (line["form"], line["sessions"], line["added"], line["skipped"]) == ("ndjson", ["user-42"], 9, 0)
    assert run("export", tmp_path / "other", "user-42").lines[1:] == run("export", made, "user-42").lines[1:]
    (line,) = run("import", tmp_path / "other", file, "--json").objects
    assert (line["added"], line["skipped"]) == (0, 9)
    assert "9 there already" in run("import", tmp_path / "other", file).out


def test_all_sessions_go_into_one_file_and_come_back(run, made, tmp_path):
    file = tmp_path / "all.ndjson"
    ran = run("export", made, "--all", "-o", file)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.startswith("3 sessions, ")
    assert run("import", tmp_path / "other", file, "--create").code == 0
    ids = [line["id"] for line in run("list", tmp_path / "other", "--json").objects]
    assert ids == sorted([ODD, "chat/7", "user-42"])


def test_an_import_can_be_given_another_id(run, made, tmp_path):
    run("export", made, "user-42", "-o", tmp_path / "x")
    (line,) = run("import", tmp_path / "o", tmp_path / "x", "--session", '"-\\u001b"', "--create", "--json").objects
    assert line["sessions"] == ["-\x1b"]


def test_markdown_is_for_people(run, made):
    assert run("export", made, "user-42", "--form", "markdown").out.startswith("# Conversation `user-42`\n")


def test_lines_that_cannot_be_read_are_told_and_answered_with_one(run, made, tmp_path):
    file = tmp_path / "user-42.ndjson"
    lines = run("export", made, "user-42").out.splitlines(keepends=True)
    file.write_text("".join([*lines[:3], "{broken\n", *lines[3:]]))
    ran = run("import", tmp_path / "other", file, "--create")
    assert ran.code == 1
    assert f"byte {len(''.join(lines[:3]).encode())}: " in ran.err
    assert "9 frames added" in ran.out


def test_an_export_that_is_not_whole_is_told_and_answered_with_one(run, made, tmp_path):
    file = tmp_path / "user-42.ndjson"
    lines = run("export", made, "user-42").out.splitlines(keepends=True)
    file.write_text("".join([*lines[:3], *lines[4:]]))
    offset = len("".join(lines[:3]).encode())
    ran = run("import", tmp_path / "other", file, "--create")
    assert ran.code == 1
    assert f"byte {offset}: 1 frame is missing before this line" in ran.err
    ran = run("import", tmp_path / "again", file, "--create", "--json")
    (line,) = ran.objects
    assert (ran.code, line["unread_count"], line["not_whole_count"]) == (1, 0, 1)
    assert line["not_whole"][0]["lack"] == "frames"


def test_of_very_many_lines_that_cannot_be_read_the_first_are_named_and_all_are_counted(run, tmp_path):
    file = tmp_path / "chat.jsonl"
    user = '{"role": "user", "name": "mira", "content": "hi"}'
    file.write_text("\n".join([user, *["{"] * 1_200]))
    ran = run("import", tmp_path / "other", file, "--create")
    assert (ran.code, ran.err.count("not JSON")) == (1, 1_000)
    assert "200 more like these" in ran.err
    assert "left out: name (1)" in ran.err


def test_an_import_makes_no_store_unless_it_is_told_to(run, made, tmp_path):
    run("export", made, "user-42", "-o", tmp_path / "x")
    ran = run("import", tmp_path / "typo", tmp_path / "x")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert "--create" in ran.err
    assert not (tmp_path / "typo").exists()


def test_a_file_of_no_form_is_told_in_one_line(run, folder, tmp_path):
    (tmp_path / "x").write_text("hello\n")
    ran = run("import", folder, tmp_path / "x")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert run("import", folder, tmp_path / "missing").code == 2


@pytest.mark.parametrize("options", [[], ["user-42", "--all"], ["user-42", "--json"]], ids=" ".join)
def test_exports_that_make_no_sense_are_told_in_one_line(run, made, options):
    ran = run("export", made, *options)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)


def test_a_file_keeps_what_it_was_when_an_export_fails(run, made, tmp_path):
    file = tmp_path / "x"
    file.write_text("before")
    assert run("export", made, "user-42", "nobody", "-o", file).code == 2
    assert file.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_lines_on_a_terminal_are_escaped_and_say_the_same(made, monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(["export", str(made), "user-42"]) == 0
    shown = terminal.getvalue()
    assert all(character.isprintable() or character == "\n" for character in shown)
    said = [json.loads(line) for line in shown.splitlines()]
    assert "secret question\n── frame 99 · user\x1b[31m\x9b2J\u202e" in texts_in(said)


def texts_in(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in inside for text in texts_in(each)]


def test_a_character_that_two_pieces_share_is_written_once():
    writer = ForTerminal(terminal := io.StringIO())
    for byte in "ä\x9b\x7f\n".encode():
        writer.write(bytes([byte]))
    assert terminal.getvalue() == "ä\\u009b\\u007f\n"


async def test_a_live_store_is_exported_and_takes_no_import(folder, tmp_path, capsys):
    async with SessionService.open(folder):
        file = tmp_path / "x.ndjson"
        assert await asyncio.to_thread(main, ["export", str(folder), "user-42", "-o", str(file)]) == 0
        assert await asyncio.to_thread(main, ["import", str(folder), str(file)]) == 5
        assert len(capsys.readouterr().err.splitlines()) == 2


def test_a_pipe_or_a_link_that_an_export_goes_to_stays_one(run, made, tmp_path):
    pipe, file, link = tmp_path / "pipe", tmp_path / "file", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(file)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run("export", made, "chat/7", "-o", pipe).code == 0
        sent = os.read(reading, 1_000_000)
    finally:
        os.close(reading)
    assert run("export", made, "chat/7", "-o", link).code == 0
    assert (pipe.is_fifo(), link.is_symlink(), file.read_bytes()) == (True, True, sent)


def test_a_file_that_an_export_replaces_stays_as_private_as_it_was(run, made, tmp_path):
    file = tmp_path / "file"
    file.touch()
    file.chmod(0o600)
    assert run("export", made, "chat/7", "-o", file).code == 0
    assert file.stat().st_size > 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("name", ["FORMAT", "catalog.db", "log/1.ndjson", "new", "link"])
def test_an_export_goes_nowhere_into_the_store(run, folder, tmp_path, name):
    place = folder / name
    if name == "link":
        place = tmp_path / "link"
        place.symlink_to(folder / "LOCK")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    ran = run("export", folder, "chat/7", "-o", place)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert "is inside the store" in ran.err
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("name", "why"), [("loop", "Too many levels of symbolic links"), ("none/file", "No such file")]
)
def test_a_place_that_no_export_can_be_written_to_is_named_in_one_line(run, made, tmp_path, name, why):
    (tmp_path / "loop").symlink_to("loop")
    before = sorted(tmp_path.rglob("*"))
    ran = run("export", made, "chat/7", "-o", tmp_path / name)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert why in ran.err
    assert f"{tmp_path / name}" in ran.err
    assert ".part" not in ran.err
    assert sorted(tmp_path.rglob("*")) == before
