"""The catalog's tables of sealed journal files, and of how far a session's old records were pruned.

A sealed file is never changed again. Its row tells which records and frames it holds, so that the file of a frame is
found by one look into an index. A row that is `dropped` is of a file that was pruned and may still be there: it counts
for nothing, and is forgotten when the file is surely gone.

The tables are made with their first row, which makes the catalog one of version 2: most stores have no sealed file, and
without the tables a catalog takes one block of the disk, with them three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import msgspec

from session_actor.persistence.errors import CatalogCorrupt
from session_actor.persistence.files.names import id_bytes
from session_actor.persistence.format.header import RecordRef

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    Connected = Callable[[], AbstractContextManager[sqlite3.Connection]]

SCHEMA: Final = (
    """CREATE TABLE files (
        session BLOB NOT NULL, birth TEXT NOT NULL, number INTEGER NOT NULL, first_seq INTEGER NOT NULL,
        last_seq INTEGER NOT NULL, first_frame INTEGER NOT NULL, last_frame INTEGER NOT NULL, bytes INTEGER NOT NULL,
        index_offset INTEGER NOT NULL, sum TEXT NOT NULL, crc INTEGER NOT NULL, dropped INTEGER NOT NULL,
        row_sum INTEGER NOT NULL, PRIMARY KEY (session, birth, number)
    ) WITHOUT ROWID""",
    "CREATE INDEX files_by_frame ON files (session, birth, last_frame)",
    """CREATE TABLE bases (
        session BLOB NOT NULL, birth TEXT NOT NULL, seq INTEGER NOT NULL, sum TEXT NOT NULL, row_sum INTEGER NOT NULL,
        PRIMARY KEY (session, birth)
    ) WITHOUT ROWID""",
)
VERSION: Final = 2
"""Of a catalog with these tables."""
NO_INDEX: Final = -1
"""`last_frame` of a file that got no index, because it could not be read when it was sealed: it may be sound."""
_KINDS: Final = (bytes, str, 1, 0, 0, 0, NO_INDEX, 0, 0, str, 0, 0)
_BASE_KINDS: Final = (bytes, str, 0, str)
_NUMBER_MAX: Final = 1 << 55
"""No number of a row is larger: 36 PB, or a time in the year 3111."""
_COLUMNS: Final = (
    "session, birth, number, first_seq, last_seq, first_frame, last_frame, bytes, index_offset, sum, crc, dropped"
)


class FileRow(msgspec.Struct, frozen=True):
    """What the catalog knows of one sealed journal file."""

    session: str
    birth: str
    number: int
    first_seq: int
    last_seq: int
    first_frame: int
    """The lowest id of the frames that its records add; 0: they add none."""
    last_frame: int
    """The highest id; 0: none; `NO_INDEX`: not known."""
    bytes: int
    """Length of the file, its index included."""
    index_offset: int
    """Where its last line, the index, begins; equal to `bytes` when it has none."""
    sum: str
    """Sum of the last record."""
    crc: int
    """CRC-32 of the whole file."""


class CatalogFiles:
    """The tables `files` and `bases`; errors as in `Catalog`."""

    def __init__(self, path: str, reading: Connected, writing: Connected) -> None:
        """`path`: of the catalog. `reading`, `writing`: give its connection, for `writing` in a transaction."""
        self._path = path
        self._reading = reading
        self._writing = writing
        self._there: bool | None = None
        """Whether the tables are there; None: it is to be asked, which is done between transactions only."""

    def changed(self) -> None:
        """A transaction ended, however it did: it may have made the tables."""
        self._there = self._there or None

    def of(self, session: str, birth: str, *, after_seq: int = 0) -> list[FileRow]:
        """The sealed files that hold a record behind `after_seq`, in order."""
        return self._select(session, birth, "last_seq > ? AND dropped = 0 ORDER BY number", after_seq)

    def whole(self, session: str, birth: str) -> tuple[RecordRef, list[FileRow]]:
        """`base`, and all sealed files behind it, as they are at one moment: a pruning changes both."""
        with self._reading() as connection:
            if not self._are_there(connection):
                return RecordRef(), []
            base = self._base(connection, session, birth)
            condition = "last_seq > ? AND dropped = 0 ORDER BY number"
            return base, self._rows(connection, session, birth, condition, base.seq)

    def newest(self, session: str, birth: str, before: int = _NUMBER_MAX) -> FileRow | None:
        """The newest sealed file before number `before`."""
        found = self._select(session, birth, "number < ? ORDER BY number DESC LIMIT 1", before)
        return found[0] if found else None

    def with_frame(self, session: str, birth: str, frame: int) -> FileRow | None:
        """The sealed file that may add `frame`."""
        condition = "last_frame >= ? AND dropped = 0 ORDER BY last_frame LIMIT 1"
        return next((row for row in self._select(session, birth, condition, frame) if row.first_frame <= frame), None)

    def newest_frame(self, session: str, birth: str, before: int) -> int:
        """The highest id of a frame in a sealed file before number `before`; 0: there is none."""
        condition = "last_frame > 0 AND number < ? ORDER BY last_frame DESC LIMIT 1"
        found = self._select(session, birth, condition, before)
        return found[0].last_frame if found else 0

    def without_index(self, session: str, birth: str, before: int) -> list[FileRow]:
        """The sealed files before number `before` whose frames are not known."""
        condition = f"last_frame = {NO_INDEX} AND number < ? AND dropped = 0 ORDER BY number"
        return self._select(session, birth, condition, before)

    def numbers(self, session: str, birth: str, *, dropped: bool = False) -> list[int]:
        """Numbers of all sealed files that may be there; `dropped`: of those alone that were pruned."""
        condition = " AND dropped = 1" if dropped else ""
        query = f"SELECT number FROM files WHERE session = ? AND birth = ?{condition} ORDER BY number"  # noqa: S608 - a constant
        with self._reading() as connection:
            if not self._are_there(connection):
                return []
            return [int(number) for (number,) in connection.execute(query, (id_bytes(session), birth))]

    def sizes(self, first: str, last: str) -> dict[tuple[str, str], int]:
        """Of each session from `first` to `last`, and its birth, the bytes of its sealed files."""
        query = (
            "SELECT session, birth, sum(bytes) FROM files WHERE session >= ? AND session <= ? AND dropped = 0"
            " GROUP BY session, birth"
        )
        with self._reading() as connection:
            if not self._are_there(connection):
                return {}
            found = connection.execute(query, (id_bytes(first), id_bytes(last))).fetchall()
        return {(session.decode("utf-8", "surrogatepass"), birth): int(size) for session, birth, size in found}

    def base(self, session: str, birth: str) -> RecordRef:
        """The record up to which some records were pruned; number 0: none were."""
        with self._reading() as connection:
            return self._base(connection, session, birth) if self._are_there(connection) else RecordRef()

    def _base(self, connection: sqlite3.Connection, session: str, birth: str) -> RecordRef:
        query = "SELECT session, birth, seq, sum, row_sum FROM bases WHERE session = ? AND birth = ?"
        found = connection.execute(query, (id_bytes(session), birth)).fetchone()
        if found is None:
            return RecordRef()
        if sum_of_row(*found[:-1]) != found[-1]:
            raise CatalogCorrupt(self._path, "a base fails its sum")
        check_fields(self._path, found[:-1], _BASE_KINDS)
        return RecordRef(found[2], found[3])

    def drop(
        self, session: str, birth: str, rows: Iterable[FileRow], *, forgotten: Iterable[int], base: RecordRef
    ) -> None:
        """Let sealed files of a session count no more, in one transaction.

        `forgotten`: numbers of files that were dropped before and are surely gone. `base`: see there.
        """
        key = id_bytes(session), birth
        with self._writing() as connection:
            make_tables(connection)
            connection.executemany(
                "DELETE FROM files WHERE session = ? AND birth = ? AND number = ? AND dropped = 1",
                [(*key, number) for number in forgotten],
            )
            for row in rows:
                put(connection, row, dropped=True)
            put_base(connection, session, birth, base)

    def forget_from(self, session: str, birth: str, number: int) -> None:
        """Forget sealed files from `number` on, where that of the newest one is `number`: they cannot be."""
        if any(found >= number for found in self.numbers(session, birth)):
            query = "DELETE FROM files WHERE session = ? AND birth = ? AND number >= ?"
            with self._writing() as connection:
                connection.execute(query, (id_bytes(session), birth, number))

    def check(self) -> None:
        """Read all rows once. Raises `CatalogCorrupt` for the first damage found."""
        with self._reading() as connection:
            if not self._are_there(connection):
                return
            for found in connection.execute(f"SELECT {_COLUMNS}, row_sum FROM files"):  # noqa: S608 - a constant
                self._row(found)
            for *fields, row_sum in connection.execute("SELECT session, birth, seq, sum, row_sum FROM bases"):
                if sum_of_row(*fields) != row_sum:
                    raise CatalogCorrupt(self._path, "a base fails its sum")
                check_fields(self._path, fields, _BASE_KINDS)

    def _select(self, session: str, birth: str, condition: str, argument: int) -> list[FileRow]:
        with self._reading() as connection:
            return self._rows(connection, session, birth, condition, argument) if self._are_there(connection) else []

    def _are_there(self, connection: sqlite3.Connection) -> bool:
        if self._there is None:
            self._there = has_tables(connection)
        return self._there

    def _rows(
        self, connection: sqlite3.Connection, session: str, birth: str, condition: str, argument: int
    ) -> list[FileRow]:
        query = f"SELECT {_COLUMNS}, row_sum FROM files WHERE session = ? AND birth = ? AND {condition}"  # noqa: S608 - the same
        found = connection.execute(query, (id_bytes(session), birth, argument)).fetchall()
        return [self._row(row) for row in found]

    def _row(self, found: tuple[Any, ...]) -> FileRow:
        if sum_of_row(*found[:-1]) != found[-1]:
            raise CatalogCorrupt(self._path, "a row of a sealed file fails its sum")
        check_fields(self._path, found[:-1], _KINDS)
        row = FileRow(found[0].decode("utf-8", "surrogatepass"), *found[1:-2])
        if row.index_offset > row.bytes:
            raise CatalogCorrupt(self._path, "a row says that an index begins behind the end of its file")
        return row


def check_fields(path: str, fields: Sequence[object], kinds: tuple[type | int, ...]) -> None:
    """What a sum cannot say: that each value of a row can be.

    `kinds`: of each the type; of a number the least that it may be. Raises `CatalogCorrupt`.
    """
    for field, kind in zip(fields, kinds, strict=True):
        good = type(field) is kind or (type(field) is int and type(kind) is int and kind <= field < _NUMBER_MAX)
        if not good:
            raise CatalogCorrupt(path, "a row holds a value that cannot be")


def has_tables(connection: sqlite3.Connection) -> bool:
    """Whether the tables are there, as the transaction that runs sees it."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0]) == VERSION


