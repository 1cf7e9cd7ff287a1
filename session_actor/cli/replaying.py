"""What `session-actor replay DIR ID` does: a moment, stepping, and why a turn was in a request or was not."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

from session_actor.events import Requested, decode_event

from .asking import ended_by, moment_at, replayed
from .codes import FOUND, Stop, counted, note, say
from .harmless import one_line, shown_id
from .lines import ReplayRequest, ReplayWhy
from .moments import moment_line, moment_text
from .output import iso, styled, tell, when
from .parts import NotePart

if TYPE_CHECKING:
    from session_actor.replay import Moment, Rendered, Replay, Why


class Asked(NamedTuple):
    """The options of the command; see there."""

    to: str | None
    requests: bool
    request: int | None
    why: int | None
    on: str | None
    dialect: str | None
    model: str | None
    content: bool
    profiles: str | None
    as_json: bool


def run(directory: str, session: str, asked: Asked) -> int:
    """Run the command; see there."""
    if asked.why is None and (asked.on or asked.dialect or asked.model):
        raise click.UsageError("--branch, --dialect and --model go with --why", click.get_current_context())
    with replayed(directory, session, asked.profiles) as replay:
        code = _answer(replay, asked)
        return ended_by(replay) or code


def _answer(replay: Replay, asked: Asked) -> int:
    if asked.why is not None:
        _say_why(_why(replay, asked.why, asked), as_json=asked.as_json)
    elif asked.request is not None:
        return _say_request(replay, replay.request(asked.request), content=asked.content, as_json=asked.as_json)
    elif asked.requests:
        _list_requests(replay, as_json=asked.as_json)
    elif asked.to is None and not asked.as_json and sys.stdin.isatty() and sys.stdout.isatty():
        from .stepping import step_through

        step_through(replay, content=asked.content)
    else:
        _say_moment(replay, moment_at(replay, asked.to), asked)
    return 0


def _say_moment(replay: Replay, moment: Moment, asked: Asked) -> None:
    if asked.as_json:
        tell(moment_line(replay, moment, content=asked.content))
        return
    for line in moment_text(replay, moment, content=asked.content):
        say(line)


def _why(replay: Replay, frame: int, asked: Asked) -> Why:
    seq = None if asked.to is None else moment_at(replay, asked.to).seq
    if asked.request is not None and seq is not None:
        raise click.UsageError("--request says when: give no --to beside it", click.get_current_context())
    return replay.why(frame, seq=seq, request=asked.request, on=asked.on, dialect=asked.dialect, model=asked.model)


def _say_why(why: Why, *, as_json: bool) -> None:
    if as_json:
        notes = tuple(NotePart(each.what, each.frame) for each in why.notes)
        tell(
            ReplayWhy(
                frame=why.frame,
                shown=why.shown,
                reason=why.reason,
                what=why.what,
                seq=why.seq,
                request=why.request,
                head=why.head,
                by=why.by,
                notes=notes,
            )
        )
        return
    what = f"the request of record {why.request}" if why.request else f"the next request after record {why.seq}"
    say(f"{what}, up to frame {why.head}:" if why.head else f"{what}, of an empty stack:")
    say(styled(one_line(why.what), "green" if why.shown else "yellow"))


def _say_request(replay: Replay, made: Rendered, *, content: bool, as_json: bool) -> int:
    body = None if made.request is None or not content else dict(made.request)
    if as_json:
        tell(_request_line(replay, made.seq, made, body))
        return 0 if made.matches else FOUND
    say(_request_text(replay, made.seq))
    if made.matches:
        say(styled(f"made again byte for byte: {made.hash}", "green"))
    else:
        again = f"made again with hash {made.hash}" if made.hash else "it cannot be made again"
        say(styled(f"not the same: recorded {made.recorded_hash}, {again}: {one_line(made.why)}", "red"))
    if body is not None:
        say(json.dumps(body, indent=2, default=_shown_bytes))
    return 0 if made.matches else FOUND


def _shown_bytes(value: object) -> object:
    return f"<{len(value)} bytes>" if isinstance(value, bytes) else repr(value)


def _list_requests(replay: Replay, *, as_json: bool) -> None:
    found = replay.requests()
    for seq in found:
        if as_json:
            tell(_request_line(replay, seq))
        else:
            say(_request_text(replay, seq))
    if not as_json:
        note(f"{counted(len(found), 'request')} of {shown_id(replay.session)}")


def _event(replay: Replay, seq: int) -> tuple[int, Requested]:
    record = replay.record(seq)
    event = decode_event(record.kind, record.data)
    if not isinstance(event, Requested):
        raise Stop(f"record {seq} is no request; --requests lists those that are")
    return record.at_us, event


def _request_line(replay: Replay, seq: int, made: Rendered | None = None, body: object = None) -> ReplayRequest:
    at_us, event = _event(replay, seq)
    quote = event.quote
    return ReplayRequest(
        seq=seq,
        at=iso(at_us) or "",
        dialect=quote.key.dialect,
        model=quote.key.model,
        head=quote.head,
        tokens=quote.tokens,
        recorded_hash=event.hash,
        matches=None if made is None else made.matches,
        hash=None if made is None else made.hash,
        why=None if made is None else made.why,
        body=None if body is None else json.loads(json.dumps(body, default=_shown_bytes)),
    )


def _request_text(replay: Replay, seq: int) -> str:
    at_us, event = _event(replay, seq)
    quote = event.quote
    told = f"record {seq} · {when(at_us)} · {quote.key.dialect} · {quote.key.model} · up to frame {quote.head}"
    return one_line(f"{told} · about {quote.tokens:,} tokens")
