"""A moment of a session, for programs and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.events import HistoryCopied, Pushed, decode_event

from .codes import counted
from .harmless import brief, one_line, shown_id
from .lines import ReplayMoment
from .output import fullness, iso, styled, weighed, when
from .showing import place_of
from .telling import budget_part, content_lines, frame_part, head_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from session_actor.events import AnyEvent
    from session_actor.replay import Moment, Replay

_NAMES_SHOWN = 12


def moment_line(replay: Replay, moment: Moment, *, content: bool) -> ReplayMoment:
    """The moment for programs."""
    seqs = replay.seqs()
    return ReplayMoment(
        id=moment.session,
        seq=moment.seq,
        first=seqs.start,
        last=seqs.stop - 1,
        at=iso(moment.at_us) or "",
        kind=moment.kind,
        branch=moment.branch,
        head=moment.head,
        frames=len(moment.stack()),
        branches=moment.branches,
        checkpoints=moment.checkpoints,
        ended=moment.ended,
        budget=budget_part(weighed(moment)),
        frame=frame_part(moment.get(moment.head)) if content and moment.head is not None else None,
    )


def moment_text(replay: Replay, moment: Moment, *, content: bool) -> Iterator[str]:
    """The moment for people."""
    last = replay.seqs().stop - 1
    yield styled(f"session {shown_id(moment.session)} · record {moment.seq:,} of {last:,}", "bold") + (
        f" · {when(moment.at_us)} · {one_line(moment.kind)}"
    )
    record = replay.record(moment.seq)
    yield f"this record: {change_of(decode_event(record.kind, record.data))}"
    yield f"{place_of(moment)} · {counted(len(moment.stack()), 'frame')} on the stack"
    yield f"branches: {_names(moment.branches) or '-'}"
    yield f"checkpoints: {_names(moment.checkpoints) or '-'}"
    yield fullness(moment)
    if moment.ended is not None:
        yield "ended" + (f": {one_line(moment.ended)}" if content else "")
    if moment.head is not None:
        frame = moment.get(moment.head)
        yield ""
        yield head_line(frame)
        if content:
            yield from content_lines(frame)


def _names(names: dict[str, int] | dict[str, int | None]) -> str:
    shown = [f"{brief(name, 32)} {frame or 'empty'}" for name, frame in list(names.items())[:_NAMES_SHOWN]]
    more = len(names) - _NAMES_SHOWN
    return ", ".join(shown) + (f" and {more} more (see `session-actor tree`)" if more > 0 else "")


def change_of(event: AnyEvent) -> str:
    """What a record did, without a word of what was said."""
    told = ""
    if isinstance(event, Pushed):
        told = f"frame {event.id} was pushed"
        told += f" and branch {event.new_branch} made" if event.new_branch else ""
        told += f" on {event.branch}" if event.branch else ""
    elif isinstance(event, HistoryCopied):
        told = f"{counted(len(event.frames), 'frame')} were copied"
    else:
        told = _of_names(event) or event.kind.replace("_", " ")
    return one_line(told)


def _of_names(event: AnyEvent) -> str | None:  # noqa: C901, PLR0911, PLR0912 - one line a kind
    from session_actor import events

    match event:
        case events.Popped(head, to, n):
            return f"{counted(n, 'frame')} popped: from {head} to {to or 'empty'}"
        case events.Moved(to, branch):
            where = "the empty stack" if to is None else f"frame {to}"
            return f"the head went to {where}" + (f" on {branch}" if branch else ", on no branch")
        case events.Branched(name, at):
            return f"branch {name} was made, empty" if at is None else f"branch {name} was made at frame {at}"
        case events.Checkpointed(name, frame):
            return f"checkpoint {name} was set at frame {frame}"
        case events.Renamed(name, new):
            return f"{name} was renamed to {new}"
        case events.NameDeleted(name):
            return f"{name} was deleted"
        case events.Requested():
            quote = event.quote
            return f"a request was given out: {quote.key.dialect}, {quote.key.model}, up to frame {quote.head}"
        case events.RequestRefused(request, too_long):
            return f"the request of record {request} was refused" + (" as too long" if too_long else "")
        case events.Compacted(generation, covered):
            return f"compaction {generation}: a summary stands for the frames up to {covered}"
        case events.Uncompacted(generation):
            return f"compaction {generation} was taken back"
        case events.Pinned(frame, pinned):
            return f"frame {frame} was {'pinned' if pinned else 'unpinned'}"
        case events.Gap(first):
            return f"records from {first} up to here are lost"
        case events.Pruned(dropped):
            return f"{counted(sum(high - low + 1 for low, high in dropped), 'frame')} pruned"
        case events.Created():
            return "the session was made"
        case events.Ended():
            return "the session ended"
        case _:
            return None
