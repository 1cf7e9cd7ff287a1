"""Where branches, checkpoints, compactions and the head are after an import."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from session_actor.compaction.facts import Facts
from session_actor.compaction.overlays import OVERLAYS_KEPT, Overlay
from session_actor.history import seal_of
from session_actor.names import MAIN, NAME_LIMIT, free_name
from session_actor.tokens.estimate import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from session_actor.events import HistorySealed
    from session_actor.state import State

    from .planting import Planter


def sealed_after(state: State, planter: Planter) -> HistorySealed:
    """The names after the frames of `planter` are in the session; what the session has itself stays where it is.

    The branch `main` goes to where the transcript ended, unless the conversation was gone on with in the session: then
    the end of the transcript gets a branch of its own. Other ends are branches, too.
    """
    sealed = seal_of(state)
    branches, checkpoints = dict(sealed.branches), dict(sealed.checkpoints)
    head, tip = sealed.head, planter.main_tip
    for frame, lane in planter.tips.items():
        if frame != tip:
            _hold(planter, frame, lane, branches, checkpoints)
    if tip is not None:
        if _may_move(state, planter, branches.get(MAIN, 0), tip):
            left = branches.get(MAIN)
            branches[MAIN] = tip
            head = tip if sealed.attached == MAIN else head
            if left is not None and not planter.is_below(left, tip) and left in planter.tips:
                _hold(planter, left, "", branches, checkpoints)
        else:
            _hold(planter, tip, "", branches, checkpoints)
    for name, frame in planter.labels():
        if checkpoints.get(name) != frame:
            checkpoints[free_name(name[:NAME_LIMIT], branches, checkpoints)] = frame
    overlays = (*sealed.overlays, *_overlays(state, planter))
    return msgspec.structs.replace(
        sealed,
        branches=tuple(branches.items()),
        checkpoints=tuple(checkpoints.items()),
        head=head,
        next_id=planter.next_id,
        overlays=overlays[-OVERLAYS_KEPT:],
        generation=max([sealed.generation, *(overlay.generation for overlay in overlays)]),
    )


def _hold(planter: Planter, tip: int, lane: str, branches: dict[str, int | None], checkpoints: dict[str, int]) -> None:
    """A branch at `tip`: the one that stood where the transcript went on from, or a new one."""
    if tip in branches.values():
        return
    at = tip
    while (below := planter.parents[at]) is not None and not planter.forks_at(below):
        at = below
        for name, head in branches.items():
            if head == at and name != MAIN:
                branches[name] = tip
                return
    wanted = f"side-{lane}"[:NAME_LIMIT] if lane else f"b{tip}"
    branches[free_name(wanted, branches, checkpoints)] = tip


def _may_move(state: State, planter: Planter, main: int | None, tip: int) -> bool:
    """Whether nobody went on from where `main` is (0: there is no such branch)."""
    if main is None:
        return True
    if main in planter.parents:
        return True
    at: int | None = main
    while at is not None and at not in planter.parents:
        frame = state.table.get(at)
        if frame is None or not _is_outgrown(planter, frame.parent, frame.turns):
            return False
        at = frame.parent
    return at is not None and planter.is_below(at, tip)


def _is_outgrown(planter: Planter, parent: int | None, turns: Iterable[object]) -> bool:
    """Whether a frame is the beginning of one that the file now has whole: it was read while it was written."""
    for turn in turns:
        role, blocks = getattr(turn, "role", ""), getattr(turn, "blocks", ())
        if role == "tool":
            continue
        longer = (said for below, said in planter.grown if below == parent)
        if role != "assistant" or not any(said[: len(blocks)] == blocks for said in longer):
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
