"""Draws the frames of a session as a tree: a run of frames in a row is one line."""

from __future__ import annotations

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
        last = _end_of_run(first, children, labels)
        lines.append(f"{before}{_run(first, last)}{''.join(f'  ← {label}' for label in labels.get(last.id, ()))}")
        above = children.get(last.id, [])
        for number, child in enumerate(reversed(above)):
            joint, deeper = ("└─ ", "   ") if number == 0 else ("├─ ", "│  ")
            pending.append((child, indent + joint, indent + deeper))
    return "\n".join(lines)


def _end_of_run(
    frame: Frame, children: Mapping[int | None, Sequence[Frame]], labels: Mapping[int | None, Sequence[str]]
) -> Frame:
    """Follow the frames upwards until one has a name, several children or none."""
    while frame.id not in labels and len(above := children.get(frame.id, ())) == 1:
        frame = above[0]
    return frame


def _run(first: Frame, last: Frame) -> str:
    count = last.depth - first.depth + 1
    fork = f", forked from {first.forked_from}" if first.forked_from else ""
    return f"frame {first.id}{fork}" if count == 1 else f"frames {first.id} to {last.id} ({count}){fork}"
