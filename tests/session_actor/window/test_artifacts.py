"""Artifacts: what was read or modified is known on the path where it was noted."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from session_actor import Artifact, NoteArtifact, SessionService, ToolCall
from session_actor.commands import AddAssistant, Pop, Push
from session_actor.errors import InvalidArgument

from ..conftest import reopened
from ..live import Live, cold, picture, prune


class Broken:
    """A path object whose path is none."""

    def __init__(self, path: object) -> None:
        self.path = path

    def __fspath__(self) -> str:
        if isinstance(self.path, Exception):
            raise self.path
        return self.path


async def test_a_note_is_one_frame_without_turns_that_comes_back(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        frame = await session.note_artifact("src/a.py", "modified", key="k")

        assert frame.turns == ()
        assert frame.artifacts == (Artifact("src/a.py", "modified"),)
        assert await session.note_artifact("src/a.py", "modified", key="k") == frame
    async with reopened(folder) as session:
        assert await session.get(frame.id) == frame
        assert await session.artifacts() == {"src/a.py": "modified"}


async def test_a_path_object_is_kept_as_its_text(session):
    frame = await session.note_artifact(PurePosixPath("src") / "a.py", "modified", key="k")

    assert frame.artifacts == (Artifact("src/a.py", "modified"),)
    assert await session.note_artifact("src/a.py", "modified", key="k") == frame
    for path in (Broken(b"x"), Broken(ValueError("no")), PurePosixPath("x" * 4_097), PurePosixPath):
        with pytest.raises(InvalidArgument, match=r"^path "):
            await session.note_artifact(path)
    assert await session.artifacts() == {"src/a.py": "modified"}


async def test_what_was_modified_once_counts_as_modified_and_the_newest_comes_last(session):
    await session.note_artifact("a")
    await session.note_artifact("b", "modified")
    await session.note_artifact("c")
    await session.note_artifact("b")
    await session.note_artifact("a", "modified")

    assert list((await session.artifacts()).items()) == [("c", "read"), ("b", "modified"), ("a", "modified")]


async def test_only_what_was_noted_on_the_path_is_known(session):
    assert await session.artifacts() == {}
    base = await session.note_artifact("a")
    await session.note_artifact("b", "modified")
    idea = await session.branch_off("idea", base.id)
    await idea.note_artifact("c")

    assert await session.artifacts() == {"a": "read", "b": "modified"}
    assert await idea.artifacts() == {"a": "read", "c": "read"}
    await session.pop()
    assert await session.artifacts() == {"a": "read"}
    await session.goto("idea")
    assert await session.artifacts() == {"a": "read", "c": "read"}


async def test_a_copied_session_knows_them_too(service, session):
    await session.note_artifact("a", "modified")
    await session.add_user("hi")
    for at in (None, 2):
        other = await service.fork(session.id, f"copy-{at}", at=at)
        assert await other.artifacts() == {"a": "modified"}


async def test_they_are_known_after_a_recovery_from_a_snapshot(folder):
    async with SessionService.open(folder) as service:
        session = await service.session("user-42", create=True)
        for number in range(1_200):
            await session.add_user("hi") if number % 100 else await session.note_artifact(f"file-{number}")
        known = await session.artifacts()
    async with reopened(folder) as session:
        assert await session.artifacts() == known
        assert session.recovery.snapshot_seq
        assert len(known) == 12


def test_a_note_lets_calls_stay_open():
    live = Live()
    live.do(AddAssistant("", tool_calls=[ToolCall("a", "t")]))
    live.do(NoteArtifact("x"))

    assert [call.id for call in live.state.pending_calls()] == ["a"]


def test_notes_outlive_replay_snapshots_and_pruning():
    live = Live()
    for number in range(70):
        live.do(NoteArtifact(f"file-{number}", "modified" if number % 2 else "read"))
        live.do(Push("x"))
        live.do(Pop())
    live.save()
    prune(live)
    live.do(NoteArtifact("last"))

    assert picture(live.replayed()) == picture(live.state)
    state, _ = cold(live)
    assert [frame.artifacts for frame in state.table.path(state.head)] == [
        frame.artifacts for frame in live.state.table.path(live.state.head)
    ]


@pytest.mark.parametrize(
    ("what", "command"),
    [
        ("path", NoteArtifact("")),
        ("path", NoteArtifact(7)),
        ("path", NoteArtifact("x" * 4_097)),
        ("how", NoteArtifact("x", "written")),
        ("how", NoteArtifact("x", None)),
    ],
)
def test_what_is_no_note_is_refused_by_name(what, command):
    assert Live().refuses(InvalidArgument, command).what == what


def test_any_name_of_a_file_survives_a_replay():
    live = Live()
    live.do(NoteArtifact("caf\udce9/\0" + "x" * 4_000))

    assert picture(live.replayed()) == picture(live.state)
