"""Removing the files of a session that was deleted.

Its synced tombstone keeps it dead whatever happens meanwhile, so the files go first, and the catalog forgets them last:
until then it knows their numbers. Files that an unfinished cut left behind follow the newest one without a hole. A file
that belongs to another birth of the session stays.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from .errors import LineDamaged, StoreVersionTooNew
from .header import decode_journal_header, decode_snapshot_header
from .names import journal_path, snapshot_path
from .plain_file import NotPlain, open_plain
from .snapshot import SLOTS, TEMPORARY

if TYPE_CHECKING:
    from collections.abc import Callable

    from .catalog import Catalog
    from .header import JournalHeader, SnapshotHeader
    from .storage import Disk

_HEADER_BYTES = 16 * 1024


class Remover(NamedTuple):
    """Removes files. `journals`, `snapshots`: their folders."""

    disk: Disk
    catalog: Catalog
    journals: str
    snapshots: str

    def remove(self, session: str, birth: str) -> None:
        """Remove all files of a birth that is dead; again: no effect. Blocks. Raises OSError, `CatalogCorrupt`."""
        row = self.catalog.get(session)
        alone = row is None or row.birth == birth
        numbers = self.catalog.files.numbers(session, birth)
        if row is not None and row.birth == birth:
            numbers.append(row.journal)
        last = numbers[-1] if numbers else 0
        while self._exists(self._journal(session, last + 1)):
            last += 1
            numbers.append(last)
        for number in reversed(numbers):
            path = self._journal(session, number)
            if alone or self._is_of(path, birth, decode_journal_header):
                self.disk.unlink(path)
        self._sync_folder(self._journal(session, 1))
        for slot in SLOTS:
            path = f"{self.snapshots}/{snapshot_path(session, slot)}"
            self.disk.unlink(path + TEMPORARY)
            if self._is_of(path, birth, decode_snapshot_header):
                self.disk.unlink(path)
        self._sync_folder(f"{self.snapshots}/{snapshot_path(session, SLOTS[0])}")

    def _journal(self, session: str, number: int) -> str:
        return f"{self.journals}/{journal_path(session, number)}"

    def _exists(self, path: str) -> bool:
        try:
            open_plain(self.disk, path).close()
        except FileNotFoundError:
            return False
        except NotPlain:
            pass
        return True

    def _is_of(self, path: str, birth: str, decode: Callable[[bytes, str], JournalHeader | SnapshotHeader]) -> bool:
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
            return decode(start[: start.find(b"\n") + 1], path).birth == birth
        except (LineDamaged, StoreVersionTooNew):
            return True

    def _sync_folder(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.disk.sync_dir(path.rpartition("/")[0])
