"""Every error of the store, one tree under `PersistenceError`.

Each says what went wrong, where, and what to do next. None carries content of a conversation.
"""

from __future__ import annotations

from typing import ClassVar

from .advice import repair_command, root_of, verify_command


class PersistenceError(Exception):
    """The root: everything that persistence raises on purpose derives from it."""

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Copy and pickle by attributes, because subclasses take other arguments than their message."""
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(kind: type[PersistenceError], args: tuple[object, ...], attributes: dict[str, object]) -> PersistenceError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


# --- opening a store -------------------------------------------------------------------------------------------------


class StoreLocked(PersistenceError):
    """Another process (or another store object of this one) has the store open. One process per store."""

    def __init__(self, path: str, pid: int | None, why: str = "", *, here: bool = False) -> None:
        """`pid`: the holder, None when it could not be read. `why` replaces the usual explanation.

        `here`: it is this process that has it. Its pid alone does not say so: the next container has the same ones.
        """
        unknown = "another process (its pid is not in LOCK: `fuser` or `lsof` on that file name it)"
        holder = unknown if pid is None else f"process {pid}"
        ours = (
            "this process has it open already: go on with the service or store that has it, close that first, or use "
            "another directory"
        )
        theirs = (
            f"it is in use by {holder}; one process per store: stop that process, wait until it hands over or ends "
            "(lock_timeout_s), or use another directory; of several workers (uvicorn --workers) only one can have it: "
            "run one, or give each worker a directory and its sessions"
        )
        why = why or (ours if here else theirs)
        super().__init__(f"cannot open the store at {path}: {why}")
        self.path = path
        self.pid = pid


class NetworkFileSystem(PersistenceError):
    """The directory is on a network file system, where locks and syncs cannot be trusted."""

    def __init__(self, path: str, kind: str) -> None:
        """`kind`: the type of the file system as the kernel names it."""
        super().__init__(
            f"{path} is on a network file system ({kind}), where locks and syncs cannot be trusted; "
            "use a local disk, or pass allow_network_fs=True if you know that it keeps both"
        )
        self.path = path
        self.kind = kind


class NotAStore(PersistenceError):
    """The directory is no store: it is not there, or holds somebody else's files. Nothing in it was touched."""

    def __init__(self, path: str, why: str) -> None:
        """`why`: what it is, and what to do."""
        super().__init__(f"{path} is no session-actor store: {why}")
        self.path = path
        self.why = why


class StoreVersionTooNew(PersistenceError):
    """A file needs something that this version does not know. It was left untouched."""

    def __init__(self, path: str, found: str, supported: str) -> None:
        """`found` and `supported`: what the file asks for and what this version reads."""
        super().__init__(
            f"{path} needs {found}, this version reads {supported}; "
            "the file was left untouched: upgrade session-actor to read it"
        )
        self.path = path
        self.found = found
        self.supported = supported


class StoreClosed(PersistenceError):
    """The store is not open: not yet, or no longer, or it was inherited by a forked child."""


# --- damage ----------------------------------------------------------------------------------------------------------


class LineDamaged(PersistenceError):
    """One line failed its own check. The reader that knows the path and the offset turns it into its own error."""


class ValueUnreadable(PersistenceError):
    """Stored JSON holds a tag that this version does not know, or a tag with an impossible value."""


class StoreCorrupt(PersistenceError):
    """A file of the store is damaged; nothing of it was changed."""

    _loses_records: ClassVar[bool] = False

    def __init__(self, path: str, why: str) -> None:
        """`why`: what is wrong, with the place inside the file."""
        root = root_of(path)
        super().__init__(
            f"{path} is damaged: {why}; nothing was changed: `{verify_command(root)}` tells what else is damaged, "
            f"{self._mend(root)}"
        )
        self.path = path
        self.why = why

    def _mend(self, root: str) -> str:
        if not self._loses_records:
            return f"`{repair_command(root)}` mends what no record is lost by, and says what to do about the rest"
        return (
            f"`{repair_command(root, salvage='readable')}` keeps all that can be read (`--salvage prefix`: what is "
            "before the loss; without --write it only tells)"
        )


class CatalogCorrupt(StoreCorrupt):
    """The catalog cannot be read, or one of its rows fails its sum."""


class LogCorrupt(StoreCorrupt):
    """A line in the middle of the log is damaged: what follows it had been synced."""

    _loses_records: ClassVar[bool] = True

    def __init__(
        self, path: str, offset: int, why: str = "a line fails its check though later bytes were synced"
    ) -> None:
        """`offset`: the byte at which the damaged line starts."""
        super().__init__(path, f"{why} (offset {offset})")
        self.offset = offset


