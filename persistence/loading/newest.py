"""The newest records of one session, read alone: for who asks whether a session is worth loading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session_actor.persistence.errors import JournalCorrupt, PersistenceError
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.format.record import decode_record
from session_actor.persistence.journals.journal import Part, read_behind
from session_actor.persistence.log.session_log import Extent

from .places import Places

if TYPE_CHECKING:
    from session_actor.persistence.engine import Engine
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.format.record import Record
    from session_actor.persistence.log.session_log import SessionLog


async def newest_records(disk: Disk, engine: Engine, session: str, log: SessionLog | None, count: int) -> list[Record]:
    """The newest records of a session of an open store, whoever has the lease; nothing is loaded for it.

    `log`: what the store knows of it; None: nothing newer than its journal. At most `count`, fewer where the others lie
    elsewhere. None at all: there is no such session, or it cannot be told so, because a file is damaged, refused, or
    moved by a cut just now: loading it tells.
    """
    known = None if log is None else (log.birth, engine.finder.places(log))

    def read() -> list[Record]:
        birth, places = known or _in_journal(engine, session)
        return [decode_record(line) for line in _newest(disk, engine.layout.journals, (session, birth), places, count)]

    try:
        return await engine.read_thread.run(read)
    except (OSError, PersistenceError):
        return []


def _in_journal(engine: Engine, session: str) -> tuple[str, Places]:
    """Birth and places of a session that is whole in its journal, as the catalog has it."""
    row = engine.catalog.get(session)
    if row is None or (session, row.birth) in engine.cutter.unforgotten:
        return "", Places(None, [], [], 0, "")
    extent = Extent(row.journal, row.bytes, row.seq, row.sum, row.crc)
    return row.birth, Places(extent, [], [], row.seq, row.sum)


def _newest(disk: Disk, journals: str, owner: tuple[str, str], places: Places, count: int) -> list[bytes]:
    """Their lines."""
    if places.memory:
        return places.memory[-count:]
    if places.log:
        return places.log[-1].behind(places.written_seq - count).lines(disk, owner[0])
    extent = places.extent
    if extent is None:
        return []
    path = f"{journals}/{journal_path(owner[0], extent.number)}"
    part, after = Part.of(extent), max(0, extent.seq - count)
    try:
        pieces = read_behind(disk, path, part, owner, after)
    except JournalCorrupt:  # the file may begin later
        if after == extent.seq - 1:
            raise
        pieces = read_behind(disk, path, part, owner, extent.seq - 1)
    return b"".join(pieces).splitlines(keepends=True)
