"""A store with everything in it, to be damaged: sealed journals, snapshots, a prune, a gap, dead births, a log.

What a store that is opened on its files holds is judged record by record: each must be the one that was there, in its
place; what is missing at the end must be said to be torn, and was shown by no sound line to be synced.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from session_actor.persistence import (
    FileStore,
    Lease,
    PersistenceError,
    Record,
    SessionTombstoned,
    SessionUnknown,
    StoreCorrupt,
    StoreVersionTooNew,
)
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.format.frame_index import frames_of
from session_actor.persistence.format.record import decode_record
from session_actor.persistence.journals.journal import Part

from ..persistence.conformance_tools import copied, push, say
from ..persistence.log_lines import decode_log_line
from ..simulation.disk import SimDisk
from ..simulation.image import Image
from ..simulation.life import ROOT, new_image
from ..simulation.loop import SimLoop
from .specimen import Files, files_of, image_of, lines_of

SESSIONS = ("ann", "ben", "pruned", "\ud800/gap")
DEAD = "gone"
TEXTS = ("", 'line\nend \x00 "q"', "é \ud800", "x" * 300)
REFUSED = (StoreCorrupt, StoreVersionTooNew)
EVERY_FRAME = range(1, 200)


class Shape(NamedTuple):
    """How much there is of everything."""

    sizes: dict[str, Any]
    """Those at which a segment and a journal are full."""
    last_bytes: int
    """The size at which the last segment is full."""
    rounds: int
    """Each makes records of every kind; after each but the last the log is cut."""
    pruned: int
    """The frames up to this one are pruned."""


SIZES: dict[str, Any] = {"segment_bytes": 2000, "journal_bytes": 900}
SMALL = Shape(SIZES, last_bytes=2000, rounds=5, pruned=8)
LARGE = Shape({"segment_bytes": 2000, "journal_bytes": 3500}, last_bytes=9000, rounds=7, pruned=20)
"""Its files hold more than 20 records each."""


class Truth(NamedTuple):
    """What a session holds."""

    birth: str
    records: dict[int, Record]
    """Those that a load reads, by seq."""
    snapshots: dict[int, bytes]
    in_journals: int
    """The newest record that the catalog vouches for."""

    @property
    def first(self) -> int:
        return min(self.records)

    @property
    def last(self) -> int:
        return max(self.records)

    def frames(self, last: int) -> dict[int, int]:
        """The record of each frame, by seq, up to record `last`."""
        return {
            frame: seq
            for seq, record in self.records.items()
            for frame in frames_of(record.kind, record.data)
            if seq <= last
        }


class Grown(NamedTuple):
    """The files of a store, and what it holds."""

    files: Files
    truths: dict[str, Truth]


class Loaded(NamedTuple):
    """What one load of a session gave."""

    birth: str
    snapshot: tuple[int, bytes] | None
    records: list[Record]
    torn: bool


# --- growing ----------------------------------------------------------------------------------------------------------


def grown(loop: SimLoop, shape: Shape = SMALL, *, settled: bool = True) -> Grown:
    """Grow a store and take its files as the death of the process leaves them; `settled`: after it was idle."""
    return loop.run(_grown(shape, settled=settled))


async def _grown(shape: Shape, *, settled: bool) -> Grown:
    image, last = new_image(), shape.rounds - 1
    store = FileStore(ROOT, disk=SimDisk(image), **shape.sizes)
    await store.open()
    await store.delete(await _said(store, DEAD))
    await store.delete(await _said(store, "ben"))
    leases = {session: await store.acquire(session, create=True) for session in SESSIONS}
    frames = dict.fromkeys(SESSIONS, 1)
    snapshots: dict[str, dict[int, bytes]] = {session: {} for session in SESSIONS}
    in_journals: dict[str, int] = {}
    for turn in range(shape.rounds):
        for session, lease in leases.items():
            frames[session] = _grow(store, lease, frames[session], turn)
            if turn == last:
                await store.flush("written")
                log = store._engine.log
                log.segment_bytes = log.current.room_bytes = shape.last_bytes
        await store.flush("synced")
        if turn == 1:
            await _lose_a_record(store, image, leases[SESSIONS[3]])
        if turn in {last - 2, last - 1}:
            for session, lease in leases.items():
                snapshots[session][lease.appended_seq] = await _saved(store, lease)
        if turn < last:
            await _cut(store)
            rows = {session: store._engine.catalog.get(session) for session in SESSIONS}
            in_journals = {session: row.seq for session, row in rows.items()}
    assert (await store.prune(leases["pruned"], [(1, shape.pruned)])).files
    if settled:
        await store._engine.settle()
    files = files_of(image)
    truths = {
        session: Truth(lease.birth, await _records(store, lease), snapshots[session], in_journals[session])
        for session, lease in leases.items()
    }
    await store.close()
    assert truths["pruned"].first > 1
    assert any(record.kind == "store.gap" for record in truths[SESSIONS[3]].records.values())
    return Grown(files, truths)


async def _said(store: FileStore, session: str) -> Lease:
    lease = await store.acquire(session, create=True)
    say(store, lease, "of a birth that is dead")
    return lease


def _grow(store: FileStore, lease: Lease, frame: int, turn: int) -> int:
    """Records of every kind and size; returns the next frame."""
    push(store, lease, 3, first=frame)
    say(store, lease, f"{turn} {TEXTS[turn % 4]}", TEXTS[(turn + 1) % 4])
    copied(store, lease, [frame + 3, frame + 4])
    push(store, lease, 1, first=frame + 5)
    return frame + 6


async def _cut(store: FileStore) -> None:
    while await store._engine.cutter.cut():
        pass


async def _lose_a_record(store: FileStore, image: Image, lease: Lease) -> None:
    """A record in the first journal is damaged, and the session salvaged."""
    await _cut(store)
    data = image.file(f"{ROOT}/journals/{journal_path(lease.session, 1)}").data
    data[data.index(b'"seq":3,') + 20] ^= 1
    await store.salvage(lease, "readable")


async def _saved(store: FileStore, lease: Lease) -> bytes:
    data = b'{"after":%d}' % lease.appended_seq
    store.save(lease, lease.appended_seq, data)
    await store.saved(lease, lease.appended_seq)
    return data


async def _records(store: FileStore, lease: Lease) -> dict[int, Record]:
    return {record.seq: record for record in (await store.load(lease, snapshots=False)).records}


def owner(path: str) -> str:
    """Whose journal or snapshot a file is."""
    name = path.rpartition("/")[2].rpartition("-")[0]
    return next(session for session in SESSIONS if journal_path(session, 1).endswith(f"/{name}-1.ndjson"))


def part_of(store: FileStore, path: str) -> Part:
    """The valid part of a journal file, as the catalog has it."""
    row = store._engine.catalog.get(owner(path))
    number = int(path.rpartition("-")[2].partition(".")[0])
    for sealed in store._engine.catalog.files.of(row.session, row.birth):
        if sealed.number == number:
            return Part.of(sealed)
    return Part(row.journal, row.bytes, row.bytes, None, row.seq, row.sum, row.crc)


# --- opening what was damaged -----------------------------------------------------------------------------------------


async def judged(
    store: FileStore, truths: dict[str, Truth], least: dict[str, int], ways: Iterable[bool], *, absent: bool = False
) -> list[str]:
    """What is wrong with the sessions of an open store, loaded with snapshots or without, and read by the archive.

    `least`: the newest record that each must hold at least. `absent`: the catalog is damaged, and with it which file
    holds which frame: then the archive may find none, and who wants a frame that must be there refuses the session.
    """
    problems: list[str] = []
    for session, truth in truths.items():
        last = 0  # a session that is refused has nobody who asks for its frames
        for snapshots in ways:
            found = await loaded(store, session, snapshots=snapshots)
            if isinstance(found, Loaded):
                problems += [f"{session!r}, {snapshots=}: {what}" for what in wrong(truth, found, least[session])]
                last = _end(found)
        problems += [
            f"{session!r}: {what}" for what in await wrong_frames(store, session, truth, 0 if absent else last)
        ]
    return problems


async def loaded(store: FileStore, session: str, *, snapshots: bool) -> Loaded | PersistenceError:
    """What a load gives, or the refusal."""
    try:
        lease = await store.acquire(session, create=False)
        found = await store.load(lease, snapshots=snapshots)
        store.release(lease)
    except (SessionTombstoned, SessionUnknown):
        return Loaded("", None, [], torn=False)
    except REFUSED as error:
        return error
    snapshot = None if found.snapshot is None else (found.snapshot.seq, bytes(found.snapshot.data))
    return Loaded(lease.birth, snapshot, list(found.records), bool(found.report.torn))


def _end(found: Loaded) -> int:
    return found.records[-1].seq if found.records else (found.snapshot or (0,))[0]


def wrong(truth: Truth, found: Loaded, least: int) -> list[str]:
    """What of a load is not as it was."""
    end = _end(found)
    begin = truth.first if found.snapshot is None else found.snapshot[0] + 1
    expected = [record for seq, record in sorted(truth.records.items()) if begin <= seq <= end]
    problems = [] if found.birth == truth.birth else ["it is of another birth"]
    if found.records != expected:
        problems.append(f"records {[record.seq for record in found.records]} are not those from {begin} to {end}")
    if found.snapshot is not None and truth.snapshots.get(found.snapshot[0]) != found.snapshot[1]:
        problems.append(f"the snapshot after {found.snapshot[0]} was never taken")
    if end < least:
        problems.append(f"it ends with {end}, and {least} was shown to be synced")
    return problems


async def wrong_frames(
    store: FileStore, session: str, truth: Truth, last: int, frames: Iterable[int] = EVERY_FRAME
) -> list[str]:
    """What the archive gives must be the record of the frame; none that is held may be absent without a refusal.

    `last`: the newest record that is held.
    """
    try:
        lease = await store.acquire(session, create=False)
        records = store.archive(lease).read(frames)
        store.release(lease)
    except (SessionTombstoned, SessionUnknown, *REFUSED):
        return []
    problems = [f"record {record.seq} is another" for record in records if truth.records.get(record.seq) != record]
    held = {seq for frame, seq in truth.frames(last).items() if frame in frames} if last else set()
    absent = held - {record.seq for record in records}
    return [*problems, *([f"frames of records {sorted(absent)} are absent"] if absent else [])]


async def dead_again(store: FileStore) -> bool:
    """Whether the deleted session is back."""
    try:
        await store.acquire(DEAD, create=False)
    except (SessionTombstoned, SessionUnknown, *REFUSED):
        return False
    return True


def opened(
    loop: SimLoop, files: Files, truths: dict[str, Truth], least: dict[str, int], ways: Iterable[bool], *, quick: bool
) -> list[str] | PersistenceError:
    """Open a store on files and judge it; or the refusal to open it."""

    async def judge() -> list[str] | PersistenceError:
        disk = SimDisk(image_of(files))
        disk.trusts_pages = quick
        store = FileStore(ROOT, disk=disk, **SIZES)
        try:
            await store.open()
        except REFUSED as error:
            return error
        problems = await judged(store, truths, least, ways, absent=not quick)
        if await dead_again(store):
            problems.append("a deleted session is back")
        store._engine.let_go()
        return problems

    return loop.run(judge())


# --- what was promised ------------------------------------------------------------------------------------------------


class Shown(NamedTuple):
    """The newest record of each session that one line of the log shows to be synced."""

    path: str
    start: int
    end: int
    newest: dict[str, int]


def shown_by(made: Grown) -> list[Shown]:
    """Of each line of the log."""
    found: list[Shown] = []
    for path in sorted(path for path in made.files if "/log/0" in path):
        data = made.files[path]
        lines = lines_of(data)
        for line in lines:
            below = [data[other.start : other.end] for other in lines[1:] if other.end <= line.synced_bytes]
            newest: dict[str, int] = {}
            for read in map(decode_log_line, below):
                truth = made.truths.get(read.session) if read.birth else None
                if truth is not None and truth.birth == read.birth:
                    newest[read.session] = decode_record(bytes(read.r) + b"\n").seq
            found.append(Shown(path, line.start, line.end, newest))
    return found


def least(made: Grown, shown: list[Shown], files: Files) -> dict[str, int]:
    """The newest record of each session that must be there: the catalog vouches for it, or a line that is sound."""
    found = {session: truth.in_journals for session, truth in made.truths.items()}
    for line in shown:
        if files.get(line.path, b"")[line.start : line.end] == made.files[line.path][line.start : line.end]:
            for session, seq in line.newest.items():
                found[session] = max(found[session], seq)
    return found
