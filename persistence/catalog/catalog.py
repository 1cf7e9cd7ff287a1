"""The catalog: which sessions have journals, and up to which byte each journal is valid.

It is the anchor of the journals: what it does not count is the rest of an unfinished cut. So a commit must be on the
disk when it returns, and a damaged number must never be believed. SQLite commits with synchronous=FULL, and with its
rollback journal truncated instead of deleted: the truncation is synced, whereas a deletion that a power loss undoes
would roll a commit back. SQLite does not check its pages, so each row carries a CRC-32 of its fields.

All methods are synchronous and may be called from any thread: one connection, one call at a time. They raise OSError
when the disk refuses (the transaction is then rolled back), and `CatalogCorrupt` for damage.
"""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from session_actor.persistence.errors import CatalogCorrupt, StoreVersionTooNew
from session_actor.persistence.files.names import id_bytes
from session_actor.persistence.files.plain_file import NotPlain, plain_only
from session_actor.persistence.files.storage import OnlyReadable, OsDisk
from session_actor.persistence.format.header import SegmentRef

from .catalog_access import CatalogAccess
from .catalog_files import VERSION, CatalogFiles, check_fields, forget_birth, make_tables, put, put_base, sum_of_row

if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Iterable, Sequence

    from session_actor.persistence.files.storage import Disk
    from session_actor.persistence.format.header import RecordRef

    from .catalog_files import FileRow

_FIRST_VERSION: Final = 1
"""That of a new catalog (PRAGMA user_version). With the first sealed file it becomes `VERSION`, the newest there is."""

_PAGE_BYTES: Final = 1024
"""Pages of a new catalog: it begins with four, one block of most disks; SQLite's own of 4 kB would make that 16 kB.

A cut of thousands of sessions takes about 1.2 times as long as with those. A catalog keeps the pages that it has.
"""

_SCHEMA: Final = (
    """CREATE TABLE journals (
        session BLOB PRIMARY KEY, birth TEXT NOT NULL, created_us INTEGER NOT NULL, journal INTEGER NOT NULL,
        bytes INTEGER NOT NULL, seq INTEGER NOT NULL, sum TEXT NOT NULL, crc INTEGER NOT NULL, row_sum INTEGER NOT NULL
    ) WITHOUT ROWID""",
    """CREATE TABLE tombstones (
        session BLOB NOT NULL, birth TEXT NOT NULL, row_sum INTEGER NOT NULL, PRIMARY KEY (session, birth)
    ) WITHOUT ROWID""",
    """CREATE TABLE numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL, row_sum INTEGER NOT NULL) WITHOUT ROWID""",
)
_TABLES: Final = frozenset({"journals", "tombstones", "numbers"})
_COLUMNS: Final = "session, birth, created_us, journal, bytes, seq, sum, crc, row_sum"
_FIRST_LIVE: Final = "first_live_segment"
_END_SEGMENT: Final = "log_end_segment"
_END_BYTES: Final = "log_end_bytes"
_KINDS: Final = (bytes, str, -(1 << 60), 1, 0, 0, str, 0)
_SEGMENTS_MAX: Final = 10**11
_VALUE_BYTES_MAX: Final = 16 * 1024 * 1024
_Stored = tuple[bytes, str, int, int, int, int, str, int]


class CatalogRow(msgspec.Struct, frozen=True):
    """What the catalog knows of one session's journal."""

    session: str
    birth: str
    created_us: int
    """When the first record was made: microseconds since the epoch, UTC."""
    journal: int
    """Number of the newest journal file."""
    bytes: int
    """How many bytes of that file are valid."""
    seq: int
    """The last record in it."""
    sum: str
    """That record's sum."""
    crc: int
    """CRC-32 of all valid bytes."""


