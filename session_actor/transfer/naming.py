"""Where branches, checkpoints, compactions and the head are after an import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from session_actor.compaction.facts import Facts
from session_actor.compaction.overlays import OVERLAYS_KEPT, Overlay
from session_actor.state.history import seal_of
from session_actor.state.names import MAIN, NAME_LIMIT
from session_actor.tokens.estimate import estimate_tokens

from .identity import content_of, hash_of

if TYPE_CHECKING:
    from session_actor.events import HistorySealed
    from session_actor.frames import Frame
    from session_actor.state.state import State

    from .planting import Planter


def sealed_after(state: State, planter: Planter) -> HistorySealed:
    """The names after the frames of `planter` are in the session; what the session has itself stays where it is.

    The branch `main` goes to where the transcript ended, unless the conversation was gone on with in the session: then
    the end of the transcript gets a branch of its own. Other ends are branches, too.
    """
    sealed = seal_of(state)
    names, tip = _Names(sealed, planter), planter.main_tip
    branches, head = names.branches, sealed.head
    for frame, lane in planter.tips.items():
        if frame != tip:
            names.hold(frame, lane)
    if tip is not None:
        if _may_move(state, planter, branches.get(MAIN, 0), tip):
            left = branches.get(MAIN)
            names.put(MAIN, tip)
            head = tip if sealed.attached == MAIN else head
            if left is not None and not planter.is_below(left, tip) and left in planter.tips:
                names.hold(left, "")
        else:
            names.hold(tip, "")
    for name, frame in planter.labels():
        if names.checkpoints.get(name) != frame:
            names.checkpoints[names.free(name[:NAME_LIMIT])] = frame
    overlays = (*sealed.overlays, *_overlays(state, planter))
    return msgspec.structs.replace(
        sealed,
        branches=tuple(branches.items()),
        checkpoints=tuple(names.checkpoints.items()),
        head=head,
        next_id=planter.next_id,
        overlays=overlays[-OVERLAYS_KEPT:],
        generation=max([sealed.generation, *(overlay.generation for overlay in overlays)]),
    )


class _Names:
    """Branches and checkpoints on their way, however many there are."""

    def __init__(self, sealed: HistorySealed, planter: Planter) -> None:
        self.branches = dict(sealed.branches)
        self.checkpoints = dict(sealed.checkpoints)
        self._planter = planter
        self._at: dict[int | None, list[str]] = {}
        """By each frame the branches that are there."""
        self._taken: dict[str, int] = {}
        """By the name that was wanted, the newest number that was tried behind it."""
        for name, frame in sealed.branches:
            self._at.setdefault(frame, []).append(name)

    def put(self, name: str, frame: int) -> None:
        """Make a branch, or move it."""
        if name in self.branches:
            self._at[self.branches[name]].remove(name)
        self.branches[name] = frame
        self._at.setdefault(frame, []).append(name)

    def hold(self, tip: int, lane: str) -> None:
        """A branch at `tip`: the one that stood where the transcript went on from, or a new one."""
        if self._at.get(tip):
            return
        planter, at = self._planter, tip
        while (below := planter.parents[at]) is not None and not planter.forks_at(below):
            at = below
            for name in self._at.get(at, ()):
                if name != MAIN:
                    self.put(name, tip)
                    return
        self.put(self.free(f"side-{lane}"[:NAME_LIMIT] if lane else f"b{tip}"), tip)

    def free(self, wanted: str) -> str:
        """As `free_name`, without trying again what was tried."""
        name = wanted
        number = self._taken.get(wanted, 1)
        if number > 1:
            name = f"{wanted}-{number}"
        while name in self.branches or name in self.checkpoints:
            number += 1
            name = f"{wanted}-{number}"
        self._taken[wanted] = number
        return name


def _may_move(state: State, planter: Planter, main: int | None, tip: int) -> bool:
    """Whether nobody went on from where `main` is (0: there is no such branch)."""
    if main is None:
        return True
    if main in planter.parents:
        return True
    at: int | None = main
    while at is not None and at not in planter.parents:
        frame = state.table.get(at)
        if frame is None or not _is_outgrown(planter, frame):
            return False
        at = frame.parent
    return at is not None and planter.is_below(at, tip)


def _is_outgrown(planter: Planter, frame: Frame) -> bool:
    """Whether the file, which was read while it was written, now has a frame in another way.

    That is the beginning of a reply that is there whole, or what came with a reply and stands behind its results now.
    """
    for turn in frame.turns:
        if turn.role == "assistant":
            longer = (said for below, said in planter.grown if below == frame.parent)
            if not any(said[: len(turn.blocks)] == turn.blocks for said in longer):
                return False
        elif turn.role != "tool" and hash_of(content_of(frame)) not in planter.attached:
            return False
    return True


def _overlays(state: State, planter: Planter) -> list[Overlay]:
    """The compactions of the transcript that the session does not know."""
    known = {(overlay.covered_frame, overlay.summary) for overlay in state.overlays}
    found: list[Overlay] = []
    for summary in planter.summaries:
        if (summary.covered, summary.text) in known:
            continue
        found.append(
            Overlay(
                generation=state.generation + len(found) + 1,
                covered_frame=summary.covered,
                summary=summary.text,
                facts=Facts(),
                kept=(),
                planned=0,
                hash="",
                tokens_before=summary.tokens_before,
                tokens_after=estimate_tokens(summary.text, "o200k"),
                seq=state.seq + 1,
                below=summary.below,
            )
        )
    return found
