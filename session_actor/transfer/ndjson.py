"""Our own export: JSON Lines from which a session is made again as it was.

The first line says what it is, the last one is complete only when all others are there:

    {"form":"session-actor","version":1,"session":…,"created_at_us":…,"metadata":…,"source":…,"seq":…}
    {"at_us":…,"frame":{…},"n":1}        a frame, as its record has it; every frame that is there, by id, parents first
    {"sealed":{…},"frames":…,"hash":…,"ended":…}    branches, checkpoints, head, pins, compactions … ; how many frames

Lines of frames are numbered, and the last line has a hash over them, so that one that is missing shows, and where.
Values are written as in records: a text with lone surrogates is {"$esc":…}. A field that a reader does not know is
passed over; a higher version is refused.
"""

from __future__ import annotations

from contextlib import aclosing
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from session_actor.blocks import NULL, Free, ToolResult
from session_actor.events import CopiedFrame, HistorySealed, Source
from session_actor.given import content
from session_actor.given.content import checked
from session_actor.persistence.errors import ValueUnreadable
from session_actor.persistence.format import values
from session_actor.persistence.format.frame_index import MAX_FRAME
from session_actor.state.history import pushed_again
from session_actor.state.times import FIRST_US, LAST_US

from .fields import UnknownName
from .pieces import check_weight
from .taking import bare

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from session_actor.events import Pushed

    from .source import History

FORM: Final = "session-actor"
VERSION: Final = 1


class Head(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The first line."""

    form: str
    version: int
    session: str
    created_at_us: int | None = None
    """When the session was made, microseconds since the epoch; None: not known."""
    metadata: Free = NULL
    source: Source | None = None
    """What its history was copied from; None: nothing."""
    seq: int = 0
    """How many records it had."""


class FrameLine(CopiedFrame, frozen=True, gc=False, omit_defaults=True):
    """The line of a frame."""

    n: int = 0
    """Which one of them it is, from 1; 0: its writer did not count."""


class Tail(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The last line."""

    sealed: HistorySealed
    frames: int = 0
    """How many lines with frames there are."""
    hash: str = ""
    """`hash_of_lines` over them as hexadecimal digits; empty: its writer made none."""
    ended: str | None = None
    """Why the session ended; None: it lives."""


class _Keys(msgspec.Struct, frozen=True, gc=False):
    """Enough of a line to tell which it is."""

    form: str | None = None
    frame: Free = NULL
    sealed: Free = NULL


AnyLine: TypeAlias = "Head | FrameLine | Tail"
"""What a line is."""


def hash_of_lines() -> blake2b:
    """A BLAKE2b-128 that is fed with the lines of frames, without their ends."""
    return blake2b(digest_size=16)


async def lines_of_export(history: History) -> AsyncGenerator[bytes]:
    """The lines of an export, each with its end. Raises what reading frames raises."""
    head = Head(FORM, VERSION, history.session, history.created_at_us, history.metadata, history.source, history.seq)
    yield values.encode_record_data(head) + b"\n"
    frames, lines = 0, hash_of_lines()
    async with aclosing(history.frames()) as every:
        async for frame in every:
            frames += 1
            event = bare(pushed_again(history.table, frame, place=False))
            line = values.encode_record_data(FrameLine(frame.at_us, event, frames))
            lines.update(line)
            yield line + b"\n"
    yield values.encode_record_data(Tail(history.sealed, frames, lines.hexdigest(), history.ended)) + b"\n"


def read_line(data: bytes) -> AnyLine:
    """What a line is, checked. Raises what `fields.UNREADABLE` names."""
    try:
        keys = values.decode_typed(data, _Keys)
        if keys.frame is not NULL:
            return _checked_frame(values.decode_typed(data, FrameLine))
        if keys.sealed is not NULL:
            return values.decode_typed(data, Tail)
        if keys.form == FORM:
            return _checked_head(values.decode_typed(data, Head))
    except ValueUnreadable:
        raise UnknownName("not a line of this form") from None
    raise UnknownName("an unknown kind of line")


def _checked_head(head: Head) -> Head:
    if not head.session:
        raise UnknownName("a session without a name")
    return msgspec.structs.replace(head, metadata=checked(content.free, head.metadata, "metadata"))


def _checked_frame(line: FrameLine) -> FrameLine:
    event = bare(line.frame)
    if not 0 < event.id <= MAX_FRAME or not (event.parent is None or 0 < event.parent < event.id):
        raise UnknownName("a frame whose id or parent cannot be")
    if not FIRST_US <= line.at_us <= LAST_US:
        raise UnknownName("a time that no record can have")
    if event.turns is None and (event.artifacts or event.retracted is not None):
        raise UnknownName("a frame of texts that notes what a text cannot")
    if event.turns is not None:
        event = msgspec.structs.replace(event, turns=checked(content.turns, event.turns, "turns"))
        if not all(_is_bound(event, block) for turn in event.turns or () for block in turn.blocks):
            raise UnknownName("a result that names no call")
    if event.instructions is not None:
        offered = (*event.instructions.native_tools, *event.instructions.tools)
        tools, native_tools = checked(content.tools, offered, "instructions.tools")
        instructions = msgspec.structs.replace(event.instructions, tools=tools, native_tools=native_tools)
        event = msgspec.structs.replace(event, instructions=instructions)
    check_weight(event)
    return msgspec.structs.replace(line, frame=event)


def _is_bound(event: Pushed, block: object) -> bool:
    return not isinstance(block, ToolResult) or (block.ref is not None and 0 < block.ref.frame <= event.id)
