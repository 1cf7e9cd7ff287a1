"""What a state remembers of compactions, pins and retractions: changed by `apply` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from session_actor.state.runs import contains
from session_actor.state.spending import plus

from .overlays import OVERLAYS_KEPT, Overlay, Pin

if TYPE_CHECKING:
    from session_actor.events import Compacted, Pinned
    from session_actor.state.runs import Runs
    from session_actor.state.state import State

    from .overlays import Compaction


def note_compaction(state: State, event: Compacted, seq: int) -> Compaction:
    """Remember a compaction, and what was charged for it."""
    overlay = Overlay(
        event.generation,
        event.covered_frame,
        event.verdict.sealed,
        event.facts,
        event.kept,
        event.planned,
        event.hash,
        event.tokens_before,
        event.tokens_after,
        seq,
        state.next_id,
    )
    state.overlays = (*state.overlays, overlay)[-OVERLAYS_KEPT:]
    state.generation = event.generation
    if event.usage is not None and state.usage is not None:
        state.usage = plus(state.usage, event.usage)
    return overlay.compaction


def note_undone(state: State, generation: int, seq: int) -> None:
    """A compaction holds no more. It stays known: what was shown changed here."""
    state.overlays = tuple(
        msgspec.structs.replace(overlay, undone=seq, undone_below=state.next_id)
        if overlay.generation == generation and not overlay.undone
        else overlay
        for overlay in state.overlays
    )


def note_pin(state: State, event: Pinned, seq: int) -> None:
    """Remember what was said of a frame."""
    state.pins = {**state.pins, event.frame: Pin(event.pinned, event.frames, seq, state.next_id)}


def without_pruned(state: State, dropped: Runs) -> None:
    """Forget what was said of frames that are gone."""
    if state.overlays:
        state.overlays = tuple(one for one in state.overlays if not contains(dropped, one.covered_frame))
    if state.pins:
        state.pins = {frame: pin for frame, pin in state.pins.items() if not contains(dropped, frame)}
    if state.retractions:
        state.retractions = {
            frame: retraction for frame, retraction in state.retractions.items() if not contains(dropped, frame)
        }