class Catalog:
    """The catalog of one store."""

    def __init__(self, path: str | os.PathLike[str], disk: Disk | None = None) -> None:
        """`path`: the database file. `disk`: where it is; None: the real one."""
        self._path = Path(path)
        self._disk: Disk = OsDisk() if disk is None else disk
        self._access = CatalogAccess(str(path))
        self.files = CatalogFiles(str(path), self._reading, self._writing)
        """The sealed journal files."""
        self.changes = 0
        """How many transactions ended: who was told of damage looks whether the catalog changed meanwhile."""
        self._unsure = True
        """A commit failed, here or perhaps in a process that died, and may have happened: see `settle`."""

    def open(self, *, create: bool) -> None:
        """Open the file. `create`: make it when it is missing or empty; otherwise that is damage.

        Raises `CatalogCorrupt`, `StoreVersionTooNew` (the file stays untouched), OSError.
        """
        self._access.open(lambda: self._set_up_connection(create=create))

    def close(self) -> None:
        """Close the file; again: no effect."""
        self._access.close()

    def get(self, session: str) -> CatalogRow | None:
        """What is known of `session`; None when it has no journal."""
        return self.get_all([session])[0]

    def get_all(self, sessions: Sequence[str]) -> list[CatalogRow | None]:
        """`get` of each of these sessions, at most some dozens, by one question."""
        marks = ", ".join("?" * len(sessions))
        query = f"SELECT {_COLUMNS} FROM journals WHERE session IN ({marks})"  # noqa: S608 - constants
        with self._reading() as connection:
            found = connection.execute(query, [id_bytes(session) for session in sessions]).fetchall()
            rows = {row.session: row for row in map(self._row, found)}
        return [rows.get(session) for session in sessions]

    def rows(self, prefix: str = "", after: str | None = None, limit: int = 1000) -> list[CatalogRow]:
        """At most `limit` rows of sessions whose id starts with `prefix` and comes behind `after`, in order of ids."""
        start = id_bytes(prefix)
        behind = id_bytes(after) if after is not None else b""
        query = f"SELECT {_COLUMNS} FROM journals WHERE session >= ? AND session > ?"  # noqa: S608 - a constant
        arguments: list[bytes | int] = [start, behind]
        if start:  # UTF-8 has no byte 0xff, so its last byte can be raised
            query += " AND session < ?"
            arguments.append(start[:-1] + bytes([start[-1] + 1]))
        arguments.append(limit)
        with self._reading() as connection:
            return [self._row(found) for found in connection.execute(query + " ORDER BY session LIMIT ?", arguments)]

    def first_live_segment(self) -> int:
        """The oldest log segment that is not cut yet; 1 in a new catalog."""
        with self._reading() as connection:
            found = self._number(connection, _FIRST_LIVE)
        if found is None:
            raise CatalogCorrupt(str(self._path), f"its {_FIRST_LIVE} is missing")
        return found

    def log_end(self) -> SegmentRef | None:
        """How far the log was surely on the disk when that was last noted; None: nothing that counts was noted."""
        with self._reading() as connection:
            return self._log_end(connection)

    def note_log_end(self, end: SegmentRef) -> None:
        """Note how far the log is on the disk; what is already noted, or is more, stays."""
        if _is_more(end, self.log_end()):
            with self._writing() as connection:
                _set_log_end(connection, end)

    def _log_end(self, connection: sqlite3.Connection) -> SegmentRef | None:
        segment, size = self._number(connection, _END_SEGMENT), self._number(connection, _END_BYTES)
        first_live = self._number(connection, _FIRST_LIVE) or 1
        return None if segment is None or size is None or segment < first_live else SegmentRef(segment, size)

    def _number(self, connection: sqlite3.Connection, name: str) -> int | None:
        query = "SELECT name, value, row_sum FROM numbers WHERE name = ?"
        found = connection.execute(query, (name,)).fetchone()
        if found is None:
            return None
        if found[2] != sum_of_row(found[0], found[1]):
            raise CatalogCorrupt(str(self._path), f"its {name} fails its sum")
        if type(found[1]) is not int or not 1 <= found[1] < _SEGMENTS_MAX:
            raise CatalogCorrupt(str(self._path), f"its {name} is a number that cannot be")
        return found[1]

    def dead_births(self, session: str) -> frozenset[str]:
        """The births of `session` that were deleted."""
        key = id_bytes(session)
        with self._reading() as connection:
            query = "SELECT birth, row_sum FROM tombstones WHERE session = ?"
            return frozenset(self._dead(key, birth, total) for birth, total in connection.execute(query, (key,)))

    def deleted(self, session: str) -> bool:
        """Whether `session` was deleted and has had no journal since."""
        return bool(self.dead_births(session)) and self.get(session) is None

    def commit_cut(  # noqa: PLR0917 - one transaction, whatever is in it
        self,
        rows: Iterable[CatalogRow],
        dead: Iterable[tuple[str, str]],
        first_live_segment: int,
        sealed: Iterable[FileRow] = (),
        log_end: SegmentRef | None = None,
        bases: Iterable[tuple[str, str, RecordRef]] = (),
    ) -> None:
        """Record a cut in one transaction; it is on the disk when this returns.

        `rows`: the new state of each journal that grew. `dead`: (session, birth) of what was deleted: such a birth
        loses its rows and never gets one again. `first_live_segment`: the oldest segment that is still needed.
        `sealed`: journal files that were sealed. `log_end`: see `note_log_end`. `bases`: sessions and births with the
        record up to which some were pruned.
        """
        with self._writing() as connection:
            for row in rows:
                _upsert(connection, row)
            sealed, bases = tuple(sealed), tuple(bases)
            if sealed or bases:
                make_tables(connection)
            for base in bases:
                put_base(connection, *base)
            for file in sealed:
                if not _is_dead(connection, id_bytes(file.session), file.birth):
                    put(connection, file)
            for session, birth in dead:
                _bury(connection, id_bytes(session), birth)
            _set_number(connection, _FIRST_LIVE, first_live_segment)
            if log_end is not None and _is_more(log_end, self._log_end(connection)):
                _set_log_end(connection, log_end)

    def settle(self) -> None:
        """Make sure that a loss of power leaves what the catalog says now.

        After a commit that failed it may leave the state before it, though everybody reads what it wrote, or the other
        way round. Whoever removes what the catalog does not count any more asks for this first. Raises OSError.
        """
        if self._unsure:
            first_live = self.first_live_segment()
            with self._writing() as connection:
                _set_number(connection, _FIRST_LIVE, first_live)

    def settle_births(self, sessions: Sequence[str]) -> None:
        """`settle`, if one of these sessions may have a birth that a loss of power would put another in the place of.

        No record may be taken for such a birth: it would be lost. Raises OSError.
        """
        if self._unsure:
            marks = ", ".join("?" * len(sessions))
            query = f"SELECT 1 FROM tombstones WHERE session IN ({marks}) LIMIT 1"  # noqa: S608 - constants
            with self._reading() as connection:
                found = connection.execute(query, [id_bytes(session) for session in sessions]).fetchone()
            if found is not None:
                self.settle()

    def check(self) -> None:
        """Read everything once, which takes longer the more sessions there are.

        Raises `CatalogCorrupt` for the first damage found.
        """
        with self._reading() as connection:
            verdict = connection.execute("PRAGMA integrity_check(1)").fetchone()  # quick_check compares no index
            if verdict != ("ok",):
                raise CatalogCorrupt(str(self._path), "its pages or an index are inconsistent")
            for found in connection.execute(f"SELECT {_COLUMNS} FROM journals"):  # noqa: S608 - a constant
                self._row(found)
            for session, birth, total in connection.execute("SELECT session, birth, row_sum FROM tombstones"):
                self._dead(session, birth, total)
        self.first_live_segment()
        self.log_end()

    # --- opening ------------------------------------------------------------------------------------------------------

    def _set_up_connection(self, *, create: bool) -> sqlite3.Connection:
        connection = self._connect(create=create)
        try:
            self._set_up(connection, create=create)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, *, create: bool) -> sqlite3.Connection:
        try:
            with plain_only():
                return self._disk.connect(str(self._path), create=create)
        except FileNotFoundError:
            raise CatalogCorrupt(str(self._path), "it is missing") from None
        except NotPlain as error:
            raise CatalogCorrupt(str(self._path), "it is not a plain file") from error
        except OnlyReadable as error:
            raise CatalogCorrupt(str(self._path), str(error)) from error

    def _set_up(self, connection: sqlite3.Connection, *, create: bool) -> None:
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        if version > VERSION:
            raise StoreVersionTooNew(str(self._path), f"catalog version {version}", f"versions up to {VERSION}")
        self._distrust(connection)
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = 1")  # macOS: a sync that reaches the disk
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if create and version == 0 and tables == 0:
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            with _transaction(connection):
                for statement in _SCHEMA:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_FIRST_VERSION}")
                _set_number(connection, _FIRST_LIVE, 1)
            self._unsure = False
        elif version != VERSION and not (version == _FIRST_VERSION and _tables(connection) == _TABLES):
            raise CatalogCorrupt(str(self._path), "it holds no catalog")

    def _distrust(self, connection: sqlite3.Connection) -> None:
        """Somebody else may have made the file: let nothing in it run, and nothing be larger than what is written."""
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES_MAX)
        kinds = "SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table', 'index')"
        if connection.execute(kinds).fetchone() != (0,):
            raise CatalogCorrupt(str(self._path), "it holds more than tables")

    # --- access -------------------------------------------------------------------------------------------------------

    def _reading(self) -> CatalogAccess:
        return self._access

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        with self._access as connection:
            try:
                with _transaction(connection):
                    yield connection
                self._unsure = False
            except BaseException:
                self._unsure = True
                raise
            finally:
                self.files.changed()
                self.changes += 1

    def _row(self, found: tuple[bytes, str, int, int, int, int, str, int, int]) -> CatalogRow:
        stored: _Stored = found[:-1]
        if sum_of_row(*stored) != found[-1]:
            raise CatalogCorrupt(str(self._path), "a row fails its sum")
        check_fields(str(self._path), stored, _KINDS)
        return CatalogRow(stored[0].decode("utf-8", "surrogatepass"), *stored[1:])

    def _dead(self, session: bytes, birth: str, row_sum: int) -> str:
        if sum_of_row(session, birth) != row_sum:
            raise CatalogCorrupt(str(self._path), "a tombstone fails its sum")
        return birth


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Generator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _tables(connection: sqlite3.Connection) -> frozenset[str]:
    """The names of all tables."""
    return frozenset(name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"))


def _is_dead(connection: sqlite3.Connection, session: bytes, birth: str) -> bool:
    query = "SELECT 1 FROM tombstones WHERE session = ? AND birth = ?"
    return connection.execute(query, (session, birth)).fetchone() is not None


def _upsert(connection: sqlite3.Connection, row: CatalogRow) -> None:
    stored = (id_bytes(row.session), row.birth, row.created_us, row.journal, row.bytes, row.seq, row.sum, row.crc)
    if not _is_dead(connection, stored[0], row.birth):
        connection.execute(
            f"INSERT OR REPLACE INTO journals ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608 - a constant
            (*stored, sum_of_row(*stored)),
        )


def _bury(connection: sqlite3.Connection, session: bytes, birth: str) -> None:
    connection.execute("DELETE FROM journals WHERE session = ? AND birth = ?", (session, birth))
    forget_birth(connection, session, birth)
    connection.execute(
        "INSERT OR REPLACE INTO tombstones (session, birth, row_sum) VALUES (?, ?, ?)",
        (session, birth, sum_of_row(session, birth)),
    )


def _set_number(connection: sqlite3.Connection, name: str, value: int) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO numbers (name, value, row_sum) VALUES (?, ?, ?)",
        (name, value, sum_of_row(name, value)),
    )


def _set_log_end(connection: sqlite3.Connection, end: SegmentRef) -> None:
    _set_number(connection, _END_SEGMENT, end.segment)
    _set_number(connection, _END_BYTES, end.offset)


def _is_more(end: SegmentRef, noted: SegmentRef | None) -> bool:
    return noted is None or (end.segment, end.offset) > (noted.segment, noted.offset)