def make_tables(connection: sqlite3.Connection) -> None:
    """Make the tables, in the transaction that runs, unless they are there."""
    if not has_tables(connection):
        for statement in SCHEMA:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")


def put(connection: sqlite3.Connection, row: FileRow, *, dropped: bool = False) -> None:
    """Write a row in place of the one with its number."""
    session, *fields = msgspec.structs.astuple(row)
    stored = (id_bytes(session), *fields, int(dropped))
    connection.execute(
        f"INSERT OR REPLACE INTO files ({_COLUMNS}, row_sum) VALUES ({', '.join('?' * 13)})",  # noqa: S608 - constants
        (*stored, sum_of_row(*stored)),
    )


def put_base(connection: sqlite3.Connection, session: str, birth: str, base: RecordRef) -> None:
    """Note up to which record some were pruned."""
    stored = (id_bytes(session), birth, base.seq, base.sum)
    connection.execute(
        "INSERT OR REPLACE INTO bases (session, birth, seq, sum, row_sum) VALUES (?, ?, ?, ?, ?)",
        (*stored, sum_of_row(*stored)),
    )


def forget_birth(connection: sqlite3.Connection, session: bytes, birth: str) -> None:
    """Remove all that is noted of a birth that was deleted."""
    for table in ("files", "bases") if has_tables(connection) else ():
        connection.execute(f"DELETE FROM {table} WHERE session = ? AND birth = ?", (session, birth))  # noqa: S608 - a constant


def sum_of_row(*fields: object) -> int:
    """CRC-32 of a row's fields and of their types, which SQLite does not keep either."""
    return crc32(msgspec.json.encode(fields))
