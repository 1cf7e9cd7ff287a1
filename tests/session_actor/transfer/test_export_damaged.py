"""Exports of what is damaged, and imports of exports that are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from session_actor import InvalidArgument, MemoryStore, SessionNotFound, SessionService, TranscriptUnreadable
from session_actor.replay import read_store
from session_actor.transfer.exporting import export_session
from session_actor.transfer.importing import import_transcript
from session_actor.transfer.notes import NotWhole

from .transferring import ALL, everything, frames_of, imported, line_bytes, memory


async def test_a_damaged_journal_is_exported_up_to_the_damage(tmp_path: Path):
    folder, out = tmp_path / "conversations", tmp_path / "out.ndjson"
    async with SessionService.open(folder) as service:
        session = await service.session("s", create=True)
        for number in range(30):
            await session.push(f"q{number}")
    (journal,) = (folder / "journals").rglob("*.ndjson")
    data = journal.read_bytes()
    journal.write_bytes(data.replace(b'"q20"', b'"q2X"'))
    with read_store(folder) as reader:
        report = await export_session(reader, "s", out)
    async with memory() as service:
        _, state = await imported(service, out)

    assert report.damage is not None
    assert [frame.user_input for frame in frames_of(state)] == [f"q{number}" for number in range(20)]


async def test_lines_that_cannot_be_read_are_named_and_the_rest_is_there(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    async with memory() as service:
        session = await service.session("s", create=True)
        for number in range(4):
            await session.push(f"q{number}")
        await session.checkpoint("here", 2)
        await export_session(service, "s", path)
    lines = path.read_bytes().splitlines(keepends=True)
    call = {"type": "tool_call", "id": "", "name": "x"}
    misplaced = {"id": 2, "parent": 1, "turns": [{"role": "user", "blocks": [call]}]}
    lines[2] = line_bytes({"at_us": 1, "frame": misplaced}) + b"\n"
    unbound = {"type": "tool_result", "call_id": "c"}
    bad = [
        {"at_us": 1, "frame": {"id": 3, "parent": 1}},
        {"at_us": 10**18, "frame": {"id": 9}},
        {"at_us": 1, "frame": {"id": 9, "parent": 9}},
        {"novel": 1},
        {"at_us": 1, "frame": {"id": 9, "turns": [{"role": "tool", "blocks": [unbound]}]}},
        {"at_us": 1, "frame": {"id": 9, "turns": [], "instructions": {"tools": [{"name": "a"}, {"name": "a"}]}}},
        {"at_us": 1, "frame": {"id": 2**40}},
        {"at_us": 1, "frame": {"id": 9, "artifacts": [{"path": "a", "how": "read"}]}},
        {"at_us": 1, "frame": {"id": 9, "retracted": {"assumption": "a", "note": "b"}}},
    ]
    path.write_bytes(b"".join(lines[:4]) + b"".join(line_bytes(line) + b"\n" for line in bad) + b"".join(lines[4:]))
    async with memory() as service:
        report, state = await imported(service, path)

    assert report.added == 3
    assert [why for _, why in report.unread] == [
        "turns[0].blocks[0] is a ToolCall: only assistant turns hold those",
        "a frame whose id is not above that of the frame before it",
        "a time that no record can have",
        "a frame whose id or parent cannot be",
        "an unknown kind of line",
        "a result that names no call",
        "instructions.tools has two tools of one name",
        "a frame whose id is too far above that of the frame before it",
        "a frame of texts that notes what a text cannot",
        "a frame of texts that notes what a text cannot",
    ]
    assert report.unread[0][0] == len(lines[0]) + len(lines[1])
    assert report.not_whole == [NotWhole(sum(map(len, lines[:3])), "frames", 1)]
    assert (state.branches, state.checkpoints) == ({"main": 4}, {})
    assert [state.table.at(frame_id).parent for frame_id in (1, 3, 4)] == [None, None, 3]


async def test_an_export_that_breaks_off_ends_in_main(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    async with memory() as service:
        await everything(service)
        await export_session(service, "user-42", path)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:5]))
    async with memory() as service:
        report, state = await imported(service, path)

    assert (report.unread, report.not_whole) == ([], [NotWhole(path.stat().st_size, "tail")])
    assert state.branches == {"main": 4}


async def test_a_newer_version_is_refused(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    path.write_text(json.dumps({"form": "session-actor", "version": 2, "session": "s"}) + "\n")
    async with memory() as service:
        with pytest.raises(TranscriptUnreadable, match="version 2, this one reads up to 1"):
            await import_transcript(service, path)
        assert [info async for info in service.sessions()] == []


async def test_what_cannot_be_exported_leaves_the_file_as_it_was(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    path.write_text("before")
    async with SessionService.open(MemoryStore()) as service:
        with pytest.raises(SessionNotFound):
            await export_session(service, "nobody", path)
        await service.session("s", create=True)
        with pytest.raises(InvalidArgument, match="ndjson, markdown"):
            await export_session(service, "s", path, "html")
        with pytest.raises(OSError, match="missing"):
            await export_session(service, "s", tmp_path / "missing" / "out")

    assert [file.read_text() for file in tmp_path.iterdir()] == ["before"]


async def test_a_file_of_another_form_is_not_taken_for_an_export():
    async with memory() as service:
        with pytest.raises(TranscriptUnreadable, match="no line of it is one of our own export"):
            await import_transcript(service, ALL[0], form="ndjson")
        assert [info async for info in service.sessions()] == []
