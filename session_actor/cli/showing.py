"""What `session-actor show DIR ID` does: what was said in a session, frame by frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .asking import ended_by, moment_at, replayed
from .codes import FOUND, counted, note, say
from .harmless import one_line, shown_id
from .lines import ShownSession
from .output import fullness, iso, styled, tell, weighed, when
from .telling import (
    budget_part,
    content_lines,
    frame_part,
    frames_of,
    head_line,
    json_of,
    raw_text,
    stack_ids,
    text_in,
    usage_part,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from session_actor.frames import Frame
    from session_actor.replay import Moment


class Asked(NamedTuple):
    """The options of the command; see there."""

    at: str | None
    on: str | None
    last: int | None
    ids: tuple[int, ...]
    find: str | None
    profiles: str | None
    as_json: bool


def run(directory: str, session: str, asked: Asked) -> int:
    """Run the command; see there."""
    with replayed(directory, session, asked.profiles) as replay:
        moment = moment_at(replay, asked.at)
        (_tell_session if asked.as_json else _say_session)(moment, asked.on)
        count = 0
        for frame in _frames(moment, asked):
            count += 1
            if asked.as_json:
                tell(frame_part(frame))
            else:
                _say_frame(frame)
        if not asked.as_json and asked.find is not None:
            note(f"{counted(count, 'frame')} found")
        return ended_by(replay) or (FOUND if asked.find is not None and not count else 0)


def _frames(moment: Moment, asked: Asked) -> Iterator[Frame]:
    if asked.ids:
        return _searched((moment.get(frame) for frame in asked.ids), asked.find)
    return _searched(frames_of(moment.state.table, stack_ids(moment.state, asked.on, asked.last)), asked.find)


def _searched(frames: Iterator[Frame], find: str | None) -> Iterator[Frame]:
    if find is None:
        return frames
    wanted = find.casefold()
    return (frame for frame in frames if wanted in text_in(frame).casefold())


def _say_frame(frame: Frame) -> None:
    say("")
    say(head_line(frame))
    for line in content_lines(frame):
        say(line)


def _tell_session(moment: Moment, on: str | None) -> None:
    tell(
        ShownSession(
            id=moment.session,
            seq=moment.seq,
            at=iso(moment.at_us) or "",
            created_at=iso(moment.state.created_at_us),
            branch=on or moment.branch,
            head=moment.state.head_of(on),
            frames=len(moment.stack(on)),
            metadata=json_of(moment.state.raw_metadata),
            ended=moment.ended,
            usage=usage_part(moment.usage),
            budget=budget_part(weighed(moment, on)),
        )
    )


def _say_session(moment: Moment, on: str | None) -> None:
    say(styled(f"session {shown_id(moment.session)}", "bold") + f" · record {moment.seq:,} · {when(moment.at_us)}")
    say(f"made {when(moment.state.created_at_us)} · {place_of(moment, on)} · {counted(len(moment.stack(on)), 'frame')}")
    say(fullness(moment, on))
    metadata = json_of(moment.state.raw_metadata)
    if metadata is not None:
        say(f"metadata {one_line(raw_text(moment.state.raw_metadata))}")
    usage = moment.usage
    if usage is not None and (usage.input_tokens or usage.output_tokens):
        say(f"charged {usage.input_tokens:,} tokens in, {usage.output_tokens:,} out")
    if moment.ended is not None:
        say(f"ended: {one_line(moment.ended)}")


def place_of(moment: Moment, on: str | None = None) -> str:
    """Where the head is."""
    branch, head = on or moment.branch, moment.state.head_of(on)
    where = "on no branch" if branch is None else f"on {one_line(branch)}"
    return f"{where}, at frame {head}" if head is not None else f"{where}, empty"
