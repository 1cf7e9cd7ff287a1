"""Importing again: the same file, a file that grew, after a crash, and into a session that went on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from session_actor import HeadMoved, MemoryStore, SessionBusy, SessionDiverged, SessionService
from session_actor.errors import Refused
from session_actor.events import CopiedFrame, HistorySealed, Pushed
from session_actor.frames import Turn
from session_actor.transfer import growing, restoring
from session_actor.transfer.errors import SessionChanged
from session_actor.transfer.exporting import export_session
from session_actor.transfer.importing import import_transcript
from session_actor.transfer.taking import TakeIn

from .transferring import ALL, PI, SAMPLES, frames_of, imported, lines_in, memory, picture, said, state_of, written

TREES = [PI, *(SAMPLES / f"{name}.jsonl" for name in ("claude_code", "claude_code_2_1", "pi_tree"))]


@pytest.fixture
def small_parts(monkeypatch):
    """Records of few frames."""
    for module in (growing, restoring):
        monkeypatch.setattr(module, "CHUNK_FRAMES", 3)


def timeless(state) -> dict:
    """A picture without the times of what has none in its file."""
    whole = picture(state)
    for frame in whole["frames"]:
        del frame["at_us"]
    return whole


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
async def test_the_same_file_again_adds_nothing_and_leaves_all_as_it_is(path: Path):
    async with memory() as service:
        first, state = await imported(service, path)
        before, seq = picture(state), state.seq
        again, state = await imported(service, path)

        assert (again.added, again.skipped) == (0, first.added + first.skipped)
        assert (again.unread, again.sessions) == (first.unread, first.sessions)
        assert (picture(state), state.seq) == (before, seq)


@pytest.mark.parametrize("path", TREES, ids=lambda path: path.name)
async def test_a_file_that_grew_line_by_line_becomes_what_it_is_at_once(path: Path, tmp_path: Path):
    lines = lines_in(path)
    async with memory() as service:
        _, state = await imported(service, path, session_id="whole")
        whole = timeless(state)
        added = 0
        for end in range(1, len(lines) + 1, 3 if len(lines) < 60 else 29):
            part = tmp_path / "part.jsonl"
            part.write_bytes(b"".join(lines[:end]))
            added += (await import_transcript(service, part, form="pi" if b"modelId" in lines[0] or b"version" in
                      lines[0] else "claude-code", session_id="grown")).added  # fmt: skip
        added += (await import_transcript(service, path, session_id="grown")).added
        again = await import_transcript(service, path, session_id="grown")
        state = await state_of(service, "grown")

    assert again.added == 0
    assert said(state.table.path(state.head)) == said_on(whole)
    assert len(state.branches) == len(whole["branches"])
    assert sorted(state.checkpoints) == sorted(whole["checkpoints"])


def said_on(whole: dict) -> list[tuple[str, str]]:
    """Who said what on the way down from the head of a picture."""
    frames = {frame["id"]: frame for frame in whole["frames"]}
    at, found = whole["head"][0], []
    while at is not None:
        frame = frames[at]
        found += [(turn.role, turn.text) for turn in frame["given_turns"] or ()]
        at = frame["parent"]
    return found


@pytest.mark.parametrize("parts", range(6))
async def test_an_import_that_was_cut_short_shows_nothing_and_is_finished(small_parts, monkeypatch, parts: int):
    class Killed(Exception):
        """The process is gone."""

    sent = 0
    send = growing.send

    async def dying(session, message):
        nonlocal sent
        if sent == parts:
            raise Killed
        sent += 1
        await send(session, message)

    path = SAMPLES / "claude_code.jsonl"
    async with memory() as service:
        _, state = await imported(service, path, session_id="whole")
        whole = picture(state)
        monkeypatch.setattr(growing, "send", dying)
        with pytest.raises(Killed):
            await import_transcript(service, path, session_id="cut")
        state = await state_of(service, "cut")
        assert (state.head, state.branches) == (None, {"main": None})
        assert len(frames_of(state)) == 3 * parts
        monkeypatch.setattr(growing, "send", send)
        report, state = await imported(service, path, session_id="cut")

    assert report.added == len(whole["frames"]) - 3 * parts
    assert picture(state) == whole


async def test_an_import_into_a_directory_is_there_after_a_restart(tmp_path: Path, small_parts):
    folder = tmp_path / "conversations"
    async with SessionService.open(folder) as service:
        _, state = await imported(service, SAMPLES / "claude_code.jsonl", session_id="one")
        before = picture(state)
    async with SessionService.open(folder) as service:
        assert picture(await state_of(service, "one")) == before
        report, state = await imported(service, SAMPLES / "claude_code.jsonl", session_id="one")
        assert (report.added, picture(state)) == (0, before)


async def test_a_session_that_went_on_keeps_its_head_and_what_is_new_is_a_branch(tmp_path: Path):
    lines = lines_in(PI)
    part = tmp_path / "part.jsonl"
    part.write_bytes(b"".join(lines[:20]))
    async with memory() as service:
        await import_transcript(service, part, session_id="s")
        session = await service.session("s")
        frame = await session.add_user("I go on here.")
        report, state = await imported(service, PI, session_id="s")
        again = await import_transcript(service, PI, session_id="s")

    assert state.head == state.branches["main"] == frame.id
    (other,) = set(state.branches) - {"main"}
    assert state.branches[other] == state.next_id - 1
    assert len(state.table.path(state.branches[other])) == 114
    assert (report.added > 0, again.added) == (True, 0)


async def test_an_edited_line_is_a_branch_of_its_own(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    turns = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    written(path, *turns)
    async with memory() as service:
        await import_transcript(service, path)
        written(path, turns[0], {"role": "assistant", "content": "B"}, turns[2])
        report, state = await imported(service, path)

    assert report.added == 2
    assert state.branches == {"main": 3, "b5": 5}


async def test_what_waits_in_the_session_is_not_added_over(small_parts):
    async with memory() as service:
        session = await service.session("s", create=True)
        async with session.exchange():
            with pytest.raises(SessionBusy):
                await import_transcript(service, PI, session_id="s")
            assert (await state_of(service, "s")).next_id == 1
        report, state = await imported(service, PI, session_id="s")
        async with session.exchange():
            pass

    assert (report.added, len(frames_of(state))) == (114, 114)


async def test_a_part_that_does_not_fit_any_more_is_refused_and_changes_nothing():
    frames = (CopiedFrame(5, Pushed(1, None, turns=(Turn("user"),))),)
    sealed = HistorySealed((("main", 1),), (), 1, "main", 2)
    async with memory() as service:
        session = await service.session("s", create=True)
        state = await state_of(service, "s")
        for message in (
            TakeIn(2, frames),
            TakeIn(1, frames, sealed, seq=7),
            TakeIn(1, (CopiedFrame(5, Pushed(1, 9)),)),
        ):
            with pytest.raises(SessionChanged) as caught:
                await session.send(message)
            assert isinstance(caught.value, Refused)
            assert not isinstance(caught.value, HeadMoved)
        assert state.seq == 1
        await session.send(TakeIn(1, frames, sealed, seq=1))
        assert (await session.stack())[0].at_us == 5


async def test_an_export_that_grew_adds_what_is_new_with_its_ids_and_names(tmp_path: Path, small_parts):
    early, late = tmp_path / "early.ndjson", tmp_path / "late.ndjson"
    async with memory() as service:
        session = await service.session("s", create=True)
        for number in range(9):
            await session.push(f"q{number}", f"a{number}")
        await export_session(service, "s", early)
        await session.checkpoint("here")
        await session.fork(4, branch="idea", user_input="another way")
        await session.push("more")
        await export_session(service, "s", late)
        whole = picture(await state_of(service, "s"))
    async with memory() as service:
        await import_transcript(service, early)
        (await service.session("s")).cast(TakeIn(1, ()))  # refused, and nothing comes of it
        report, state = await imported(service, late)
        again, state = await imported(service, late)

    assert (report.added, report.skipped, again.added) == (2, 9, 0)
    assert picture(state) == whole


async def test_an_export_is_not_mixed_with_a_session_that_went_another_way(tmp_path: Path):
    path = tmp_path / "s.ndjson"
    async with memory() as service:
        session = await service.session("s", create=True)
        await session.push("a")
        await export_session(service, "s", path)
        await session.push("b")
        later = tmp_path / "later.ndjson"
        await export_session(service, "s", later)
    async with memory() as service:
        await import_transcript(service, path)
        session = await service.session("s")
        await session.push("other")
        before = picture(await state_of(service, "s"))
        with pytest.raises(SessionDiverged, match=r"frame 2 .* another session_id"):
            await import_transcript(service, later)
        assert picture(await state_of(service, "s")) == before
        assert (await import_transcript(service, path)).added == 0


async def test_keys_of_the_import_are_not_needed_after_a_thousand_changes(tmp_path: Path):
    path = tmp_path / "talk.jsonl"
    path.write_text("".join(json.dumps({"role": "user", "content": f"line {n}"}) + "\n" for n in range(1500)))
    async with SessionService.open(MemoryStore()) as service:
        first = await import_transcript(service, path, session_id="s")
        session = await service.session("s")
        for number in range(1100):
            await session.push(f"{number}", key=f"k{number}")
        again = await import_transcript(service, path, session_id="s")

    assert (first.added, again.added, again.skipped) == (1500, 0, 1500)


async def test_a_request_from_before_an_import_stays_what_it_was(tmp_path: Path):
    lines = lines_in(SAMPLES / "claude_code.jsonl")
    part = tmp_path / "part.jsonl"
    end = next(number for number, line in enumerate(lines) if b"compact_boundary" in line)
    part.write_bytes(b"".join(lines[:end]))
    async with memory() as service:
        await import_transcript(service, part, session_id="s")
        session = await service.session("s")
        before = await session.build_request("anthropic", model="claude-sonnet-4-5", key="k")
        report, state = await imported(service, SAMPLES / "claude_code.jsonl", session_id="s")
        again = await session.build_request("anthropic", model="claude-sonnet-4-5", key="k")
        after = await session.build_request("anthropic", model="claude-sonnet-4-5")

    assert report.added > 0
    assert len(state.overlays) == 1
    assert dict(again) == dict(before)
    assert dict(after) != dict(before)


async def test_a_list_that_grew_adds_what_is_new(tmp_path: Path):
    path = tmp_path / "talk.json"
    messages = json.loads((SAMPLES / "openai_chat.json").read_text())
    path.write_text(json.dumps(messages[:6], indent=2))
    async with memory() as service:
        first = await import_transcript(service, path)
        path.write_text(json.dumps(messages))
        report, state = await imported(service, path)

    assert (first.added, report.added, report.skipped) == (6, 9, 6)
    assert state.branches == {"main": 15}
