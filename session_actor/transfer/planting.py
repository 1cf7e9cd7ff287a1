"""From pieces of a transcript to frames: a tree of frames grows from pieces in the order of their file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.blocks import ToolResult
from session_actor.events import CopiedFrame, Pushed
from session_actor.frames import Instructions
from session_actor.state.times import now_us
from session_actor.state.weight import weight_of

from .ancestry import Ancestry
from .calls_planted import CallsPlanted
from .identity import ROOT, Marks, content_of_event, hash_of
from .pi_turns import summary_turn
from .pieces import BEFORE, Configured, Labelled, Said, Summed, check_weight

if TYPE_CHECKING:
    from session_actor.blocks import Block
    from session_actor.frames import Turn

    from .pieces import Piece, Planted


SUMMARY_LIMIT: Final = 250_000
"""How many characters a summary may have to stand for what it covers: all names and summaries are in one record."""


class Summary(msgspec.Struct, frozen=True, gc=False):
    """A compaction that the transcript tells of."""

    covered: int
    """The newest frame that it stands for."""
    text: str
    tokens_before: int
    below: int
    """Frames with a lower id were there."""


class Planter:
    """Grows the frames of one conversation. It knows of each what its place in the tree is, and not what it says."""

    def __init__(self, known: Marks, next_id: int) -> None:
        """`known`: the frames that the session has. `next_id`: the first id that is free."""
        self._known = known
        self._seen = Marks()
        self._marks: dict[int, bytes] = {}
        self._configured: dict[int, Instructions] = {}
        """The instructions in force, at frames that have any."""
        self._places: dict[str, int | None] = {}
        self._hollow: set[str] = set()
        """Keys of pieces that have no frame of their own: their place is the one below."""
        self._said: dict[str, int] = {}
        self._main: int | None = None
        self._lasts: dict[str, int | None] = {}
        """The last frame of each lane."""
        self._labels: dict[str, str | None] = {}
        self._ancestry = Ancestry()
        self.parents = self._ancestry.parents
        self._calls = CallsPlanted(self._ancestry)
        self.next_id = next_id
        self.first_new = next_id
        self.ready: list[CopiedFrame] = []
        """New frames that were not yet taken; whoever takes them empties it."""
        self.ready_weight = 0
        self.added = self.skipped = 0
        self.summaries: list[Summary] = []
        self._summed: set[tuple[int, str]] = set()
        self._forks: set[int] = set()
        self.tips: dict[int, str] = {}
        """Frames on which nothing stands, with their lanes."""
        self.grown: list[tuple[int | None, tuple[Block, ...]]] = []
        """New assistant turns on old frames: parent, and what they say."""
        self.attached: set[bytes] = set()
        """The hashes of what new frames say that came with others."""

    @property
    def main_tip(self) -> int | None:
        """Where the conversation ended; of a file that has side chains only, the last of them."""
        return next(reversed(self.parents), None) if self._main is None else self._main

    def labels(self) -> list[tuple[str, int]]:
        """The names that were given to frames."""
        found = ((name, self._places.get(key)) for key, name in self._labels.items() if name)
        return [(name, frame) for name, frame in found if frame is not None]

    def plant(self, piece: Planted) -> None:
        """Add a piece, unless the session has it. Raises `RecordTooLarge`; then nothing was added."""
        if isinstance(piece, Labelled):
            self._labels[piece.target] = piece.name
            return
        there = self._there(piece)
        if there is not None:
            self.skipped += 1
            self._lasts[piece.lane] = there
            return
        spot = below = self._spot(piece)
        if isinstance(piece, Said):
            spot = self._grow(piece, spot, piece.turns, None)
            self._said.update(dict.fromkeys(piece.keys, spot))
        elif isinstance(piece, Configured):
            instructions = self._instructions(piece, spot)
            if instructions is not None:
                spot = self._grow(piece, spot, (), instructions)
        elif isinstance(piece, Summed):
            spot = self._sum_up(piece, spot)
        for key in piece.keys:
            self._places[key] = spot
        if spot == below:
            self._hollow.update(piece.keys)
        self._lasts[piece.lane] = spot
        if not piece.lane:
            self._main = spot

    def _there(self, piece: Piece) -> int | None:
        """The frame of a line that came before, under the same key: some writers copy what they go on from."""
        frame_id = self._said.get(piece.keys[0]) if isinstance(piece, Said) and piece.keys else None
        if frame_id is None or not isinstance(piece, Said):
            return None
        parent = self.parents[frame_id]
        content = content_of_event(Pushed(0, None, turns=self._calls.bind(piece.turns, parent, frame_id)))
        return frame_id if Marks().next(self._mark(parent), content) == self._marks[frame_id] else None

    def _spot(self, piece: Piece) -> int | None:
        """The frame that a piece stands on."""
        last = self._lasts.get(piece.lane)
        if piece.parent is None:
            return None
        if piece.parent == BEFORE or piece.parent not in self._places:
            return last
        spot = self._places[piece.parent]
        if isinstance(piece, Said) and last != spot and self._waits(piece.turns, last) and self.is_below(spot, last):
            return last
        return spot

    def _waits(self, turns: tuple[Turn, ...], head: int | None) -> bool:
        """Whether these are results of calls that have none yet: parallel ones stand one on the other."""
        wanted = [block.call_id for turn in turns for block in turn.blocks if isinstance(block, ToolResult)]
        return bool(wanted) and all(self._calls.waits(head, call_id) for call_id in wanted)

    def forks_at(self, frame: int) -> bool:
        """Whether more than one frame stands on a frame."""
        return frame in self._forks

    def is_below(self, frame: int | None, head: int | None) -> bool:
        """Whether a frame is on the path of another."""
        return self._ancestry.is_below(frame, head)

    def _mark(self, frame: int | None) -> bytes:
        return ROOT if frame is None else self._marks[frame]

    def _grow(
        self, piece: Piece, parent: int | None, turns: tuple[Turn, ...], instructions: Instructions | None
    ) -> int:
        """Plant a frame; the one that the session has already, if it has."""
        event = Pushed(self.next_id, parent, turns=turns, instructions=instructions)
        if instructions is None:
            event = msgspec.structs.replace(event, turns=self._calls.bind(turns, parent, self.next_id))
        content = content_of_event(event)
        mark = self._seen.next(self._mark(parent), content)
        there = self._known.find(mark)
        frame_id = self.next_id if there is None else there
        if there is None:
            if not isinstance(piece, Said):  # which was looked at before
                check_weight(event)
            self._add(event, piece.at_us)
            if isinstance(piece, Said) and piece.is_attached:
                self.attached.add(hash_of(content))
        else:
            self.skipped += 1
            event = msgspec.structs.replace(event, turns=self._calls.bind(turns, parent, there))
        self._marks[frame_id] = self._seen.add(self._mark(parent), content, frame_id)
        self._note(frame_id, parent, event, piece.lane)
        return frame_id

    def _add(self, event: Pushed, at_us: int | None) -> None:
        self.ready.append(CopiedFrame(now_us() if at_us is None else at_us, event))
        self.ready_weight += weight_of(event)
        self.next_id += 1
        self.added += 1
        if event.parent is None or event.parent < self.first_new:
            self.grown += [(event.parent, turn.blocks) for turn in event.turns or () if turn.role == "assistant"]

    def _note(self, frame_id: int, parent: int | None, event: Pushed, lane: str) -> None:
        self._ancestry.add(frame_id, parent)
        self._calls.note(frame_id, parent, event.turns or ())
        instructions = event.instructions or (None if parent is None else self._configured.get(parent))
        if instructions is not None:
            self._configured[frame_id] = instructions
        if parent is not None and self.tips.pop(parent, None) is None:
            self._forks.add(parent)
        self.tips[frame_id] = lane

    def _instructions(self, piece: Configured, spot: int | None) -> Instructions | None:
        """What is in force from a piece on; None: nothing changed."""
        old = (None if spot is None else self._configured.get(spot)) or Instructions()
        new = Instructions(
            old.system if piece.system is None else piece.system,
            old.tools if piece.tools is None else piece.tools,
            old.model if piece.model is None else piece.model,
            old.native_tools if piece.native_tools is None else piece.native_tools,
        )
        return None if new == old else new

    def _covered(self, first_kept: str | None, spot: int | None) -> int | None:
        """The newest frame before the first piece that is kept; one that is not known keeps nothing."""
        if first_kept is None or first_kept not in self._places:
            return spot
        kept = self._places[first_kept]
        if not self.is_below(kept, spot):
            return spot
        return kept if kept is None or first_kept in self._hollow else self.parents[kept]

    def _sum_up(self, piece: Summed, spot: int | None) -> int | None:
        """A compaction of what is below; nothing is planted for it, and what is covered stays."""
        covered = self._covered(piece.first_kept, spot)
        while covered is not None and self._calls.waiting_at(covered):
            covered = self.parents[covered]
        if covered is None or len(piece.summary) > SUMMARY_LIMIT:
            return self._grow(piece, spot, (summary_turn(piece.summary),), None)
        if (covered, piece.summary) not in self._summed:
            self._summed.add((covered, piece.summary))
            self.summaries.append(Summary(covered, piece.summary, piece.tokens_before, self.next_id))
        return spot
