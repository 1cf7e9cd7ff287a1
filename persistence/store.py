"""What a store of sessions promises: the protocol, and the values that pass through it.

A store keeps, for each session, records numbered 1, 2, 3 … A session exists from its first record on. Whoever wants to
append must hold a `Lease`; acquiring a session again ends every earlier lease on it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

import msgspec

from .format.record import Record

Level = Literal["async", "written", "synced"]
"""How safe an acknowledged change is: in memory, with the operating system, on the disk."""

LEVELS: Final[tuple[Level, ...]] = ("async", "written", "synced")
"""The levels, weakest first."""


class Progress(Protocol):
    """How far a session is: its newest record at each level, 0 when there is none."""

    appended_seq: int
    written_seq: int
    synced_seq: int


class Lease:
    """The right to append to one session, as `Store.acquire` gave it. Only its store changes it.

    `session`, `birth`: which session, and which creation of its id. `token`: larger for every later lease of the store.
    `live`: False once it is over (`Fenced`). `state`: what the store itself knows of the session.
    """

    __slots__ = ("__weakref__", "birth", "live", "session", "state", "token")

    def __init__(self, session: str, birth: str, token: int, state: Progress) -> None:
        """`state` is kept by the store; the lease shows how far the session is from it."""
        self.session = session
        self.birth = birth
        self.token = token
        self.state = state
        self.live = True

    @property
    def appended_seq(self) -> int:
        """The newest record of the session."""
        return self.state.appended_seq

    @property
    def written_seq(self) -> int:
        """The newest record that the operating system has."""
        return self.state.written_seq

    @property
    def synced_seq(self) -> int:
        """The newest record that the disk has."""
        return self.state.synced_seq

    def __repr__(self) -> str:
        """Id, birth and numbers."""
        return f"Lease({self.session!r}, birth={self.birth!r}, token={self.token}, appended_seq={self.appended_seq})"


class TornTail(msgspec.Struct, frozen=True):
    """Bytes at the end of a log segment that a crash left unfinished; no synced record was among them."""

    path: str
    offset: int
    """The byte at which the unfinished part starts."""
    size_bytes: int
    kept_at: str | None
    """The file that keeps the bytes aside; None when there was nothing but zeros, or the disk is full."""


Recovery = Literal["strict", "prefix", "readable"]
"""What is done with a damaged session when it is loaded: it is refused, or what can be kept of it is kept.

`prefix`: its records up to the first one that is lost. `readable`: all that can be read, with gaps for the others.
"""

RECOVERIES: Final[tuple[Recovery, ...]] = ("strict", "prefix", "readable")


class Lost(msgspec.Struct, frozen=True):
    """Records that are lost: a gap stands for them."""

    first: int
    last: int
    why: str
    """`damaged`: their bytes could not be read; `missing`: they were not there; `unfit`: they did not follow."""


class RecoveryReport(msgspec.Struct, frozen=True):
    """Where the records of a session came from, and what was found damaged on the way."""

    session: str
    birth: str
    seq: int
    """The newest record; 0 for a session without any."""
    journal_records: int = 0
    log_records: int = 0
    queue_records: int = 0
    """Records served from memory, which the store had not yet written."""
    torn: tuple[TornTail, ...] = ()
    """Torn ends found when the store was opened; they may have held newer records of any session."""
    duration_ms: float = 0.0
    snapshot_seq: int = 0
    """The record after which the snapshot that was used was taken; 0: none was, all records were read."""
    rejected: tuple[str, ...] = ()
    """Files of snapshots that could not be used: damaged, or not of these records."""
    gaps: tuple[Lost, ...] = ()
    """Records that are lost, among those that were read."""
    dropped: int = 0
    """Records that do not count any more, beside those in `gaps`: salvage left them out when this was loaded.

    `prefix`: all behind the last one that is kept; `readable`: those that fit nowhere.
    """
    kept_at: tuple[str, ...] = ()
    """Where the originals are, when salvage changed the session when this was loaded."""
    checkpoints: tuple[str, ...] = ()
    """What the session's owner named behind gaps, because it might be held by nothing else."""

    @property
    def clean(self) -> bool:
        """Whether nothing was found damaged or lost."""
        return not (self.torn or self.rejected or self.gaps or self.dropped)


class Snapshot(msgspec.Struct, frozen=True):
    """What a session was after one of its records, as its owner described it with `Store.save`."""

    seq: int
    sum: str
    """Sum of that record: `prev` of the next one."""
    data: msgspec.Raw
    """JSON, opaque to the store."""

    def __repr__(self) -> str:
        """Without the data, which may be private."""
        return f"Snapshot(seq={self.seq}, sum={self.sum!r})"

    def __rich_repr__(self) -> Any:
        """None, so that rich takes `repr`, too: it would show all fields."""
        return None


