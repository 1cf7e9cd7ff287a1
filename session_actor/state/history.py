"""Histories as a whole: which frames are alive, and the records that copy a history into a new session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.compaction.overlays import copied, copied_pins
from session_actor.compaction.retracting import left_behind
from session_actor.events import CopiedFrame, Created, HistoryCopied, HistorySealed, Pushed, Source
from session_actor.given import content
from session_actor.window.requests_made import window_on

from .grow import is_keyframe, place_on
from .losses import unknown
from .names import MAIN
from .runs import contains, merged
from .table import SPAN
from .weight import SMALL, weigh, weight_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from session_actor.frames import Frame

    from .runs import Runs
    from .state import State
    from .table import Table

CHUNK_WEIGHT: Final = 100_000
"""About how many bytes of frames go into one record of a copy."""

CHUNK_FRAMES: Final = 256
"""How many frames go into it at most: about 3 ms of making it, and of applying it when the copy is loaded."""


def created(session: str, metadata: object = None, source: Source | None = None) -> tuple[Created, int]:
    """The first record of a session, and its weight.

    Raises `ValueNotStorable` for metadata that JSON cannot hold exactly, `RecordTooLarge` for more than a record holds.
    """
    if metadata is None and source is None:
        return Created(session=session), SMALL + len(session)
    event = Created(session=session, metadata=content.checked(content.free, metadata, "metadata"), source=source)
    return event, weigh(event)


class Held:
    """The frames below some tips, as runs: found by going from run to run, however many frames there are."""

    def __init__(self) -> None:
        """Nothing is held."""
        self._newest: dict[int, int] = {}
        """The newest frame that is held, by the first of its run."""

    def add(self, table: Table, tips: Iterable[int]) -> Iterator[list[int]]:
        """Hold the stacks of `tips`. Each yield names the frames that must be read before it goes on."""
        newest = self._newest
        while tips:
            yield list(tips)
            starts: set[int] = set()
            for tip in tips:
                start = table.at(tip).run_from
                if start not in newest:
                    starts.add(start)
                newest[start] = max(tip, newest.get(start, 0))
            yield list(starts)
            tips = {parent for start in starts if (parent := table.at(start).parent) is not None}

    @property
    def runs(self) -> Runs:
        """All ids that are held."""
        return merged(self._newest.items())


def tips_of(state: State, *, keys: bool = False) -> set[int]:
    """Where the head, the branches and the checkpoints are. `keys`: also what known keys are answered with."""
    tips = {state.head, *state.branches.values(), *state.checkpoints.values()}
    if keys:
        tips.update(entry.answer.frame for entry in state.keys.entries().values())
    return {tip for tip in tips if tip is not None and state.table.has(tip)}


def live_runs(state: State) -> Runs:
    """The ids of the frames that the head, a branch or a checkpoint holds. O(forks and pops)."""
    return runs_below(state.table, tips_of(state))


def runs_below(table: Table, tips: Iterable[int]) -> Runs:
    """The ids of the frames of these tips' stacks. O(forks and pops); reads the first frame of each."""
    held = Held()
    for needed in held.add(table, tips):
        table.read(needed)
    return held.runs


async def load_live(state: State) -> None:
    """Read all cold frames among those, off the loop. Raises as `Table.load` does."""
    table, held = state.table, Held()
    for needed in held.add(table, tips_of(state)):
        await table.load(needed)
    for first, last in held.runs:
        await table.load(range(first, last + 1))


def seal_of(state: State) -> HistorySealed:
    """Where the names of a session are, and how its frames are shown, as it is in this session."""
    return HistorySealed(
        tuple(state.branches.items()),
        tuple(state.checkpoints.items()),
        state.head,
        state.attached,
        state.next_id,
        state.marks,
        state.learned,
        state.overlays,
        state.generation,
        tuple(state.pins.items()),
    )


