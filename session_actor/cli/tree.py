"""`session-actor tree DIR ID`: branches, checkpoints, the head, and how full the window is."""

from __future__ import annotations

from .asking import as_json, at_option, directory, named, profiles, session


@named(
    "tree",
    "session-actor tree conversations/ user-42",
    "session-actor tree conversations/ user-42 --at 12    # as it was after record 12",
    "session-actor tree conversations/ user-42 --json",
)
@directory
@session
@at_option()
@profiles
@as_json
def command(directory: str, session: str, *, at: str | None, profiles: str | None, as_json: bool) -> int:
    """Draw the branches, the checkpoints and the head of a session, and how full the window is. No text is shown.

    The line of the head goes straight down; what leaves it is drawn first, further in. Frames that no branch,
    checkpoint or head holds (popped ones) are only counted.
    """
    from .drawing import run

    return run(directory, session, at=at, profiles=profiles, as_json=as_json)
