"""Histories as a whole: which frames are alive, and the records that copy a history into a new session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import content
from .errors import FrameUnknown
from .events import CopiedFrame, Created, HistoryCopied, HistorySealed, Pushed, Source
from .grow import is_keyframe, place_on
from .names import MAIN
from .weight import weigh, weight_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .frames import Frame
    from .state import State
    from .table import Table

CHUNK_WEIGHT: Final = 1_000_000
"""About how many bytes of frames go into one record of a copy."""


def created(session: str, metadata: object = None, source: Source | None = None) -> tuple[Created, int]:
    """The first record of a session, and its weight.

    Raises `ValueNotStorable` for metadata that JSON cannot hold exactly, `RecordTooLarge` for more than a record holds.
    """
    event = Created(session=session, metadata=content.checked(content.free, metadata, "metadata"), source=source)
    return event, weigh(event)


def live_frames(state: State) -> set[int]:
    """The ids of the frames that the head, a branch or a checkpoint holds. O(frames)."""
    live: set[int] = set()
    for head in (state.head, *state.branches.values(), *state.checkpoints.values()):
        at = head
        while at is not None and at not in live:
            live.add(at)
            frame = state.table.frames[at]
            at = None if frame is None else frame.parent
    return live


def kept_table(state: State) -> Table:
    """A new table without the frames that nothing holds; those that a known key answers with stay, too. O(frames)."""
    kept = live_frames(state)
    for entry in state.keys.entries().values():
        answer = entry.answer
        if answer.frame is not None:
            kept.update(frame.id for frame in state.table.path(answer.frame, answer.popped or 1))
    return state.table.kept(kept)


def history_of(state: State) -> Iterator[tuple[HistoryCopied | HistorySealed, int]]:
    """The events that give a new session the history of this one, each with its weight; ids and times stay.

    All live frames, branches, checkpoints and the head. Keys are not copied: they name changes of this session.
    """
    frames = _frames(state, live_frames(state))
    branches, checkpoints = tuple(state.branches.items()), tuple(state.checkpoints.items())
    return _records(
        state.table, frames, HistorySealed(branches, checkpoints, state.head, state.attached, state.next_id)
    )


def history_to(state: State, frame_id: int | None) -> Iterator[tuple[HistoryCopied | HistorySealed, int]]:
    """As `history_of`, but only the stack of `frame_id` (None: the empty stack), as branch `main`.

    The checkpoints on it come along. Raises `FrameUnknown`.
    """
    if frame_id is not None and state.table.get(frame_id) is None:
        raise FrameUnknown(frame_id)
    path = state.table.path(frame_id)
    ids = {frame.id for frame in path}
    names = tuple((name, frame) for name, frame in state.checkpoints.items() if frame in ids and name != MAIN)
    return _records(state.table, path[::-1], HistorySealed(((MAIN, frame_id),), names, frame_id, MAIN, state.next_id))


def _frames(state: State, ids: set[int]) -> list[Frame]:
    return [frame for frame in state.table.frames if frame is not None and frame.id in ids]


def _records(
    table: Table, frames: list[Frame], sealed: HistorySealed
) -> Iterator[tuple[HistoryCopied | HistorySealed, int]]:
    chunk: list[CopiedFrame] = []
    chunk_weight = 0
    for frame in frames:
        event = _pushed_again(table, frame)
        weight = weight_of(event)
        if chunk and chunk_weight + weight > CHUNK_WEIGHT:
            yield HistoryCopied(tuple(chunk)), chunk_weight
            chunk, chunk_weight = [], 0
        chunk.append(CopiedFrame(frame.at_us, event))
        chunk_weight += weight
    if chunk:
        yield HistoryCopied(tuple(chunk)), chunk_weight
    yield sealed, weigh(sealed)


def _pushed_again(table: Table, frame: Frame) -> Pushed:
    """The event that makes this frame in a state that has its parent."""
    keyframe = is_keyframe(frame.id, frame.parent)
    parent = table.get(frame.parent) if keyframe and frame.parent is not None else None
    return Pushed(
        frame.id,
        frame.parent,
        frame.user_input,
        frame.assistant_output,
        frame.assumptions,
        frame.decisions,
        frame.given_turns,
        frame.pinned,
        forked_from=frame.forked_from,
        instructions=frame.instructions,
        holds=frame.holds,
        place=None if parent is None else place_on(parent),
    )
