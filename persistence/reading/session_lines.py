"""The records of one session as a `StoreReader` finds them: in order, in bounded memory, up to the first damage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from session_actor.persistence.errors import LineDamaged, SessionTombstoned
from session_actor.persistence.files.lines import read_lines
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.files.plain_file import NotPlain, open_plain
from session_actor.persistence.format.gap import GAP, Link
from session_actor.persistence.format.header import RecordRef, decode_journal_header
from session_actor.persistence.format.record import Record, decode_record
from session_actor.persistence.log.segment import read_spans
from session_actor.persistence.snapshots.snapshot import look as look_at_slots
from session_actor.persistence.snapshots.snapshot import read_slot

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator

    from session_actor.persistence.files.storage import DiskFile
    from session_actor.persistence.store import SessionInfo, Snapshot

    from .reader import StoreReader

_AT_ONCE: Final = 256
"""So many records of a segment are read at once."""
_GAP_BYTES: Final = 4096
"""No line of a gap is longer."""
_ALL: Final = 1 << 62


class Damage(msgspec.Struct, frozen=True):
    """Where reading a session had to stop."""

    path: str
    offset: int
    """The byte at which what is damaged starts."""
    seq: int
    """The record that should be there."""
    why: str

    def __str__(self) -> str:
        """One sentence."""
        return f"{self.path} is damaged at offset {self.offset}, where record {self.seq} should be: {self.why}"


class Placed(NamedTuple):
    """A sound record, and where it lies."""

    file: int
    """Number of the journal file; of a segment of the log: minus its number."""
    offset: int
    line: bytes
    """As in a journal, LF included."""
    record: Record


class _Broken(Exception):
    """Reading cannot go on; the place may only have been moved."""

    def __init__(self, damage: Damage) -> None:
        super().__init__(str(damage))
        self.damage = damage


class SessionLines:
    """The records of one birth of a session."""

    def __init__(self, reader: StoreReader, info: SessionInfo) -> None:
        """`info`: as the reader found it."""
        self.session = info.id
        self.birth = info.birth
        self.damage: Damage | None = None
        """Why `after` ended before the end; None: it did not, or was not run."""
        self._reader = reader
        self._info = info
        self._snapshots: list[Snapshot] | None = None

    @property
    def base(self) -> RecordRef:
        """The record up to which some were pruned; number 0: none were."""
        return self._reader.look.catalog.files.base(self.session, self.birth)

    def snapshots(self) -> list[Snapshot]:
        """The snapshots that can be read, newest first. Blocks. Raises `StoreVersionTooNew`.

        After `look_again` those that were there then: each is of a record that was found, and not of a pruned one.
        """
        return self._read_snapshots() if self._snapshots is None else self._snapshots

    def _read_snapshots(self) -> list[Snapshot]:
        reader = self._reader
        found: list[Snapshot] = []
        for slot in look_at_slots(reader.disk, reader.layout.snapshots, self.session, self.birth).good:
            try:
                found.append(read_slot(reader.disk, slot, self.session, self.birth))
            except (LineDamaged, OSError):
                continue
        return found

    def after(self, seq: int = 0) -> Iterator[Placed]:
        """The records behind record `seq`, in order. Blocks.

        Of a session that was pruned some are missing up to `base`. What is moved away meanwhile is found again; where
        something is damaged it ends, and `damage` tells. Raises `SessionTombstoned` when the session is deleted
        meanwhile, `StoreVersionTooNew`, OSError.
        """
        self.damage = None
        told: Damage | None = None
        while True:
            try:
                for placed in self._all(seq):
                    if placed.record.seq > seq:
                        yield placed
                        seq = placed.record.seq
            except _Broken as broken:
                if broken.damage == told:
                    self.damage = told
                    return
                told = broken.damage
                self.look_again()
            else:
                return

    def apart(self) -> SessionLines:
        """The same for another walk, while one is under way."""
        return SessionLines(self._reader, self._info)

    def look_again(self) -> None:
        """Have the reader look at the store anew. Raises `SessionTombstoned`, and what `StoreReader` raises."""

        def between() -> None:
            self._snapshots = self._read_snapshots()

        self._reader.refresh(between)
        if self._reader.find(self.session).birth != self.birth:
            raise SessionTombstoned(self.session)

    def read(self, file: int, places: array[int]) -> list[bytes]:
        """The lines at these places of one file (begin and end of each, LF not included), LF added. Blocks.

        What is not there any more comes as something else: look at what comes. Raises FileNotFoundError, OSError.
        """
        opened = self._open(file)
        try:
            return [line + b"\n" for line in read_spans(opened.read, places)]
        finally:
            opened.close()

    # --- walking ------------------------------------------------------------------------------------------------------

    def _all(self, seq: int) -> Iterator[Placed]:
        """All records behind `seq`, and some before it."""
        look = self._reader.look
        row = look.catalog.get(self.session)
        link, passed = Link(), None
        if row is not None and row.birth == self.birth:
            files = [file for file in look.catalog.files.of(self.session, self.birth) if file.number < row.journal]
            parts = [(file.number, file.index_offset, file.last_seq, file.sum) for file in files]
            for number, end, last_seq, last_sum in (*parts, (row.journal, row.bytes, row.seq, row.sum)):
                if last_seq <= seq:
                    passed, link = (number, end), Link(last_seq, last_sum)
                    continue
                link, passed = self._behind(link, passed), None
                for placed in self._in_journal(number, end, link):
                    link = Link.of(placed.record)
                    yield placed
                link = self._check_last(number, end, link, RecordRef(last_seq, last_sum))
        link = self._behind(link, passed)
        for placed in self._in_log(link):
            link = Link.of(placed.record)
            yield placed
        self._check_log(link)

    def _in_journal(self, number: int, end: int, link: Link) -> Iterator[Placed]:
        """The records of a journal file whose valid records end at offset `end`."""
        path = self.path(number)
        file = self._opened(number, link)
        try:
            position = 0
            for line in read_lines(file, 0, end):
                position = line.end
                if not line.offset:
                    link = self._begin(path, line.data, number, link)
                    continue
                try:
                    record = decode_record(line.data)
                except LineDamaged as error:
                    raise _Broken(Damage(path, line.offset, link.seq + 1, str(error))) from None
                if not link.follows(record):
                    raise _Broken(Damage(path, line.offset, link.seq + 1, "it does not follow the record before"))
                link = Link.of(record)
                yield Placed(number, line.offset, line.data, record)
        finally:
            file.close()
        if position < end:
            why = f"the file ends, and the catalog counts {end} bytes"
            raise _Broken(Damage(path, position, link.seq + 1, why))

    def _begin(self, path: str, line: bytes, number: int, link: Link) -> Link:
        """What the first record of a file follows, by its header."""
        try:
            header = decode_journal_header(line, path)
        except LineDamaged as error:
            raise _Broken(Damage(path, 0, link.seq + 1, str(error))) from None
        if (header.session, header.birth, header.number) != (self.session, self.birth, number):
            raise _Broken(Damage(path, 0, link.seq + 1, "it belongs to another session, birth or number"))
        before = header.continues
        if (before.seq, before.sum) == (link.seq, link.sum):
            return link
        if link.seq < before.seq <= self.base.seq:  # what was between was pruned
            return Link(before.seq, before.sum)
        if not link.seq and before.seq:
            raise _Broken(Damage(path, 0, 1, f"it continues record {before.seq}, and nothing is before it"))
        raise _Broken(Damage(path, 0, link.seq + 1, f"it continues record {before.seq}, not the one before"))

    def _check_last(self, number: int, end: int, link: Link, last: RecordRef) -> Link:
        """The link of the last record of a file, which is to be the one that the catalog has."""
        if (link.seq, link.sum) != (last.seq, last.sum):
            why = f"the catalog says that record {last.seq} is its last"
            raise _Broken(Damage(self.path(number), end, link.seq + 1, why))
        return link

    def _behind(self, link: Link, passed: tuple[int, int] | None) -> Link:
        """The link that stands at the end of a file that was not read: its number, and where its records end."""
        if passed is None:
            return link
        number, end = passed
        file = self._opened(number, link)
        try:
            begin = max(0, end - _GAP_BYTES)
            tail = file.read(begin, end - begin)
        finally:
            file.close()
        try:
            return link._replace(is_gap=decode_record(tail[tail.rfind(b"\n", 0, -1) + 1 :]).kind == GAP)
        except LineDamaged:  # it is longer than any gap, or damaged, and then nobody asked for it
            return link

    def _in_log(self, link: Link) -> Iterator[Placed]:
        log = self._reader.look.log
        for number, spans in log.places((self.session, self.birth)):
            file = self._opened(-number, link)
            try:
                for first in range(0, len(spans), 2 * _AT_ONCE):
                    places = spans[first : first + 2 * _AT_ONCE]
                    for index, text in enumerate(read_spans(file.read, places)):
                        placed = self._logged(number, places[2 * index], text + b"\n", link)
                        if placed.record.seq > link.seq:
                            link = Link.of(placed.record)
                            yield placed
            finally:
                file.close()

    def _logged(self, number: int, offset: int, line: bytes, link: Link) -> Placed:
        """A line of the log: the record behind `link`, or one that is known already."""
        try:
            record = decode_record(line)
        except LineDamaged as error:
            raise _Broken(Damage(self.path(-number), offset, link.seq + 1, str(error))) from None
        if record.seq > link.seq and not link.follows(record):
            path, at = self._loss_before(number, offset)
            raise _Broken(Damage(path, at, link.seq + 1, f"what is behind it goes on with record {record.seq}"))
        return Placed(-number, offset, line, record)

    def _loss_before(self, number: int, offset: int) -> tuple[str, int]:
        """The damage by which a record before this place is missing: its file and offset."""
        before = [found for at, found in self._reader.look.log.damage if (at, found.offset) < (number, offset)]
        return (before[-1].path, before[-1].offset) if before else (self.path(-number), offset)

    def _check_log(self, link: Link) -> None:
        """Whether damage of the log may have held newer records of this session."""
        log, owner = self._reader.look.log, (self.session, self.birth)
        places = log.places(owner)
        newest = (places[-1][0], places[-1][1][-2]) if places else (0, 0)
        for number, damage in log.damage:
            concerns = damage.owners is None or owner in damage.owners
            if concerns and (number, damage.offset or _ALL) > newest:
                why = "bytes that were synced cannot be read"
                if damage.owners is None:
                    why += "; they may have held records of any session"
                raise _Broken(Damage(damage.path, damage.offset, link.seq + 1, why))

    # --- files --------------------------------------------------------------------------------------------------------

    def _opened(self, number: int, link: Link) -> DiskFile:
        try:
            return self._open(number)
        except FileNotFoundError:
            raise _Broken(Damage(self.path(number), 0, link.seq + 1, "the file is missing")) from None
        except NotPlain:
            raise _Broken(Damage(self.path(number), 0, link.seq + 1, "it is no plain file")) from None

    def _open(self, number: int) -> DiskFile:
        return open_plain(self._reader.disk, self.path(number))

    def path(self, number: int) -> str:
        """The path of a file; `number`: as in `Placed`."""
        if number < 0:
            return self._reader.look.log.path(-number)
        return f"{self._reader.layout.journals}/{journal_path(self.session, number)}"
