"""Damaged lines of the log that nobody misses, since their records are in journals.

Of a segment that is left because one journal is refused, the records of all others are in theirs. A damaged line is one
of these if it has its sum again once its record is taken from there: what is damaged lies inside the record.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from session_actor.persistence.errors import PersistenceError
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.format.record import SUFFIX_BYTES
from session_actor.persistence.journals.journal import Part, read_behind
from session_actor.persistence.log.segment_file import read_segment
from session_actor.persistence.log.session_log import Extent

if TYPE_CHECKING:
    from session_actor.persistence.catalog.catalog import Catalog
    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.log.scan import Damage

    Owner = tuple[str, str]

_HEAD: Final = re.compile(
    rb'(\{"w":[0-9]+,"p":"[0-9a-f]{8}","s":[^\x00]+?,"birth":"[0-9a-f]{16}","r":)\{"seq":([0-9]{1,15}),'
)


class Restored(NamedTuple):
    """Compares a log with journals. Methods block. `journals`: their folder."""

    disk: Disk
    journals: str
    catalog: Catalog

    def missing(self, damage: Damage) -> list[Owner]:
        """Of the owners of damaged lines those whose records are in no journal; each as often as it has such."""
        owners = list(damage.owners or ())
        try:
            data, _ = read_segment(self.disk, damage.path)
        except OSError:
            return owners
        lines = data[damage.offset :].split(b"\n", len(owners))
        return [owner for owner, line in zip(owners, lines, strict=False) if not self._is_there(owner, line + b"\n")]

    def _is_there(self, owner: Owner, line: bytes) -> bool:
        head = _HEAD.match(line)
        if head is None:
            return False
        try:
            record = self._record(owner, int(head[2]))
        except (OSError, PersistenceError):  # who loads the session is told
            return False
        return line[-SUFFIX_BYTES:] == b',"sum":"%08x"}\n' % crc32(head[1] + record)

    def _record(self, owner: Owner, seq: int) -> bytes:
        """A record as it is in the journal of a birth, without its LF; empty when it is not there."""
        row = self.catalog.get(owner[0])
        if row is None or row.birth != owner[1] or not 0 < seq <= row.seq:
            return b""
        sealed = self.catalog.files.of(*owner, after_seq=seq - 1)
        newest = Extent(row.journal, row.bytes, row.seq, row.sum, row.crc)
        part = next((Part.of(file) for file in sealed if file.number < row.journal), Part.of(newest))
        path = f"{self.journals}/{journal_path(owner[0], part.number)}"
        return read_behind(self.disk, path, part, owner, seq - 1)[0].partition(b"\n")[0]