def seal_to_go(state: State) -> HistorySealed:
    """The same for another session that gets all frames."""
    return _with_views(state, seal_of(state), state.table.has)


async def load_stack(state: State, frame_id: int | None) -> None:
    """Read what `history_to` needs, off the loop. Raises as `Table.load` does."""
    await state.table.load_path(frame_id)
    if state.retractions:
        held = Held()
        for needed in held.add(state.table, tips_of(state)):
            await state.table.load(needed)


def history_of(state: State) -> Iterator[tuple[HistoryCopied | HistorySealed, int]]:
    """The events that give a new session the history of this one, each with its weight; ids and times stay.

    All live frames, branches, checkpoints and the head. Keys are not copied: they name changes of this session.
    """
    runs = live_runs(state)
    frames = _frames(state.table, runs)
    branches, checkpoints = tuple(state.branches.items()), tuple(state.checkpoints.items())
    known = tuple((-frame, one) for frame, one in state.retractions.items() if frame < 0)
    sealed = HistorySealed(branches, checkpoints, state.head, state.attached, state.next_id, retractions=known)
    return _records(state.table, frames, _with_views(state, sealed, lambda frame_id: contains(runs, frame_id)))


def history_to(state: State, frame_id: int | None) -> Iterator[tuple[HistoryCopied | HistorySealed, int]]:
    """As `history_of`, but only the stack of `frame_id` (None: the empty stack), as branch `main`.

    The checkpoints on it come along, and that something on it was retracted above it. Raises `FrameUnknown`.
    """
    if frame_id is not None and state.table.get(frame_id) is None:
        raise unknown(state, frame_id)
    path = state.table.path(frame_id)
    ids = {frame.id for frame in path}
    names = tuple((name, frame) for name, frame in state.checkpoints.items() if frame in ids and name != MAIN)
    known = left_behind(state, ids, live_runs(state)) if state.retractions else ()
    sealed = HistorySealed(((MAIN, frame_id),), names, frame_id, MAIN, state.next_id, retractions=known)
    return _records(state.table, path[::-1], _with_views(state, sealed, lambda frame: frame in ids))


def _with_views(state: State, sealed: HistorySealed, holds: Callable[[int], bool]) -> HistorySealed:
    """With what is known of how the copied frames are shown."""
    marks, learned = window_on(state, holds)
    return msgspec.structs.replace(
        sealed,
        marks=marks,
        learned=learned,
        overlays=copied(state.overlays, holds),
        generation=state.generation,
        pins=copied_pins(state.pins, holds),
    )


def _frames(table: Table, runs: Runs) -> Iterator[Frame]:
    for first, last in runs:
        for start in range(first, last + 1, SPAN):
            ids = range(start, min(start + SPAN, last + 1))
            table.read(ids)
            yield from (table.at(frame_id) for frame_id in ids)


def _records(
    table: Table, frames: Iterable[Frame], sealed: HistorySealed
) -> Iterator[tuple[HistoryCopied | HistorySealed, int]]:
    chunk: list[CopiedFrame] = []
    chunk_weight = 0
    for frame in frames:
        event = pushed_again(table, frame)
        weight = weight_of(event)
        if chunk and (chunk_weight + weight > CHUNK_WEIGHT or len(chunk) == CHUNK_FRAMES):
            yield HistoryCopied(tuple(chunk)), chunk_weight
            chunk, chunk_weight = [], 0
        chunk.append(CopiedFrame(frame.at_us, event))
        chunk_weight += weight
    if chunk:
        yield HistoryCopied(tuple(chunk)), chunk_weight
    yield sealed, weigh(sealed)


def pushed_again(table: Table, frame: Frame, *, place: bool = True) -> Pushed:
    """The event that makes this frame in a state that has its parent. `place`: as a record, which may be a keyframe."""
    keyframe = place and is_keyframe(frame.id, frame.parent)
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
        artifacts=frame.artifacts,
        retracted=frame.retracted,
    )
