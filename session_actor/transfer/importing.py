"""Importing a file into sessions of a service."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from session_actor.errors import RecordTooLarge
from session_actor.given.given_paths import must_be_file, path_of

from .claude_code import read_claude_code
from .destination import Destination
from .errors import unknown_form
from .exports_in import restore_exports
from .fields import UNREADABLE, reason_of
from .forms import FORMS, form_of
from .growing import Growing
from .lines import lines_of, must_be_utf8
from .messages import read_messages
from .notes import Notes, NotWhole
from .pi import read_pi
from .pieces import Begun, Labelled, Passed, Said, checked_piece

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, AsyncIterator

    from session_actor.service.service import SessionService

    from .lines import Line
    from .pieces import AnyPiece, Planted


class ImportReport(msgspec.Struct, frozen=True):
    """What an import did."""

    form: str
    """The form that the file has."""
    added: int
    """Frames that are new."""
    skipped: int
    """Frames that were there already."""
    unread: list[tuple[int, str]]
    """Lines that could not be read: the byte where each begins, and why. Everything else was imported. Of very many the
    first 1,000 are here."""
    sessions: list[str]
    """The ids of the sessions, in the order of the file."""
    passed: int = 0
    """Lines that say nothing of a conversation: settings, bookkeeping."""
    unread_count: int = 0
    """How many lines could not be read."""
    not_whole: list[NotWhole] = []
    """Where an export of our own is not what was written: lines that are missing, doubled, not in their place, or
    changed. What is there was imported. Of very many the first 1,000 are here."""
    not_whole_count: int = 0
    """How many of those there are."""
    left_out: dict[str, int] = {}
    """What messages had beside their words and a frame has no place for, and how often: `annotations`, `audio` (its
    transcript is there), `name`, `context` and `citations` of documents, `usage` that could not be read,
    `collapsed` (a summary of a part, which is there)."""


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
        session_id: the session to import into. None: as the file calls it, else the name of the file. Of a file of
            several bodies or exports they are `<session_id>-1`, `<session_id>-2` …; of one of several lists the first
            has the name itself, and the second is `<session_id>-2`.

    Raises:
        InvalidArgument: the form is none of these; or `path` is no path, or that of a pipe or a device.
        TranscriptUnreadable: the file has no form that is known, or is not of this one, or is not UTF-8 at all.
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
    await must_be_utf8(path)
    found = await form_of(path) if form is None else form
    notes = Notes()
    async with aclosing(lines_of(path)) as lines, Destination(service, path, session_id) as to:
        if found == "ndjson":
            await restore_exports(lines, to, notes)
        else:
            async with aclosing(_pieces(path, lines, found, notes)) as pieces:
                await _grow(pieces, to, notes)
    return _report(found, to, notes)


def _report(form: str, to: Destination, notes: Notes) -> ImportReport:
    return ImportReport(
        form,
        to.added,
        to.skipped,
        notes.unread,
        to.sessions,
        notes.passed,
        notes.unread_count,
        notes.not_whole,
        notes.not_whole_count,
        dict(notes.left_out),
    )


def _pieces(path: str, lines: AsyncIterator[Line], form: str, notes: Notes) -> AsyncGenerator[AnyPiece]:
    if form == "pi":
        return read_pi(lines, notes)
    if form == "claude-code":
        return read_claude_code(lines, notes)
    return read_messages(path, form, notes)


async def _grow(pieces: AsyncIterator[AnyPiece], to: Destination, notes: Notes) -> None:
    """Import a foreign transcript. No session is made for what says nothing."""
    name = to.named(None)
    growing: Growing | None = None
    before: list[Planted] = []
    async for piece in pieces:
        if isinstance(piece, Begun):
            await _finish(growing, to)
            growing, name, before = None, to.name_of(piece), []
            continue
        before.append(_kept(piece, notes))
        if growing is None:
            if isinstance(before[-1], Passed | Labelled):
                continue
            growing = await Growing.begin(await to.open(name))
        for each in before:
            _plant(each, growing, notes)
        before = []
        await growing.send_ready()
    await _finish(growing, to)


def _plant(piece: Planted, growing: Growing, notes: Notes) -> None:
    try:
        growing.plant(piece)
    except RecordTooLarge as error:
        notes.add(getattr(piece, "offset", 0), reason_of(error))


def _kept(piece: Planted, notes: Notes) -> Planted:
    """A piece as it can be kept; of one that cannot be, its place, for what stands on it."""
    try:
        return checked_piece(piece)
    except UNREADABLE as error:
        notes.add(getattr(piece, "offset", 0), reason_of(error))
    return Passed(keys=piece.keys, parent=piece.parent, lane=piece.lane) if isinstance(piece, Said) else piece


async def _finish(growing: Growing | None, to: Destination) -> None:
    if growing is not None:
        await growing.finish()
        await to.close(growing)
