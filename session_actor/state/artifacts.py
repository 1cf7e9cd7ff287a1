"""Which files and other things were read or modified on a path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from session_actor.frames import Frame


def artifacts_in(frames: Iterable[Frame]) -> dict[str, Literal["read", "modified"]]:
    """What these frames, oldest first, note: by path, the one noted last at the end.

    What was modified once counts as modified, however often it is read afterwards.
    """
    found: dict[str, Literal["read", "modified"]] = {}
    for frame in frames:
        for artifact in frame.artifacts:
            before = found.pop(artifact.path, None)
            found[artifact.path] = before if before == "modified" else artifact.how
    return found
