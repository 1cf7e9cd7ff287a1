"""Decisions about requests: build one, and note that one was refused. Each builds one event and changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.compaction.overlays import overlay_at
from session_actor.errors import InvalidArgument
from session_actor.events import Requested, RequestRefused
from session_actor.given.content import checked, count, flag
from session_actor.given.plain import shown
from session_actor.ledger.notes import TOOL
from session_actor.requests.canonical import chained, sealed
from session_actor.requests.own import owned
from session_actor.requests.request import Note, Request
from session_actor.requests.tools import is_offered
from session_actor.state.calls import pending
from session_actor.state.weight import SMALL, weight_of_request

from .errors import ContextOverflow, NothingToSend, RequestForgotten
from .fitting import fitted, measured
from .request_options import ask
from .requests_made import astray, failed, mark_of
from .thinking_room import with_room_to_think
from .window import window_of

if TYPE_CHECKING:
    from session_actor.commands import BuildRequest, RequestFailed
    from session_actor.frames import Frame
    from session_actor.state.decide import Decision
    from session_actor.state.state import State

    from .fitting import Fit
    from .request_options import Ask

RENDERER: Final = 4
"""The version of the rules by which requests are rendered; a record says by which its request was."""


def build_request(state: State, command: BuildRequest, head: int | None) -> Decision:
    """A request for what is at the head, and the record that it was given out."""
    asked = _ask(state, command, head)
    fit = fitted(state, asked)
    request, digest = _assembled(state, asked, fit, state.seq + 1)
    mark = fit.mark
    event = Requested(
        fit.quote,
        fit.allowance,
        request.max_output_tokens,
        digest,
        mark if mark is not None and mark_of(state, mark.number) is None else None,
        asked.wanted_output,
        asked.extra,
        RENDERER,
        command.on,
    )
    return event, weight_of_request(event), request


def request_again(state: State, command: BuildRequest, key: str, seq: int) -> Request:
    """The request of a record, byte for byte, from the same command. Raises `RequestForgotten`."""
    event = state.requests.get(seq)
    if event is None:
        raise RequestForgotten(key)
    asked = _ask(state, command, event.quote.head)
    mark = mark_of(state, event.quote.view)
    overlay = overlay_at(state, event.quote.head, seq)
    generation = 0 if overlay is None else overlay.generation
    if (mark is None and event.quote.view) or event.quote.key.generation != generation:
        raise RequestForgotten(key)
    request, digest = _assembled(state, asked, measured(state, asked, mark, overlay, seq), seq)
    if digest != event.hash:  # a frame was pinned since, or is gone
        raise RequestForgotten(key)
    return request


def request_of(state: State, event: Requested, seq: int) -> tuple[Request, str]:
    """The request of record `seq`, made again in the state before it, and its hash; without what was lent to it.

    Nothing is decided again: what it shows is what the record says. Raises `RequestForgotten` when the state does not
    know that, `NothingToSend`.
    """
    asked, fit = _recorded(state, event, seq)
    return _assembled(state, asked, fit, seq)


def fit_of(state: State, event: Requested, seq: int) -> Fit:
    """What the request of record `seq` showed; as `request_of`."""
    return _recorded(state, event, seq)[1]


def _recorded(state: State, event: Requested, seq: int) -> tuple[Ask, Fit]:
    quote = event.quote
    top, mark = state.table.get(quote.head), event.made or mark_of(state, quote.view)
    overlay = overlay_at(state, quote.head) if top is not None else None
    generation = 0 if overlay is None else overlay.generation
    if top is None or (mark is None and quote.view) or quote.key.generation != generation:
        raise RequestForgotten(str(seq))
    asked = ask(state, top, quote.key.dialect, quote.key.model, event.wanted_output, event.extra)
    return asked, measured(state, asked, mark, overlay)


def request_failed(state: State, command: RequestFailed, head: int | None) -> Decision:
    """That a request was refused, and what follows for the next ones."""
    del head
    seq = checked(count, command.request, "request")
    event = state.requests.get(seq)
    if event is None:
        raise InvalidArgument("request", f"{shown(seq)} is none of this session's newest requests; build another")
    tokens = None if command.tokens is None else checked(count, command.tokens, "tokens")
    limit = None if command.limit is None else checked(count, command.limit, "limit")
    if limit is not None and checked(flag, command.with_output, "with_output"):
        limit = max(limit - event.max_output_tokens, limit // 4)
    too_long = checked(flag, command.too_long, "too_long")
    refused = RequestRefused(seq, too_long, tokens, limit, astray(state, seq))
    if too_long and not _shorter(state, event, refused):
        refused = msgspec.structs.replace(refused, shorter=False)
    return refused, SMALL, None


def _shorter(state: State, event: Requested, refused: RequestRefused) -> bool:
    """Whether the next request for the same frame will show less."""
    quote = event.quote
    top = state.table.get(quote.head)
    if top is None:
        return True
    asked = ask(state, top, quote.key.dialect, quote.key.model, event.wanted_output, event.extra)
    try:
        fit = fitted(state, asked._replace(learned=failed(state.learned, event, refused)))
    except (ContextOverflow, NothingToSend):
        return False
    return fit.quote.messages < quote.messages


def _ask(state: State, command: BuildRequest, head: int | None) -> Ask:
    asked = ask(
        state,
        _top(state, head),
        command.dialect,
        command.model,
        command.max_output_tokens,
        command.extra,
        command.ephemeral,
    )
    return with_room_to_think(asked)


def _top(state: State, head: int | None) -> Frame:
    frame = None if head is None else state.table.get(head)
    if frame is None:
        raise NothingToSend
    return frame


def _assembled(state: State, asked: Ask, fit: Fit, seq: int) -> tuple[Request, str]:
    """The request, every level of it the caller's own, and its hash."""
    rendered, renderer, model = fit.rendered, asked.renderer, asked.model
    end = rendered.piece(fit.end)
    last = end.messages if fit.sent is fit.end else rendered.messages(fit.sent)
    output = asked.output(calibrated=fit.quote.anchored)
    made = window_of(state).assembled(asked, output, rendered.tools(end))
    renderer.merge(made, asked.extra_value)
    digest = sealed(chained(rendered.done.chain, end.messages), made)
    made[renderer.MESSAGES] += owned(rendered.done.messages + last)
    request = Request(made)
    request.seq = seq
    request.dialect, request.model = asked.dialect, model
    request.head, request.generation = asked.top.id, fit.quote.key.generation
    request.input_tokens, request.max_output_tokens = fit.quote.tokens, output
    request.pending = tuple(pending(state.table, asked.top.id))
    request.omitted, request.added = rendered.done.notes(fit.sent)
    request.omitted += _tools_left_out(asked)
    return request, digest


def _tools_left_out(asked: Ask) -> tuple[Note, ...]:
    """One note for each tool of another provider's own."""
    natives = () if asked.instructions is None else asked.instructions.native_tools
    note = Note(TOOL, asked.top.configured)
    return tuple(note for tool in natives if not is_offered(tool, asked.dialect, asked.model))
