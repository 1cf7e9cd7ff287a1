"""What `session-actor diff DIR ID A B` does: what is different between two moments of a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .asking import ended_by, moment_at, replayed
from .codes import FOUND, counted, say
from .harmless import brief, shown_id
from .lines import DiffChanges
from .output import pressure, runs_of, shown_runs, styled, tell
from .parts import DiffPart
from .telling import budget_part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from session_actor.replay import Diff


def run(directory: str, session: str, a: str, b: str, *, exit_code: bool, profiles: str | None, as_json: bool) -> int:
    """Run the command; see there."""
    with replayed(directory, session, profiles) as replay:
        found = replay.diff(moment_at(replay, a), moment_at(replay, b))
        if as_json:
            _tell(session, found)
        else:
            _say(session, found)
        return ended_by(replay) or (FOUND if exit_code and not found.is_empty else 0)


def _tell(session: str, found: Diff) -> None:
    before, after = found.budget
    tell(
        DiffChanges(
            id=session,
            before=found.before,
            after=found.after,
            head=found.head,
            branch=found.branch,
            added=tuple(runs_of(found.added)),
            removed=tuple(runs_of(found.removed)),
            new_frames=tuple(runs_of(found.new_frames)),
            popped=tuple(runs_of(found.popped)),
            branches={name: DiffPart(*pair) for name, pair in found.branches.items()},
            checkpoints={name: DiffPart(*pair) for name, pair in found.checkpoints.items()},
            budget=(budget_part(before), budget_part(after)),
            same=found.is_empty,
        )
    )


def _say(session: str, found: Diff) -> None:
    say(styled(f"session {shown_id(session)} · from record {found.before:,} to {found.after:,}", "bold"))
    if found.is_empty:
        say("the same")
    if found.head[0] != found.head[1]:
        say(f"head: {_frame(found.head[0])} -> {_frame(found.head[1])}")
    if found.branch[0] != found.branch[1]:
        say(f"branch: {brief(found.branch[0] or 'none')} -> {brief(found.branch[1] or 'none')}")
    _say_frames("+", "green", "on the stack", found.added)
    _say_frames("-", "red", "not on the stack any more", found.removed)
    _say_frames("*", "cyan", "new, on any branch", found.new_frames)
    _say_frames("x", "yellow", "held by nothing any more", found.popped)
    _say_names("branch", found.branches)
    _say_names("checkpoint", found.checkpoints)
    before, after = (pressure(each) for each in found.budget)
    say(f"window: {before} -> {after}" if before != after else f"window: {before}")


def _frame(frame: int | None) -> str:
    return f"frame {frame}" if frame else "empty"


def _say_frames(sign: str, colour: str, what: str, frames: tuple[int, ...]) -> None:
    if frames:
        say(styled(f"{sign} {counted(len(frames), 'frame')} {what}: {shown_runs(runs_of(frames))}", colour))


def _say_names(what: str, names: Mapping[str, tuple[int | None, int | None]]) -> None:
    for name, (before, after) in names.items():
        told = f"made at {_frame(after)}" if before is None else f"{_frame(before)} -> {_frame(after)}"
        say(f"{what} {brief(name)}: {'deleted' if after is None else told}")