class JournalCorrupt(StoreCorrupt):
    """A line inside the valid part of a journal is damaged."""

    _loses_records: ClassVar[bool] = True

    def __init__(self, path: str, offset: int, seq: int, why: str = "a line fails its check") -> None:
        """`offset`: where the damaged line starts [bytes]. `seq`: the record that should stand there; 0: not known."""
        which = f", record {seq}" if seq else ""
        super().__init__(path, f"{why} (offset {offset}{which})")
        self.offset = offset
        self.seq = seq


class JournalTruncated(StoreCorrupt):
    """A journal is shorter than the catalog says, or gone."""

    _loses_records: ClassVar[bool] = True

    def __init__(self, path: str, expected_bytes: int, found_bytes: int) -> None:
        """Lengths in bytes; a missing file has 0."""
        super().__init__(path, f"it has {found_bytes} of {expected_bytes} bytes")
        self.expected_bytes = expected_bytes
        self.found_bytes = found_bytes


# --- refused before anything changed ---------------------------------------------------------------------------------


class UnusableId(PersistenceError):
    """A session id must be a non-empty str of at most 512 characters."""


class ValueNotStorable(PersistenceError):
    """A value would not come back as it was given."""

    def __init__(self, where: str, why: str) -> None:
        """`where`: the place inside the value, such as `$.tools[2]`."""
        super().__init__(f"the value at {where} cannot be stored: {why}")
        self.where = where
        self.why = why


class RecordTooLarge(PersistenceError):
    """A record is over the cap of one record."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        """`size_bytes`: what the encoded data takes at least. `limit_bytes`: what it may take."""
        super().__init__(
            f"a record of at least {size_bytes} bytes is over the limit of {limit_bytes}; store it in smaller parts"
        )
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes


class BacklogFull(PersistenceError):
    """Too many records wait for the disk; nothing was changed. Try again in a moment."""

    def __init__(self, records: int, size_bytes: int) -> None:
        """What waits now."""
        super().__init__(
            f"{records} records ({size_bytes} bytes) wait for the disk; nothing was changed: "
            "try again when the backlog is shorter (see health())"
        )
        self.records = records
        self.size_bytes = size_bytes


class StoreDegraded(PersistenceError):
    """The disk does not take records at present; nothing was changed. It recovers by itself."""

    def __init__(self, why: str) -> None:
        """`why`: the last error of the disk."""
        super().__init__(f"the store cannot write at present ({why}); nothing was changed: try again, and see health()")
        self.why = why


class LevelUnreachable(PersistenceError):
    """This store cannot promise the level that was asked for."""

    def __init__(self, level: str, reachable: tuple[str, ...]) -> None:
        """`reachable`: the levels that it can promise."""
        super().__init__(f"this store cannot promise {level!r:.64}, only {', '.join(reachable)}")
        self.level = level
        self.reachable = reachable


# --- afterwards ------------------------------------------------------------------------------------------------------


class NotDurable(PersistenceError):
    """A change was applied and is queued, but the level that was asked for could not be reached."""

    def __init__(self, seq: int, level: str, why: str) -> None:
        """`seq`: the first record concerned. `why`: the error of the disk."""
        super().__init__(
            f"record {seq} is applied and queued, but not {level} ({why}); "
            "flush, or retry with the same key: do not send it anew"
        )
        self.seq = seq
        self.level = level
        self.why = why


class Fenced(PersistenceError):
    """The lease is no longer valid: another owner has the session, or it was released or deleted. Never retry."""

    def __init__(self, session: str, why: str = "another owner has it") -> None:
        """`session`: the id. `why`: what ended the lease."""
        super().__init__(f"the lease on session {session!r} is over: {why}; acquire it anew, do not retry")
        self.session = session


class SessionUnknown(PersistenceError):
    """No session of this id has ever had a record here."""

    def __init__(self, session: str, advice: str = "create it first") -> None:
        """`session`: the id. `advice`: what to do."""
        super().__init__(f"there is no session {session!r}; {advice}")
        self.session = session


class SessionTombstoned(PersistenceError):
    """The session was deleted. Creating the id again makes a new session."""

    def __init__(self, session: str) -> None:
        """`session`: the id."""
        super().__init__(f"session {session!r} was deleted; creating it again starts a new, empty one")
        self.session = session
