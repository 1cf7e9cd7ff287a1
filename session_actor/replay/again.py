"""Requests made again: what was sent at any point, and whether it is what was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.errors import FrameUnknown, InvalidArgument
from session_actor.given.private import as_repr
from session_actor.requests.request import Request
from session_actor.window.errors import NothingToSend, RequestForgotten
from session_actor.window.requesting import RENDERER, request_of

if TYPE_CHECKING:
    from session_actor.events import Requested
    from session_actor.state.state import State

_FORGOTTEN: Final = "the frame, the trim or the compaction that it showed is not known any more"
_PROFILE: Final = (
    "it asked for an answer of {} tokens, and this one for {}: the model's profile is another; give the profiles that "
    "the service had (models=…, or --profiles FILE)"
)


class Rendered(msgspec.Struct, frozen=True, eq=False):
    """A request, made again from the journal, without what was lent to it alone (`ephemeral`)."""

    seq: int
    """Its record."""
    request: Request | None
    """None: it cannot be made any more; `why` tells."""
    recorded_hash: str
    """That of the request as it was given out, likewise without what was lent to it."""
    hash: str
    """That of this one; `""`: there is none."""
    renderer: int
    """The version of the rules by which it was rendered then."""
    why: str
    """Why it is not the same; `""`: it is."""

    @property
    def matches(self) -> bool:
        """Whether it is, byte for byte, what was given out."""
        return self.hash == self.recorded_hash

    def __repr__(self) -> str:
        """Numbers and hashes only."""
        return f"Rendered(seq={self.seq}, hash={self.hash!r}, matches={self.matches}, why={self.why!r})"

    __rich_repr__ = as_repr


def made_again(state: State, event: Requested, seq: int) -> Rendered:
    """The request of record `seq`. `state`: that before it."""
    try:
        request, digest = request_of(state, event, seq)
    except (RequestForgotten, NothingToSend, FrameUnknown, LookupError):
        return Rendered(seq, None, event.hash, "", event.renderer, _renderer(event) or _FORGOTTEN)
    except InvalidArgument as error:
        return Rendered(seq, None, event.hash, "", event.renderer, _renderer(event) or str(error))
    why = "" if digest == event.hash else _renderer(event) or _difference(event, request)
    return Rendered(seq, request, event.hash, digest, event.renderer, why)


def _renderer(event: Requested) -> str:
    if event.renderer == RENDERER:
        return ""
    return f"it was rendered by version {event.renderer} of the rules, and this is version {RENDERER}"


def _difference(event: Requested, request: Request) -> str:
    if request.max_output_tokens != event.max_output_tokens:
        return _PROFILE.format(event.max_output_tokens, request.max_output_tokens)
    return (
        "its bytes are others, by the same version of the rules: the profile of the model may be another (give those "
        "that the service had: models=…, or --profiles FILE); if none was given, keep a copy of the store and report "
        "this"
    )
