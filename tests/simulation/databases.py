"""The databases of a simulated disk: real SQLite in memory, of which a commit leaves all or nothing."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from session_actor.persistence.files.storage import HEADER_BYTES, refuse_only_readable

from .image import Inode

if TYPE_CHECKING:
    from .disk import SimDisk

SETTINGS = frozenset({"PRAGMA trusted_schema = OFF", "PRAGMA journal_mode = TRUNCATE", "PRAGMA synchronous = FULL",
                      "PRAGMA fullfsync = 1"})  # fmt: skip
"""What a catalog asks of each connection."""
PAGE_SIZE, VERSIONS = slice(16, 18), slice(18, 20)
"""Where the header of a database has them."""


class SimConnection(sqlite3.Connection):
    """SQLite in memory; what a COMMIT leaves is the file's content, all of it or nothing.

    All that is committed lies within one more transaction, so that the next who wants the content that was there at
    first can have it back: giving SQLite another content takes longer than most of what is asked of it.
    """

    disk: SimDisk
    inode: Inode
    content: bytes
    """What was committed."""
    origin: bytes
    """What was there before the first commit."""
    changed = False
    """Something was begun since."""
    in_transaction = False
    settings: set[str]
    """Those that were made, and stay. Were one made again, SQLite would compile every statement anew."""

    def hold(self, disk: SimDisk, inode: Inode, content: bytes) -> None:
        """Be the connection to a file of that content."""
        if self.changed:
            if content == self.origin:
                super().execute("ROLLBACK TO life")
                self.content = self.origin
            super().execute("RELEASE life")
            self.changed = False
        if content != self.content:
            loader.deserialize(rolled_back(content))
            loader.backup(self)  # into memory of its own: only there what is not yet committed is serialized, too
        self.disk, self.inode, self.content, self.origin = disk, inode, content, content

    def close(self):
        if self.in_transaction or len(spare_connections) >= 4:
            super().close()
        else:
            spare_connections.append(self)

    def execute(self, sql, parameters=()):
        verb = sql.split(None, 1)[0]
        if verb in {"SELECT", "PRAGMA"}:
            self.disk.reach("query")
            if self.disk.trusts_pages and "integrity_check" in sql:
                sql = "SELECT 'ok'"
            if sql in SETTINGS:
                if sql in self.settings:
                    return self.cursor()
                self.settings.add(sql)
        if verb == "BEGIN":
            if not self.changed:
                super().execute("SAVEPOINT life")
            self.changed = self.in_transaction = True
            return super().execute("SAVEPOINT step")
        if verb == "COMMIT":
            self.commit()
        elif verb == "ROLLBACK":
            super().execute("ROLLBACK TO step")
        else:
            return super().execute(sql, parameters)
        self.in_transaction = False
        return super().execute("RELEASE step")

    def commit(self):
        try:
            fault = self.disk.reach("commit")
        except sqlite3.Error:
            if self.content and self.disk.chance.random() < 0.5:
                self.inode.alternative = self.serialize()
            raise
        before, self.content = self.content, self.serialize()
        self.inode.replace(self.content)
        if fault is not None:  # the journal was truncated, so all see it, and a loss of power may undo it
            self.in_transaction = False
            super().execute("RELEASE step")
            self.inode.alternative = before
            raise self.disk.failure("commit", fault.errno)


loader = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
spare_connections: list[SimConnection] = []
"""Making one, and closing it, takes as long as all that is asked of it."""


def close_spare_connections() -> None:
    """Let the next lives begin alike: the counters in the head of a database tell who had a connection before."""
    while spare_connections:
        sqlite3.Connection.close(spare_connections.pop())


def connect(disk: SimDisk, inode: Inode) -> SimConnection:
    content = inode.content()
    refuse_only_readable(content[:HEADER_BYTES])
    connection = spare(content) if content else None
    if connection is None:
        connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, factory=SimConnection)
        connection.content = connection.origin = b""
        connection.settings = set()
    try:
        connection.hold(disk, inode, content)
    except BaseException:
        sqlite3.Connection.close(connection)
        raise
    return connection


def spare(content: bytes) -> SimConnection | None:
    """A spare connection that can take this content: the size of its pages stays what it is."""
    fitting = [one for one in spare_connections if page_size(one.origin) == page_size(content)]
    if not fitting:
        return None
    found = next((one for one in fitting if content in {one.content, one.origin}), fitting[0])
    spare_connections.remove(found)
    return found


def page_size(content: bytes) -> bytes:
    return content[PAGE_SIZE]


def rolled_back(content: bytes) -> bytes:
    """The same database with a rollback journal: memory has no other kind, and a catalog asks for this one."""
    versions = content[VERSIONS]
    return content if 2 not in versions else content[:18] + versions.replace(b"\2", b"\1") + content[20:]
