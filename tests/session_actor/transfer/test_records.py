"""The records of imports: replayed on snapshots, on frames that are still on the disk, and behind gaps."""

from __future__ import annotations

from pathlib import Path

import pytest

from session_actor import SessionService
from session_actor.errors import ReplayError
from session_actor.events import CopiedFrame, Gap, HistoryCopied, HistorySealed, Pushed
from session_actor.server import snapshots
from session_actor.state.apply import apply
from session_actor.state.history import created
from session_actor.state.losses import replay
from session_actor.state.state import State
from session_actor.transfer import growing
from session_actor.transfer.exporting import export_session

from .transferring import PI, frames_of, imported, lines_in, memory, picture, state_of


def copied(frame_id: int, parent: int | None, sealed: HistorySealed | None = None) -> HistoryCopied:
    return HistoryCopied((CopiedFrame(5, Pushed(frame_id, parent, "hi")),), sealed)


def made() -> State:
    state = State()
    apply(state, created("s")[0], 1, 0)
    return state


@pytest.mark.parametrize("own", [False, True], ids=["foreign", "own"])
async def test_parts_are_added_to_a_session_whose_frames_are_on_the_disk(tmp_path: Path, monkeypatch, own: bool):
    monkeypatch.setattr(snapshots, "RESTING_RECORDS", 1)
    monkeypatch.setattr(snapshots, "EVERY_RECORDS", 5)
    monkeypatch.setattr(growing, "CHUNK_FRAMES", 7)
    folder, lines = tmp_path / "conversations", lines_in(PI)
    async with memory() as service:
        _, whole = await imported(service, PI, session_id="s")
        out = tmp_path / "s.ndjson"
        await export_session(service, "s", out)
    for end in (30, 31, 77, len(lines)):
        part = tmp_path / "part.jsonl"
        part.write_bytes(b"".join(lines[:end]))
        async with SessionService.open(folder) as service:
            _, state = await imported(service, part if end < len(lines) or not own else out, session_id="s")
    async with SessionService.open(folder) as service:
        state = await state_of(service, "s")
        assert picture(state) == picture(whole)


def test_names_come_in_the_same_record_or_not_at_all():
    state = made()
    for wrong in (
        HistorySealed((("main", 9),), (), None, "main", 2),
        HistorySealed((("main", 1),), (("a", 7),), 1, "main", 2),
        HistorySealed((("main", 1),), (), 1, "other", 2),
        HistorySealed((("main", 1),), (), 1, "main", 1),
    ):
        with pytest.raises(ReplayError):
            apply(state, copied(1, None, wrong), 2, 0)
        assert (frames_of(state), state.next_id, state.seq) == ([], 1, 1)

    apply(state, copied(1, None, HistorySealed((("main", 1),), (("a", 1),), 1, "main", 4)), 2, 0)
    assert (state.branches, state.checkpoints, state.head, state.next_id) == ({"main": 1}, {"a": 1}, 1, 4)


def test_behind_a_gap_the_names_of_frames_that_are_there_are_kept():
    state = made()
    replay(state, Gap(2, "damaged"), 3, 0)
    sealed = HistorySealed((("main", 9), ("lost", 4)), (("a", 4), ("b", 9)), 9, "main", 10)
    replay(state, copied(9, 4, sealed), 4, 0)

    assert [(frame.id, frame.parent) for frame in frames_of(state)] == [(9, None)]
    assert (state.branches, state.checkpoints) == ({"main": 9, "lost": None}, {"b": 9})
    assert (state.head, state.attached, state.next_id, state.seq) == (9, "main", 10, 4)
