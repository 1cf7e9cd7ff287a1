"""Removing the files of a session that was deleted.

Its synced tombstone keeps it dead whatever happens meanwhile, so the files go first, and the catalog forgets them last.
Whose a file is, its header says: nothing of a dead birth stays, whoever counts it, and a file of another birth does,
which an older catalog may not know.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from session_actor.persistence.errors import LineDamaged, StoreVersionTooNew
from session_actor.persistence.files.names import journal_path, snapshot_path
from session_actor.persistence.files.plain_file import NotPlain, open_plain
from session_actor.persistence.format.header import decode_snapshot_header
from session_actor.persistence.snapshots.snapshot import SLOTS, TEMPORARY

from .journal_anew import temporary_path
from .journal_walk import Walk
from .shelf import journal_numbers

if TYPE_CHECKING:
    from session_actor.persistence.catalog.catalog import Catalog
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.format.header import JournalHeader

_HEADER_BYTES = 16 * 1024


class _Births(NamedTuple):
    """The births of a session that are dead, the one that the catalog has now, and the one that the log has."""

    session: str
    dead: set[str]
    newest: str | None
    followed_by: str | None

    @property
    def is_one_alive(self) -> bool:
        """Whether there is a birth that is not dead."""
        return self.followed_by is not None or (self.newest is not None and self.newest not in self.dead)

    def has(self, birth: str) -> bool:
        """Whether a birth is dead."""
        return birth in self.dead

    def has_copy(self, header: JournalHeader) -> bool:
        """Whether a file is a copy of a dead birth, and not what the session is now."""
        return header.copies in self.dead and header.birth not in {self.newest, self.followed_by}


class Remover(NamedTuple):
    """Removes files. `journals`, `snapshots`: their folders."""

    disk: Disk
    catalog: Catalog
    journals: str
    snapshots: str

    def remove(self, session: str, birth: str, followed_by: str | None = None) -> None:
        """Remove all files of a birth that is dead; again: no effect. Blocks. Raises OSError, `CatalogCorrupt`.

        `followed_by`: the birth that the log has now, which an older catalog may not know; None: the catalog knows.
        """
        row, dead = self.catalog.get(session), {birth, *self.catalog.dead_births(session)}
        births = _Births(session, dead, None if row is None else row.birth, followed_by)
        counted = set(self.catalog.files.numbers(session, birth))
        if row is not None and row.birth == birth:
            counted.add(row.journal)
        for number in reversed(journal_numbers(self.disk, self.journals, session)):
            path = f"{self.journals}/{journal_path(session, number)}"
            if self._is_dead(path, births, is_counted=number in counted):
                self.disk.unlink(path)
        self.disk.unlink(temporary_path(self.journals, session))
        self._sync_folder(f"{self.journals}/{journal_path(session, 1)}")
        for slot in SLOTS:
            path = f"{self.snapshots}/{snapshot_path(session, slot)}"
            self.disk.unlink(path + TEMPORARY)
            if self._is_snapshot_of(path, births):
                self.disk.unlink(path)
        self._sync_folder(f"{self.snapshots}/{snapshot_path(session, SLOTS[0])}")

    def _is_dead(self, path: str, births: _Births, *, is_counted: bool) -> bool:
        """Whether a journal file is of a birth that is dead, or a copy of one that salvage did not finish."""
        try:
            walk = Walk(self.disk, path)
        except (OSError, StoreVersionTooNew):  # whose it is cannot be told
            return is_counted or not births.is_one_alive
        header = walk.header
        if header is None:
            return is_counted or (walk.there and not births.is_one_alive)
        return header.session == births.session and (births.has(header.birth) or births.has_copy(header))

    def _is_snapshot_of(self, path: str, births: _Births) -> bool:
        """Whether a file is there and is no other birth's."""
        try:
            file = open_plain(self.disk, path)
        except FileNotFoundError:
            return False
        except NotPlain:
            return True
        try:
            start = file.read(0, _HEADER_BYTES)
        finally:
            file.close()
        try:
            return births.has(decode_snapshot_header(start[: start.find(b"\n") + 1], path).birth)
        except (LineDamaged, StoreVersionTooNew):
            return True

    def _sync_folder(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.disk.sync_dir(path.rpartition("/")[0])
