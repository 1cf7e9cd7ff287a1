"""Importing a file into sessions of a service."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing
from pathlib import PurePath
from typing import TYPE_CHECKING

import msgspec

from session_actor.blocks import thawed
from session_actor.names import NAME_LIMIT

from .claude_code import read_claude_code
from .errors import TranscriptUnreadable, UnfitFrame, unknown_form
from .fields import UNREADABLE, reason_of
from .forms import FORMS, form_of
from .growing import Growing
from .lines import lines_of, size_of, too_long
from .messages import read_messages
from .ndjson import VERSION, Head, Tail, read_line
from .paths import must_be_file, path_of
from .pi import read_pi
from .pieces import Begun, Unread, checked_piece
from .restoring import Restoring
from .source import state_in

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, AsyncIterator

    from session_actor.events import CopiedFrame
    from session_actor.service import SessionService

    from .lines import Line
    from .pieces import AnyPiece


class ImportReport(msgspec.Struct, frozen=True):
    """What an import did."""

    form: str
    """The form that the file has."""
    added: int
    """Frames that are new."""
    skipped: int
    """Frames that were there already."""
    unread: list[tuple[int, str]]
    """Lines that could not be read: the byte where each begins, and why. Everything else was imported."""
    sessions: list[str]
    """The ids of the sessions, in the order of the file."""
    passed: int = 0
    """Lines that say nothing of a conversation: settings, bookkeeping."""


async def import_transcript(
    service: SessionService,
    path: str | os.PathLike[str],
    form: str | None = None,
    session_id: str | None = None,
) -> ImportReport:
    """Import a file into one session, or one for each conversation that it holds; those that are missing are made.

    What is there already is not added again: the same file, also when it has grown, adds what is new, and an import
    that was cut short is finished. A session that was gone on with since keeps its head: what is new in the file gets a
    branch. Nothing of a file shows in its session before all of it is there.

    Args:
        service: a running one.
        path: the file. It is read in pieces, off the loop.
        form: `ndjson` (our own export), `pi`, `claude-code`, `openai-chat`, `anthropic`; None: as it looks.
        session_id: the session to import into; of a file of several conversations they are `<session_id>-1`,
            `<session_id>-2` … None: as the file calls it, else the name of the file.

    Raises:
        InvalidArgument: the form is none of these; or `path` is no path, or that of a pipe or a device.
        TranscriptUnreadable: the file has no form that is known, or is not of this one.
        SessionDiverged: the session has other frames than the export of it. What came before stays added.
        SessionChanged: the session was changed meanwhile, again and again. Import again.
        SessionBusy: an exchange is open in the session.
        SessionEnded: there is something new, and the session has ended.
        OSError: the file cannot be read.
        What changes of a session raise: BacklogFull, StoreDegraded, NotDurable, ServiceClosed, UnusableId …

    Cancelling stops it: what was added stays, as after a crash.
    """
    if form is not None and form not in FORMS:
        raise unknown_form(form, FORMS)
    path = path_of(path, "path")
    await asyncio.to_thread(must_be_file, path, "path")
    found = await form_of(path) if form is None else form
    unread = Unread()
    task = _Import(service, path, session_id)
    if found == "ndjson":
        async with aclosing(lines_of(path)) as lines, task:
            await task.restore(lines, unread)
    else:
        async with aclosing(lines_of(path)) as lines, aclosing(_pieces(path, lines, found, unread)) as pieces, task:
            await task.grow(pieces, unread)
    return ImportReport(found, task.added, task.skipped, unread.lines, task.sessions, unread.passed)


def _pieces(
    path: str | os.PathLike[str], lines: AsyncIterator[Line], form: str, unread: Unread
) -> AsyncGenerator[AnyPiece]:
    if form == "pi":
        return read_pi(lines, unread)
    if form == "claude-code":
        return read_claude_code(lines, unread)
    return read_messages(path, form, unread)


class _Import:
    """One file on its way into one or more sessions."""

    def __init__(self, service: SessionService, path: str | os.PathLike[str], session_id: str | None) -> None:
        self._service = service
        self._path = path
        self._session_id = session_id
        self._many = 0
        self._open = AsyncExitStack()
        """The exchange of the session that is imported into."""
        self.added = self.skipped = 0
        self.sessions: list[str] = []

    async def __aenter__(self) -> None:
        """Nothing is held yet."""

    async def __aexit__(self, *_error: object) -> None:
        await self._open.aclose()

    async def grow(self, pieces: AsyncIterator[AnyPiece], unread: Unread) -> None:
        """Import a foreign transcript."""
        name = self._name(None)
        growing: Growing | None = None
        async for piece in pieces:
            if isinstance(piece, Begun):
                await self._finish(growing)
                growing, name = None, self._name(piece)
                continue
            try:
                piece = checked_piece(piece)  # noqa: PLW2901 - the same, as it can be kept
            except UNREADABLE as error:
                unread.add(getattr(piece, "offset", 0), reason_of(error))
                continue
            if growing is None:
                growing = await self._begin(name)
            await growing.plant(piece)
        await self._finish(growing)

    async def _begin(self, name: str) -> Growing:
        session = await self._service.session(name, create=True, timeout_s=None)
        if name not in self.sessions:
            self.sessions.append(name)
        await self._open.enter_async_context(session.exchange())
        return await Growing.begin(session)

    async def _finish(self, growing: Growing | None) -> None:
        if growing is not None:
            await growing.finish()
            await self._open.aclose()
            self.added += growing.planter.added
            self.skipped += growing.planter.skipped

    def _name(self, begun: Begun | None) -> str:
        """The id of the session of a conversation."""
        if begun is None or not begun.of_many:
            return self._named(None if begun is None else begun.name)
        self._many += 1
        if self._session_id is None and begun.name is not None:
            return begun.name[:NAME_LIMIT]
        return f"{self._named(None)}-{self._many}"

    def _named(self, told: str | None) -> str:
        """`told`: what the file calls it."""
        if self._session_id is not None:
            return self._session_id
        return (told or PurePath(self._path).stem)[:NAME_LIMIT]

    async def restore(self, lines: AsyncIterator[Line], unread: Unread) -> None:
        """Import our own export, or several one after the other."""
        part = _Part()
        async for offset, _, data in lines:
            if data is None:
                unread.add(offset, too_long())
                continue
            if not data.strip():
                continue
            try:
                line = read_line(data)
            except UNREADABLE as error:
                unread.add(offset, reason_of(error))
                continue
            if isinstance(line, Head) or part.tail is not None:  # without a head: its line cannot be read
                await self._finish_restoring(part, offset, unread)
                part = _Part(self._checked(line, offset) if isinstance(line, Head) else None)
            if isinstance(line, Head):
                continue
            if isinstance(line, Tail):
                part.tail = line
            else:
                part.restoring = part.restoring or await self._restoring(part.head)
                await self._add(part.restoring, line, offset, unread)
        await self._finish_restoring(part, await size_of(self._path), unread)
        if not self.sessions:
            raise TranscriptUnreadable(str(self._path), 0, "no line of it is one of our own export: name another form")

    def _checked(self, head: Head, offset: int) -> Head:
        if head.version > VERSION:
            why = f"an export of version {head.version}, this one reads up to {VERSION}: upgrade session-actor"
            raise TranscriptUnreadable(str(self._path), offset, why)
        return head

    async def _restoring(self, head: Head | None) -> Restoring:
        name = self._named(None if head is None else head.session)
        if name in self.sessions:
            name = f"{name}-{len(self.sessions) + 1}"
        metadata = None if head is None else thawed(head.metadata)
        session = await self._service.session(name, create=True, metadata=metadata, timeout_s=None)
        self.sessions.append(name)
        await self._open.enter_async_context(session.exchange())
        return Restoring(session, await state_in(session))

    async def _add(self, restoring: Restoring, copied: CopiedFrame, offset: int, unread: Unread) -> None:
        try:
            await restoring.add(copied)
        except UnfitFrame as error:
            unread.add(offset, str(error))

    async def _finish_restoring(self, part: _Part, end: int, unread: Unread) -> None:
        """`end`: the byte where the export ends."""
        restoring, tail = part.restoring, part.tail
        if restoring is None and part.head is not None:
            restoring = await self._restoring(part.head)
        if restoring is None:
            return
        if tail is None:
            unread.add(end, "the last line is missing, and with it the names of branches")
        await restoring.finish(None if tail is None else tail.sealed)
        await self._open.aclose()
        self.added += restoring.added
        self.skipped += restoring.skipped
        if tail is not None and tail.ended is not None and (await state_in(restoring.session)).ended is None:
            await self._service.end(restoring.session.id, tail.ended, timeout_s=None)


class _Part:
    """One export of a file."""

    def __init__(self, head: Head | None = None) -> None:
        self.head = head
        self.tail: Tail | None = None
        self.restoring: Restoring | None = None