class LoadedSession(msgspec.Struct, frozen=True):
    """One session: the snapshot that was used, if any, the records behind it in order, and how they were found."""

    records: Sequence[Record]
    report: RecoveryReport
    snapshot: Snapshot | None = None


class Pruned(msgspec.Struct, frozen=True):
    """What `Store.prune` dropped: `files` whole files, `size_bytes` in all. A store without files counts bytes only."""

    files: int = 0
    size_bytes: int = 0


class Archive(Protocol):
    """The records of one birth of a session that add frames, whoever has the lease, as long as the store is open.

    Both methods raise `StoreClosed`; `SessionTombstoned` once the session is deleted; `StoreCorrupt` for damaged
    records; OSError when the disk refuses.
    """

    def read(self, ids: Iterable[int]) -> list[Record]:
        """The records that add these frames, each once, in the order of `seq`. Blocks.

        What a record adds is told by `frame_index`. Frames that are nowhere, or were dropped, have none.
        """
        ...

    async def fetch(self, ids: Iterable[int]) -> list[Record]:
        """`read`, off the loop. Cancelling gives up the wait."""
        ...


class SessionInfo(msgspec.Struct, frozen=True):
    """One session in a listing."""

    id: str
    birth: str
    created_at_us: int
    """When its first record was made: microseconds since the epoch, UTC."""
    seq: int
    """Its newest record."""
    size_bytes: int
    """Bytes in its journals; what still waits in the log is not counted."""


class StoreHealth(msgspec.Struct, frozen=True):
    """How the store is.

    Positions count the records of all sessions since it was opened, and, where a full disk had no room to make them
    durable then, those that a process that was killed had written last.
    """

    appended_position: int
    written_position: int
    synced_position: int
    backlog_records: int = 0
    """Records that wait to be written."""
    backlog_bytes: int = 0
    """Their weight, as `append` was told it; the length of their lines, once those are made.

    After a sync was refused, what was written and not synced is among them: it is written again.
    """
    last_error: str | None = None
    """The newest error of the disk, also when the disk works again since."""
    last_error_at_us: int | None = None
    """When that was, microseconds since the epoch."""
    degraded_since_us: int | None = None
    """Since when the disk takes no records, microseconds since the epoch; None: it takes them."""
    last_cut_us: int | None = None
    """When log segments were last moved into journals; None: not since the store was opened."""
    last_snapshot_us: int | None = None
    """When a snapshot of a session was last made durable; None: not since the store was opened."""
    live_segments: int = 0
    """Log segments that are not yet cut."""
    refused_folders: tuple[str, ...] = ()
    """Folders of journals that take nothing: what belongs there stays in the log, which grows."""


Reached = Callable[[BaseException | None], None]
"""Told once: None when the level is reached, else why it will not be."""


