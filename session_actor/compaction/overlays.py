"""Overlays: what compactions show in place of old frames. The frames stay; goto to before a compaction undoes it.

A compaction covers all frames of a path up to one of them. Where that frame is on the path, its summary is shown in
their place; the newest one counts, unless it was taken back.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.given.private import as_repr
from session_actor.state.paths import path_runs
from session_actor.state.runs import contains

from .facts import Facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from session_actor.frames import Frame
    from session_actor.state.runs import Runs
    from session_actor.state.state import State

OVERLAYS_KEPT: Final = 32
"""How many compactions a session remembers: the newest. Behind an older one the whole history is shown, or trimmed."""


class Compaction(msgspec.Struct, frozen=True, gc=False):
    """A summary that stands for old frames from now on."""

    generation: int
    """Its number, from 1: one more than that of the compaction before it in this session."""
    covered_frame: int
    """The newest frame that it stands for: with it, all below on its path."""
    tokens_before: int
    """What a request took up before, estimated."""
    tokens_after: int
    """What it takes up with the summary, estimated."""


class Overlay(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a session remembers of a compaction."""

    generation: int
    covered_frame: int
    summary: str
    """As it was sealed."""
    facts: Facts
    """What it had to keep: the next one keeps it, too."""
    kept: tuple[int, ...]
    """Frames up to the covered one that are shown as they are."""
    planned: int
    """The number that its plan had."""
    hash: str
    """Of all that it stands for, as in its plan."""
    tokens_before: int
    tokens_after: int
    seq: int
    """The record that made it; 0: it came with the history of another session."""
    below: int
    """Frames with a lower id were there when it was made."""
    undone: int = 0
    """The record that took it back; 0: none did."""
    undone_below: int = 0
    """Frames with a lower id were there then."""

    @property
    def compaction(self) -> Compaction:
        """What a caller is told of it."""
        return Compaction(self.generation, self.covered_frame, self.tokens_before, self.tokens_after)

    def holds_at(self, seq: int | None) -> bool:
        """Whether it held just before record `seq`; None: whether it holds now."""
        if seq is None:
            return not self.undone
        return self.seq < seq and not 0 < self.undone < seq

    def __repr__(self) -> str:
        """Numbers only."""
        return f"Overlay(generation={self.generation}, covered_frame={self.covered_frame})"

    __rich_repr__ = as_repr


class Pin(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What was said of a frame after it was pushed: that it stays shown, or need not."""

    pinned: bool
    frames: tuple[int, ...]
    """The frame, and what of its step must be shown with it."""
    seq: int
    below: int
    """As in `Overlay`."""


def overlay_at(state: State, head: int, seq: int | None = None) -> Overlay | None:
    """The compaction that is shown at a head; None: none is. `seq`: as it was just before this record."""
    if not state.overlays:
        return None
    return shown_on(state.overlays, path_runs(state.table, head), seq)


def shown_on(overlays: tuple[Overlay, ...], runs: Runs, seq: int | None = None) -> Overlay | None:
    """The same on a path of these ids."""
    for overlay in reversed(overlays):
        if overlay.holds_at(seq) and contains(runs, overlay.covered_frame):
            return overlay
    return None


def pinned_below(state: State, runs: Runs, cut: int, seq: int | None = None) -> list[Pin]:
    """The pins on a path that show what lies below a cut."""
    return [
        pin
        for frame, pin in state.pins.items()
        if pin.pinned and frame < cut and (seq is None or pin.seq < seq) and contains(runs, frame)
    ]


def changes_on(state: State, runs: Runs, pins: Iterable[Pin], seq: int | None = None) -> list[int]:
    """The newest frames of a path that were there when what is shown of it changed by a compaction or a pin."""
    borders = {pin.below for pin in pins}
    for overlay in state.overlays:
        if (seq is None or overlay.seq < seq) and contains(runs, overlay.covered_frame):
            borders.add(overlay.below)
            if overlay.undone and (seq is None or overlay.undone < seq):
                borders.add(overlay.undone_below)
    return [frame for border in borders if (frame := _newest_below(runs, border)) is not None]


def _newest_below(runs: Runs, border: int) -> int | None:
    """The highest id of a path that is lower than this one."""
    place = bisect_left(runs, (border, 0)) - 1
    return None if place < 0 else min(runs[place][1], border - 1)


def pinned_now(state: State) -> Callable[[Frame], bool]:
    """A function that tells whether a frame is pinned: as it was pushed, unless something was said of it later."""
    pins = state.pins

    def pinned(frame: Frame) -> bool:
        pin = pins.get(frame.id)
        return frame.pinned if pin is None else pin.pinned

    return pinned


def copied(overlays: Iterable[Overlay], holds: Callable[[int], bool]) -> tuple[Overlay, ...]:
    """Those on frames that are copied into another session, whose records have other numbers."""
    return tuple(
        msgspec.structs.replace(overlay, seq=0, undone=min(overlay.undone, 1))
        for overlay in overlays
        if holds(overlay.covered_frame)
    )


def copied_pins(pins: dict[int, Pin], holds: Callable[[int], bool]) -> tuple[tuple[int, Pin], ...]:
    """The same of pins."""
    return tuple((frame, msgspec.structs.replace(pin, seq=0)) for frame, pin in pins.items() if holds(frame))
