"""What `session-actor tree DIR ID` does: branches, checkpoints, the head, and how full the window is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.state.history import live_runs
from session_actor.state.runs import count

from .asking import ended_by, moment_at, replayed
from .codes import counted, say
from .harmless import brief, shown_id
from .lines import TreeSegment, TreeSession
from .output import fullness, iso, styled, tell, weighed, when
from .segments import segments_of
from .showing import place_of
from .telling import budget_part

if TYPE_CHECKING:
    from session_actor.replay import Moment

    from .segments import Segment

_LEVELS_DRAWN: Final = 24
"""Lines further in are drawn no further in, with their level."""
_WEIGHED: Final = 16
"""With more branches than that, only the window of the head is weighed."""


def run(directory: str, session: str, *, at: str | None, profiles: str | None, as_json: bool) -> int:
    """Run the command; see there."""
    with replayed(directory, session, profiles) as replay:
        moment = moment_at(replay, at)
        (_tell_session if as_json else _say_session)(moment)
        pressures = _pressures(moment)
        for segment in segments_of(moment.state):
            if as_json:
                _tell_segment(segment, pressures)
            else:
                say(_drawn(segment, pressures))
        return ended_by(replay)


def _pressures(moment: Moment) -> dict[str, str]:
    """How full the window is on each branch, of a few."""
    names = moment.branches
    if len(names) > _WEIGHED:
        names = {} if moment.branch is None else {moment.branch: moment.head}
    found: dict[str, str] = {}
    for name, head in names.items():
        budget = None if head is None else weighed(moment, name)
        if budget is not None:
            found[name] = budget.pressure
    return found


def _held(moment: Moment) -> int:
    return count(live_runs(moment.state))


def _empty(moment: Moment) -> tuple[str, ...]:
    return tuple(name for name, head in moment.branches.items() if head is None)


def _tell_session(moment: Moment) -> None:
    tell(
        TreeSession(
            id=moment.session,
            seq=moment.seq,
            at=iso(moment.at_us) or "",
            branch=moment.branch,
            head=moment.head,
            frames=len(moment.state.table),
            held=_held(moment),
            budget=budget_part(weighed(moment)),
            empty=_empty(moment),
        )
    )


def _tell_segment(segment: Segment, pressures: dict[str, str]) -> None:
    tell(
        TreeSegment(
            first=segment.first,
            last=segment.last,
            parent=segment.parent,
            level=segment.level,
            branches=segment.branches,
            checkpoints=segment.checkpoints,
            head=segment.is_head,
            pressures={name: pressures[name] for name in segment.branches if name in pressures},
        )
    )


def _say_session(moment: Moment) -> None:
    say(styled(f"session {shown_id(moment.session)}", "bold") + f" · record {moment.seq:,} · {when(moment.at_us)}")
    frames = len(moment.state.table)
    free = frames - _held(moment)
    left = f", {free:,} of them held by nothing" if free else ""
    say(f"{place_of(moment)} · {counted(frames, 'frame')}{left}")
    say(fullness(moment))
    for name in _empty(moment):
        say(f"{styled(f'[{brief(name)}]', 'green')} is empty")


def _drawn(segment: Segment, pressures: dict[str, str]) -> str:
    level = min(segment.level, _LEVELS_DRAWN)
    prefix = "│ " * (level - 1) + "├─" if segment.level and segment.is_turn_off else "│ " * level
    deeper = f"(level {segment.level}) " if segment.level > level else ""
    many = segment.last - segment.first + 1
    frames = f"{segment.first}" if many == 1 else f"{segment.first}-{segment.last} ({counted(many, 'frame')})"
    labels = [styled(f"({brief(name)})", "yellow") for name in segment.checkpoints]
    for name in segment.branches:
        told = styled(f"[{brief(name)}]", "green")
        labels.append(f"{told} {styled(pressures[name], pressures[name])}" if name in pressures else told)
    if segment.is_head:
        labels.append(styled("<- head", "bold"))
    return "  ".join([f"{prefix}{'●' if segment.is_head else '○'} {deeper}{frames}", *labels])
