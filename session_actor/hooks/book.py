"""What is pending, of which sessions: what the records of the book add up to. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, assert_never

import msgspec

from session_actor.persistence.errors import ValueUnreadable
from session_actor.persistence.format import values

from .records import (
    DeletionAsked,
    DeletionDone,
    HookBegun,
    HookCut,
    HookDiscarded,
    HookDone,
    HookDriven,
    HookFailed,
    HooksDue,
    HooksVoid,
)

if TYPE_CHECKING:
    from .records import AnyRecord

VERSION: Final = 1


class Due(msgspec.Struct, omit_defaults=True):
    """One hook that is still to run."""

    name: str
    key: str
    attempt: int = 0
    """How many tries have begun."""
    failures: int = 0
    """How many of them failed, since it was last driven."""
    unfinished: int = 0
    """How many of them were never heard of again, since then: the process died, unless one is running."""
    error: str | None = None
    """The type of the newest error."""
    dead: bool = False


class Entry(msgspec.Struct):
    """A session that has ended, and what must still be done for it."""

    session: str
    birth: str
    created_at_us: int
    reason: str
    ended_at_us: int
    hooks: dict[str, Due]
    """By key, in the order in which they begin."""
    delete: bool = False


class _SavedEntry(msgspec.Struct, frozen=True, array_like=True):
    session: str
    birth: str
    created_at_us: int
    reason: str
    ended_at_us: int
    hooks: tuple[Due, ...]
    delete: bool

    def entry(self) -> Entry:
        hooks = {due.key: due for due in self.hooks}
        return Entry(
            self.session, self.birth, self.created_at_us, self.reason, self.ended_at_us, hooks, delete=self.delete
        )


class _Saved(msgspec.Struct, frozen=True):
    version: int
    entries: tuple[_SavedEntry, ...]


class Book:
    """The entries of all sessions."""

    def __init__(self) -> None:
        """Nothing is pending."""
        self.entries: dict[str, Entry] = {}
        """By session, oldest first."""
        self._places: dict[str, Entry] = {}

    def find(self, key: str) -> tuple[Entry, Due] | None:
        """The hook of this key; None: it is not pending."""
        entry = self._places.get(key)
        return None if entry is None else (entry, entry.hooks[key])

    def apply(self, record: AnyRecord, at_us: int) -> None:
        """Change the book by a record. One that speaks of what is not there has no effect."""
        match record:
            case HooksDue():
                self._due(record, at_us)
            case HooksVoid() | DeletionDone():
                self._forget(record.session)
            case DeletionAsked():
                entry = self.entries.get(record.session)
                if entry is not None:
                    entry.delete = True
            case HookDone() | HookDiscarded():
                self._through(record.hook)
            case HookBegun() | HookCut() | HookFailed() | HookDriven():
                found = self._places.get(record.hook)
                if found is not None:
                    _count(found.hooks[record.hook], record)
            case _:
                assert_never(record)

    def _due(self, record: HooksDue, at_us: int) -> None:
        """An older entry of the session is of an end that never came."""
        self._forget(record.session)
        hooks = {key: Due(name, key) for name, key in record.hooks}
        entry = Entry(
            record.session, record.birth, record.created_at_us, record.reason, at_us, hooks, delete=record.delete
        )
        self._add(entry)

    def _add(self, entry: Entry) -> None:
        self.entries[entry.session] = entry
        self._places.update(dict.fromkeys(entry.hooks, entry))

    def _forget(self, session: str) -> None:
        entry = self.entries.pop(session, None)
        for key in () if entry is None else entry.hooks:
            del self._places[key]

    def _through(self, key: str) -> None:
        entry = self._places.pop(key, None)
        if entry is not None:
            del entry.hooks[key]
            if not entry.hooks and not entry.delete:
                del self.entries[entry.session]

    def saved(self) -> bytes:
        """The book as JSON."""
        return values.encode_record_data(_Saved(VERSION, tuple(_saved(entry) for entry in self.entries.values())))

    @classmethod
    def read(cls, data: bytes | msgspec.Raw) -> Book | None:
        """The book that was saved; None: another version saved it."""
        try:
            saved = values.decode_typed(data, _Saved)
        except ValueUnreadable:
            return None
        if saved.version != VERSION:
            return None
        book = cls()
        for entry in saved.entries:
            book._add(entry.entry())
        return book


def _saved(entry: Entry) -> _SavedEntry:
    hooks = tuple(entry.hooks.values())
    return _SavedEntry(
        entry.session, entry.birth, entry.created_at_us, entry.reason, entry.ended_at_us, hooks, entry.delete
    )


def _count(due: Due, record: HookBegun | HookCut | HookFailed | HookDriven) -> None:
    match record:
        case HookBegun():
            due.attempt += 1
            due.unfinished += 1
        case HookCut():
            due.attempt -= 1
            due.unfinished -= 1
        case HookFailed():
            due.failures += 1
            due.unfinished = max(0, due.unfinished - 1)
            due.error, due.dead = record.error, record.dead
        case HookDriven():
            due.failures = due.unfinished = 0
            due.dead = False
