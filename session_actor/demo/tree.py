"""Draws the frames of a session as a tree: a run of frames in a row is one line."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from session_actor.frames import Frame


def draw_tree(
    frames: Sequence[Frame], branches: Mapping[str, int | None], checkpoints: Mapping[str, int], attached: str | None
) -> str:
    """Draw frames, oldest first in each line, with the names of branches (`attached` is marked) and checkpoints."""
    children: dict[int | None, list[Frame]] = {}
    for frame in frames:
        children.setdefault(frame.parent, []).append(frame)
    labels: dict[int | None, list[str]] = {}
    for name, head in branches.items():
        labels.setdefault(head, []).append(f"branch {name}{' (here)' if name == attached else ''}")
    for name, at in checkpoints.items():
        labels.setdefault(at, []).append(f"checkpoint {name}")
    lines: list[str] = []
    pending = [(root, "", "") for root in reversed(children.get(None, []))]
    while pending:
        first, before, indent = pending.pop()
        run = _run(first, children, labels)
        last = run[-1]
        lines.append(f"{before}{_told(run)}{''.join(f'  ← {label}' for label in labels.get(last.id, ()))}")
        above = children.get(last.id, [])
        for number, child in enumerate(reversed(above)):
            joint, deeper = ("└─ ", "   ") if number == 0 else ("├─ ", "│  ")
            pending.append((child, indent + joint, indent + deeper))
    return "\n".join(lines)


def _run(
    first: Frame, children: Mapping[int | None, Sequence[Frame]], labels: Mapping[int | None, Sequence[str]]
) -> list[Frame]:
    """Follow the frames upwards until one has a name, several children or none."""
    run = [first]
    while run[-1].id not in labels and len(above := children.get(run[-1].id, ())) == 1:
        run.append(above[0])
    return run


def _told(run: Sequence[Frame]) -> str:
    first, last = run[0], run[-1]
    fork = f", forked from {first.forked_from}" if first.forked_from else ""
    if first is last:
        return f"frame {first.id}{fork}"
    gaps = [_ids(below.id + 1, above.id - 1) for below, above in pairwise(run) if above.id - below.id > 1]
    without = f" without {', '.join(gaps)}" if gaps else ""
    return f"frames {first.id} to {last.id}{without} ({len(run)}){fork}"


def _ids(first: int, last: int) -> str:
    """Tell the ids of another branch between two of this one."""
    return str(first) if first == last else f"{first} {'and' if last == first + 1 else 'to'} {last}"