class Store(Protocol):
    """Where sessions are kept. All methods are called on one event loop, in one thread.

    `admit`, `append`, `reach` and `when` may be called in the very context of whoever changes a session, so they set no
    context variables.
    """

    admitted: tuple[Level, ...]
    """The levels that `admit` would let pass right now, so that a caller need ask `admit` for no other:

        if level not in store.admitted:
            store.admit(level)

    Empty as long as the store is not open, is degraded, or its backlog is full. A tuple, which takes any question: a
    set would raise TypeError for what is not even hashable.
    """

    async def open(self) -> None:
        """Take the lock and read what is there.

        Raises `StoreLocked`, `NetworkFileSystem`, `NotAStore`, `StoreVersionTooNew`, `StoreCorrupt`. When it raises or
        is cancelled, nothing is held. Opening an open store is an error (`StoreLocked`).
        """
        ...

    async def close(self) -> None:
        """Write and sync what is queued, then let go of everything; again: no effect.

        Raises `NotDurable` when something could not be written; the store is closed all the same. Cancelling gives
        up the wait for the disk, and the store is closed.
        """
        ...

    def workers(self) -> Mapping[str, Callable[[], Awaitable[None]]]:
        """The background jobs that somebody must run and restart, by name; a restarted one goes on where it stopped."""
        ...

    async def acquire(self, session: str, *, create: bool) -> Lease:
        """Become the owner of `session`; every earlier lease on it is over.

        `create`: also when there is no such session (or it was deleted): it then gets a new birth, and exists from its
        first record on. Raises `UnusableId`; unless `create`, `SessionUnknown` and `SessionTombstoned`; damage that
        concerns the session as `StoreCorrupt`. Cancelling leaves it with its earlier owner or with nobody.
        """
        ...

    async def load(self, lease: Lease, *, before: int | None = None, snapshots: bool = True) -> LoadedSession:
        """The newest good snapshot and the records behind it, those included that are not yet written.

        `before`: only snapshots after a record older than this one, because the caller cannot use the newer ones, which
        do not count among those that are kept any more; None: any. Without a snapshot all records come, from the first
        on. `snapshots` False: no snapshot; all records come from the first that is still followed by all others, which
        is not 1 in a session that was pruned.

        Raises `Fenced`; `StoreCorrupt` when the session's own records are damaged, or when it was pruned and no
        snapshot can be used. Cancelling gives up the wait.
        """
        ...

    def save(self, lease: Lease, seq: int, data: bytes) -> None:
        """Queue a snapshot: what the session was after record `seq`. The newest queued one of a session counts.

        `data`: JSON on one line, in which values are encoded as in records (see `values`). It is durable only after all
        records up to `seq`; the two newest are kept. When that fails, `health` tells, and it is tried again.

        Raises `Fenced`, `StoreClosed`; ValueError for a `seq` that is no record's or data with a line end;
        `RecordTooLarge`.
        """
        ...

    async def saved(self, lease: Lease, seq: int) -> None:
        """Wait until a snapshot after record `seq`, or after a newer one, is as durable as the store can make it.

        Raises `Fenced`, `StoreClosed`; `NotDurable` when none was queued, or the disk refuses. Cancelling gives up the
        wait.
        """
        ...

    def archive(self, lease: Lease) -> Archive:
        """What reads single records of the session later on, also when the lease is over. Raises `Fenced`."""
        ...

    async def prune(self, lease: Lease, dropped: Sequence[tuple[int, int]]) -> Pruned:
        """Give room back: drop old records in whole files, where all frames that a file adds are dropped.

        `dropped`: ids of frames that nobody will ask for, as runs of first and last. A file is dropped only when it
        lies wholly before the older of the snapshots that are kept, so that each can still be used; files that add no
        frames at all are dropped, too. Without any snapshot nothing is. No line is rewritten.

        Raises `Fenced`, `StoreCorrupt`, `NotDurable`, OSError; then nothing was dropped. Once started it completes,
        even if the caller is cancelled.
        """
        ...

    def admit(self, level: Level) -> None:
        """Whether the next append may come: call it before changing anything.

        Raises `LevelUnreachable`, `BacklogFull`, `StoreDegraded`, `StoreClosed`. Cheap.
        """
        ...

    def append(  # noqa: PLR0917 - called for every change: keywords cost
        self, lease: Lease, seq: int, at_us: int, kind: str, data: object, weight: int
    ) -> int:
        """Queue one record and return its position in the store: 1, 2, 3 …, strictly + 1.

        `seq` must be `lease.appended_seq + 1` (ValueError otherwise: a bug of the caller). `at_us`: microseconds since
        the epoch. `data` must not change any more: it is encoded later, by `values.encode_record_data`. `weight`: its
        rough size in bytes. Raises `Fenced` alone, and then nothing was queued.
        """
        ...

    def reach(self, level: Level) -> None:
        """Somebody waits for `level` of the last append: write at once if that is quick, else wake the writer."""
        ...

    @property
    def written_position(self) -> int:
        """Every record up to this position is `written`."""
        ...

    @property
    def synced_position(self) -> int:
        """Every record up to this position is `synced`; never more than `written_position`."""
        ...

    def when(self, level: Level, position: int, callback: Reached) -> None:
        """Call `callback(None)` once `position` is at `level`, or `callback(NotDurable)` when that fails.

        Called exactly once, on the loop, callbacks of one level in the order of their positions; at once, before `when`
        returns, when the level is already reached. Raises `LevelUnreachable`.
        """
        ...

    async def flush(self, level: Level, position: int | None = None) -> None:
        """Wait until `position` is at `level`; None: all that is appended now.

        Raises `NotDurable` or `StoreDegraded` when the disk refuses, and `LevelUnreachable`. Cancelling gives up the
        wait.
        """
        ...

    def release(self, lease: Lease) -> None:
        """Give the session up; again, or with a lease that is over: no effect. Its queued records are still written."""
        ...

    async def delete(self, lease: Lease) -> None:
        """Delete the session for ever: a synced tombstone first, then its files. The lease is over.

        Raises `Fenced`, `NotDurable`, `StoreDegraded`. Once started it completes, even if the caller is cancelled.
        """
        ...

    def sessions(self, prefix: str = "") -> AsyncIterator[SessionInfo]:
        """Every session whose id starts with `prefix`, in the order of ids by code point; reads no bodies."""
        ...

    def health(self) -> StoreHealth:
        """How the store is now. Cheap."""
        ...
