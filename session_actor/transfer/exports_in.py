"""Exports of our own on their way back: one in a file, or several one after the other."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, NamedTuple

from session_actor.blocks import thawed

from .errors import TranscriptUnreadable, UnfitFrame
from .lines import size_of
from .ndjson import VERSION, FrameLine, Head, Tail, read_line
from .reading import said_in
from .restoring import Restoring
from .source import state_in
from .wholeness import Wholeness

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from .destination import Destination
    from .lines import Line
    from .ndjson import AnyLine
    from .notes import Notes


class _Read(NamedTuple):
    """A line, and where it begins."""

    offset: int
    data: bytes
    line: AnyLine


async def restore_exports(lines: AsyncIterator[Line], to: Destination, notes: Notes) -> None:
    """Import all exports of a file.

    Raises `TranscriptUnreadable` for a newer version, and when no line is one of an export; and what changes raise.
    """
    part = _Part(to, notes)
    async with aclosing(said_in(lines, notes, _read)) as every:
        async for read in every:
            if part.is_over(read):
                await part.finish(read.offset)
                part = _Part(to, notes)
            await part.take(read)
    await part.finish(await size_of(to.path))
    if not to.sessions:
        raise TranscriptUnreadable(to.path, 0, "no line of it is one of our own export: name another form")


def _read(data: bytes, offset: int) -> Iterator[_Read]:
    yield _Read(offset, data, read_line(data))


class _Part:
    """One export."""

    def __init__(self, to: Destination, notes: Notes) -> None:
        self._to = to
        self._notes = notes
        self._whole = Wholeness(notes)
        self._head: Head | None = None
        self._head_data = b""
        self._tail: Tail | None = None
        self._tail_offset = 0
        self._restoring: Restoring | None = None

    def is_over(self, read: _Read) -> bool:
        """Whether a line is of another export than those before it; the first line of that may be missing."""
        line, tail = read.line, self._tail
        if isinstance(line, Head):
            return self._restoring is not None or tail is not None or self._head_data not in {b"", read.data}
        is_late = tail is None or not isinstance(line, FrameLine) or self._whole.newest < line.n <= tail.frames
        return not is_late

    async def take(self, read: _Read) -> None:
        """The next line."""
        offset, data, line = read
        if isinstance(line, Head):
            self._begin(line, data, offset)
        elif isinstance(line, Tail):
            self._close(line, offset)
        else:
            if self._tail is not None:
                self._notes.lacks(offset, "order")
            await self._add(line, data, offset)

    def _begin(self, head: Head, data: bytes, offset: int) -> None:
        if head.version > VERSION:
            why = f"an export of version {head.version}, this one reads up to {VERSION}: upgrade session-actor"
            raise TranscriptUnreadable(self._to.path, offset, why)
        if self._head is not None:
            self._notes.lacks(offset, "order")
        self._head, self._head_data = head, data

    def _close(self, tail: Tail, offset: int) -> None:
        if self._tail is not None:
            self._notes.lacks(offset, "order")
            return
        if self._head is None and self._restoring is None:
            self._notes.lacks(offset, "head")
        self._tail, self._tail_offset = tail, offset

    async def _add(self, line: FrameLine, data: bytes, offset: int) -> None:
        if self._restoring is None:
            if self._head is None:
                self._notes.lacks(offset, "head")
            self._restoring = await self._open()
        self._whole.frame(line, data, offset)
        try:
            await self._restoring.add(line)
        except UnfitFrame as error:
            self._notes.add(offset, str(error))

    async def _open(self) -> Restoring:
        head, to = self._head, self._to
        name = to.named(None if head is None else head.session)
        if name in to.sessions:
            name = f"{name}-{len(to.sessions) + 1}"
        session = await to.open(name, None if head is None else thawed(head.metadata))
        return Restoring(session, await state_in(session))

    async def finish(self, end: int) -> None:
        """It is over. `end`: the byte where the next one begins, or the file ends."""
        if self._restoring is None and self._head is not None:
            self._restoring = await self._open()
        restoring, tail = self._restoring, self._tail
        if restoring is None:
            return
        self._whole.end(tail, end if tail is None else self._tail_offset)
        await restoring.finish(None if tail is None else tail.sealed)
        await self._to.close(restoring)
        if tail is not None and tail.ended is not None and (await state_in(restoring.session)).ended is None:
            await self._to.service.end(restoring.session.id, tail.ended, timeout_s=None)
