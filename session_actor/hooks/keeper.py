"""Where the book is kept: a session of the service's own in its store, which no listing shows.

All records of a store go through one log in one order. So what is due is written before the end that it is due for,
and a crash leaves neither of them, the first alone (which is then void), or both. A restart reads this session and no
other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from session_actor.errors import SessionActorError, StoreError, remade, translate
from session_actor.persistence import Fenced, PersistenceError, SessionTombstoned, SessionUnknown
from session_actor.service.reserved import HOOKS
from session_actor.state.times import now_us

from .book import Book
from .records import decode

if TYPE_CHECKING:
    from session_actor.persistence import Lease, Level, Store

    from .records import AnyRecord

EVERY_RECORDS: Final = 1_000
"""After so many records a snapshot of the book is saved, and what lies before it is dropped."""
_WEIGHT: Final = 160


class BookKeeper:
    """The book of one service, and its records."""

    def __init__(self, store: Store, level: Level) -> None:
        """`level`: the one at which something pending counts as kept: `written`, if the store can promise that."""
        self._store = store
        self._lease: Lease | None = None
        self._trouble: SessionActorError | None = None
        self._saved_seq = 0
        self.level: Level = level
        self.book = Book()

    async def open(self, *, create: bool) -> None:
        """Read the book. `create`: begin one when there is none.

        What keeps it from being read is no reason not to start: it is raised by whatever needs the book.
        """
        try:
            self._lease = await self._acquired(create=create)
            if self._lease is not None:
                await self._load(self._lease)
        except PersistenceError as error:
            self._trouble = translate(error)
        except OSError as error:
            self._trouble = StoreError.of("the hooks that are pending cannot be read", error, "open the service again")
        except SessionActorError as error:  # records of a newer version
            self._trouble = error

    async def _acquired(self, *, create: bool) -> Lease | None:
        """First as one that is there: where it may have been lost to damage, that says so."""
        try:
            return await self._store.acquire(HOOKS, create=False)
        except (SessionUnknown, SessionTombstoned):
            return await self._store.acquire(HOOKS, create=True) if create else None

    async def begin(self) -> None:
        """Begin a book, if there is none yet."""
        if self._lease is None and self._trouble is None:
            await self.open(create=True)

    async def _load(self, lease: Lease) -> None:
        before: int | None = None
        while True:
            loaded = await self._store.load(lease, before=before)
            book = Book() if loaded.snapshot is None else Book.read(loaded.snapshot.data)
            if book is not None or loaded.snapshot is None:
                break
            before = loaded.snapshot.seq
        self._saved_seq = 0 if loaded.snapshot is None else loaded.snapshot.seq
        self.book = book or Book()
        for record in loaded.records:
            if record.kind != "store.gap":
                self.book.apply(decode(record.kind, record.data), record.at_us)

    @property
    def trouble(self) -> SessionActorError | None:
        """Why the book could not be read; None: it could."""
        return self._trouble

    def check(self) -> None:
        """Raises a new error of that when the book could not be read."""
        if self._trouble is not None:
            raise remade(self._trouble, type(self._trouble))

    def append(self, record: AnyRecord) -> int:
        """Queue a record, and change the book by it; returns its position in the store.

        Raises Fenced, and why the book could not be read; then nothing was changed.
        """
        self.check()
        lease = self._lease
        if lease is None:
            raise StoreError("there is no book of pending hooks; open the service again")
        at_us = now_us()
        try:
            position = self._store.append(lease, lease.appended_seq + 1, at_us, record.kind, record, _WEIGHT)
        except Fenced as error:
            raise translate(error) from None
        self.book.apply(record, at_us)
        self._store.reach(self.level)
        return position

    def admit(self) -> None:
        """Raises StoreDegraded, BacklogFull and their kin when the store takes no records at present."""
        try:
            self._store.admit(self.level)
        except PersistenceError as error:
            raise translate(error) from None

    async def kept(self, position: int) -> None:
        """Wait until that record cannot be lost with the process. Raises NotDurable and its kin."""
        try:
            await self._store.flush(self.level, position)
        except PersistenceError as error:
            raise translate(error) from None

    @property
    def grown(self) -> bool:
        """Whether it is time to `shorten`."""
        return self._lease is not None and self._lease.appended_seq - self._saved_seq >= EVERY_RECORDS

    async def shorten(self) -> None:
        """Save the book, and drop the files before. What the disk refuses is tried again after as many records."""
        lease = self._lease
        if lease is None:
            return
        seq = self._saved_seq = lease.appended_seq
        try:
            self._store.save(lease, seq, self.book.saved())
            await self._store.saved(lease, seq)
            await self._store.prune(lease, ())
        except (PersistenceError, OSError):
            return
