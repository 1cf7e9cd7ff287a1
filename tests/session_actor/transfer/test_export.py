"""Our own export, and back."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from session_actor import InvalidArgument, MemoryStore, SessionNotFound, SessionService, TranscriptUnreadable, snapshots
from session_actor.blocks import Image, Native, Text, Thinking, ToolCall
from session_actor.errors import Refused
from session_actor.frames import Tool, Turn, Usage
from session_actor.replay import read_store
from session_actor.state import State
from session_actor.transfer.exporting import export_session
from session_actor.transfer.importing import import_transcript

from ..compaction.compacted import MODELS, converse
from .transferring import ALL, frames_of, imported, line_bytes, memory, picture, state_of


async def everything(service: SessionService, name: str = "user-42"):
    """A session with every kind of thing in it."""
    session = await service.session(name, create=True, metadata={"lang": "de", "half": "\ud83c", "$b64": b"\x00"})
    await session.configure(
        system="Be brief. \ud83c",
        tools=[Tool("ls", "List.", {"type": "object"}), Native("gemini", None, {"google_search": {}})],
        model="m",
    )
    await session.push("hi", "there", assumptions=["the disk is \ud83c large"], decisions=["go"], pinned=True)
    await session.add_user(["look", Image(data=b"\x00\xff", media_type="image/png")])
    await session.add_assistant(
        [Thinking("hm", "sig"), Native("anthropic", "m", {"type": "x", "n": float("inf"), "s": "\udc00"}), "two"],
        tool_calls=[ToolCall("c", "ls", '{"a":1'), ToolCall("d", "ls")],
        usage=Usage(9, 3, raw={"input": 9}),
        stop_reason="tool_use",
        dialect="anthropic",
    )
    await session.add_tool_result("d", ["done", Native("anthropic", None, {"type": "y"})], is_error=True)
    await session.checkpoint("here")
    await session.fork(2, branch="idea", turns=[Turn("user", (Text("same"),)), Turn("user", (Text("same"),))])
    await session.pop(1)
    await session.add_reference("a page", source="https://example.org")
    await session.note_artifact("a.py", "modified")
    await session.push("popped")
    await session.pop(1)
    await session.goto("main")
    await session.hold_call("c", "approval")
    await session.retract("the disk is \ud83c large", "it is full")
    await session.pin(3)
    await session.rename_checkpoint("here", "there \ud83c")
    await session.goto("idea")
    return session


async def test_an_imported_export_is_an_equal_session(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    async with memory() as service:
        session = await everything(service)
        report = await export_session(service, "user-42", path)
        whole = picture(await state_of(service, "user-42"))
        usage = await session.usage()
    async with memory() as service:
        found, state = await imported(service, path)
        assert (found.form, found.added, found.unread, found.sessions) == (
            "ndjson",
            len(whole["frames"]),
            [],
            ["user-42"],
        )
        assert picture(state) == whole
        assert await (await service.session("user-42")).usage() == usage
        second = tmp_path / "again.ndjson"
        await export_session(service, "user-42", second)

    assert report.size_bytes == path.stat().st_size
    lines, again = path.read_bytes().splitlines()[1:], second.read_bytes().splitlines()[1:]
    assert again == lines
    assert list(tmp_path.iterdir()) == [path, second] or len(list(tmp_path.iterdir())) == 2


async def test_an_equal_session_is_so_after_a_restart_too_and_goes_on(tmp_path: Path):
    path, folder = tmp_path / "out.ndjson", tmp_path / "conversations"
    async with memory() as service:
        await everything(service)
        await export_session(service, "user-42", path)
        whole = picture(await state_of(service, "user-42"))
    async with SessionService.open(folder) as service:
        await import_transcript(service, path, session_id="other")
    async with SessionService.open(folder) as service:
        assert picture(await state_of(service, "other")) == whole
        session = await service.session("other")
        frame = await session.push("on")
        assert (frame.id, frame.parent) == (whole["head"][2], whole["head"][0])


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
async def test_what_was_imported_comes_out_and_in_again(path: Path, tmp_path: Path):
    out = tmp_path / "out.ndjson"
    async with memory() as service:
        report, state = await imported(service, path)
        whole = picture(state)
        await export_session(service, report.sessions[0], out)
        _, state = await imported(service, out, session_id="copy")

    assert picture(state) == whole


async def test_a_compaction_goes_along(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    async with SessionService.open(MemoryStore(), models=MODELS) as service:
        session = await service.session("s", create=True)
        await converse(session)
        plan = await session.prepare_compaction()
        await session.commit_compaction(plan, plan.extractive())
        await export_session(service, "s", path)
        whole = picture(await state_of(service, "s"))
        request = await session.build_request("anthropic")
    async with SessionService.open(MemoryStore(), models=MODELS) as service:
        _, state = await imported(service, path)
        other = await (await service.session("s")).build_request("anthropic")

    assert len(whole["overlays"]) == 1
    assert picture(state) == whole
    assert dict(other) == dict(request)


async def test_an_ended_session_has_ended_again(tmp_path: Path):
    path = tmp_path / "out.ndjson"
    async with memory() as service:
        await everything(service)
        await service.end("user-42", "done")
        await export_session(service, "user-42", path)
    async with memory() as service:
        await import_transcript(service, path)
        again, state = await imported(service, path)

    assert (state.ended, again.added) == ("done", 0)


async def test_old_frames_are_read_from_the_disk_and_not_kept(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(snapshots, "RESTING_RECORDS", 1)
    folder, path = tmp_path / "conversations", tmp_path / "out.ndjson"
    async with SessionService.open(folder) as service:
        session = await service.session("s", create=True)
        await session.configure(system="x", model="m")
        for number in range(1_200):
            await session.push(f"q{number}")
        whole = picture(await state_of(service, "s"))
    async with SessionService.open(folder) as service:
        state = await state_of(service, "s")
        await export_session(service, "s", path)
        assert sum(state.table.slot(frame_id) is not None for frame_id in range(1, 1_202)) < 100
        for form in ("markdown",):
            await export_session(service, "s", tmp_path / "out.md", form)
        assert sum(state.table.slot(frame_id) is not None for frame_id in range(1, 1_202)) < 100
    async with memory() as service:
        _, state = await imported(service, path)
    assert picture(state) == whole


async def test_an_export_is_of_one_moment(tmp_path: Path):
    class Slow(io.BytesIO):
        """It is pushed to while it is written."""

    out = Slow()
    async with memory() as service:
        session = await service.session("s", create=True)
        for number in range(600):
            await session.push(f"q{number}")
        task = asyncio.create_task(export_session(service, "s", out))
        while not task.done():
            await session.push("meanwhile")
            await asyncio.sleep(0)
        path = tmp_path / "out.ndjson"
        path.write_bytes(out.getvalue())
        whole = frames_of(await state_of(service, "s"))
        _, state = await imported(service, path, session_id="copy")

    count = state.next_id - 1
    assert 600 <= count < len(whole)
    assert frames_of(state) == whole[:count]
    assert state.branches == {"main": count}


async def test_whatever_knows_the_state_can_be_exported(tmp_path: Path):
    class Reader:
        """Reads a store that another process holds."""

        def __init__(self, state: State) -> None:
            self.state = state

        async def state_of(self, session_id: str) -> State:
            assert session_id == "user-42"
            return self.state

    one, other = io.BytesIO(), io.BytesIO()
    async with memory() as service:
        await everything(service)
        await export_session(Reader(await state_of(service, "user-42")), "user-42", one)
        await export_session(service, "user-42", other)

    assert one.getvalue() == other.getvalue() != b""


@pytest.mark.parametrize("form", ["ndjson", "markdown"])
async def test_a_store_in_use_is_exported_without_its_lock(tmp_path: Path, form: str):
    folder, one, other = tmp_path / "conversations", io.BytesIO(), io.BytesIO()
    async with SessionService.open(folder) as service:
        session = await everything(service)
        await session.flush("written")
        await export_session(service, "user-42", one, form)
        with read_store(folder) as reader:
            await export_session(reader, "user-42", other, form)
            with pytest.raises(SessionNotFound):
                await export_session(reader, "nobody", other, form)

    assert one.getvalue() == other.getvalue() != b""


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
    ]
    assert report.unread[0][0] == len(lines[0]) + len(lines[1])
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

    assert report.unread == [(path.stat().st_size, "the last line is missing, and with it the names of branches")]
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


steps = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.text(max_size=3), st.text(max_size=3)),
        st.tuples(st.just("user"), st.text(alphabet="a\ud83c", max_size=3)),
        st.tuples(st.just("pop"), st.integers(1, 3)),
        st.tuples(st.just("goto"), st.integers(1, 9)),
        st.tuples(st.just("fork"), st.integers(1, 9)),
        st.tuples(st.just("checkpoint"), st.sampled_from("abc")),
        st.tuples(st.just("configure"), st.text(max_size=2)),
        st.tuples(st.just("pin"), st.integers(1, 9)),
        st.just(("export",)),
    ),
    max_size=14,
)


async def take(session, step) -> None:
    """One of the changes, if the session takes it."""
    what, *given = step
    with suppress(Refused):
        match what:
            case "push":
                await session.push(*given)
            case "user":
                await session.add_user(*given)
            case "configure":
                await session.configure(system=given[0])
            case "fork":
                await session.fork(given[0], user_input="way")
            case _:
                await getattr(session, what)(*given)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps)
def test_any_session_comes_back_equal(tmp_path: Path, steps):
    async def there_and_back() -> None:
        out = tmp_path / "out.ndjson"
        async with memory() as service, memory() as other:
            session = await service.session("s", create=True)
            for step in (*steps, ("export",)):
                if step[0] != "export":
                    await take(session, step)
                    continue
                await export_session(service, "s", out)
                whole = picture(await state_of(service, "s"))
                report, state = await imported(other, out)
                same = picture(state)
                assert report.unread == []
                assert same["frames"] == whole["frames"]
                again, state = await imported(other, out)
                assert (again.added, picture(state)) == (0, same)
            _, state = await imported(other, out, session_id="fresh")
            assert picture(state) == whole

    asyncio.run(there_and_back())


async def test_exports_one_after_the_other_are_as_many_sessions(tmp_path: Path):
    path = tmp_path / "all.ndjson"
    async with memory() as service:
        for name in ("a", "b", "empty"):
            session = await service.session(name, create=True)
            if name != "empty":
                await session.push(name, "yes")
        with path.open("wb") as file:
            for name in ("a", "b", "empty"):
                await export_session(service, name, file)
    async with memory() as service:
        report = await import_transcript(service, path)
        again = await import_transcript(service, path)
        said = [(await state_of(service, name)).table.get(1) for name in report.sessions]

    assert (report.sessions, report.added, report.unread) == (["a", "b", "empty"], 2, [])
    assert [frame and frame.user_input for frame in said] == ["a", "b", None]
    assert (again.added, again.skipped) == (0, 2)


async def test_a_file_of_another_form_is_not_taken_for_an_export():
    async with memory() as service:
        with pytest.raises(TranscriptUnreadable, match="no line of it is one of our own export"):
            await import_transcript(service, ALL[0], form="ndjson")
        assert [info async for info in service.sessions()] == []
