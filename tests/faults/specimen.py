"""A store's files as bytes, to be damaged, and what a store that is opened on them may hold afterwards."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from session_actor.persistence import (
    FileStore,
    PersistenceError,
    SessionTombstoned,
    SessionUnknown,
    StoreCorrupt,
    StoreVersionTooNew,
    TornTail,
)
from session_actor.persistence.format.record import NO_SUM, verify

from ..persistence.conformance_tools import say, text_of
from ..persistence.log_lines import decode_log_line
from ..simulation.disk import SimDisk
from ..simulation.image import Folder, Image, Inode
from ..simulation.life import ROOT, new_image
from ..simulation.loop import SimLoop

SESSIONS = ("ann", "ben", "\ud800/é")
Files = dict[str, bytes]
Found = dict[str, tuple[str, ...] | PersistenceError]
"""By session: its texts, or the refusal."""
Fill = Callable[[FileStore], Coroutine[Any, Any, list[tuple[str, str | None]]]]


class Specimen(NamedTuple):
    """A store as it was closed or left, and what was done in it, in order: a text for each record, None: deleted."""

    files: Files
    history: list[tuple[str, str | None]]

    def state(self, count: int | None = None) -> dict[str, tuple[str, ...]]:
        """What sessions hold of the first `count` changes; what was deleted never comes back, says the catalog."""
        found: dict[str, tuple[str, ...]] = dict.fromkeys(SESSIONS, ())
        deleted = {session: index for index, (session, text) in enumerate(self.history) if text is None}
        for index, (session, text) in enumerate(self.history[:count]):
            if text is not None and index > deleted.get(session, -1):
                found[session] = (*found[session], text)
        return found

    def states(self) -> dict[str, set[tuple[str, ...]]]:
        """Of each session, what it ever held."""
        all_states = [self.state(count) for count in range(len(self.history) + 1)]
        return {session: {state[session] for state in all_states} for session in SESSIONS}

    def path(self, part: str, index: int = 0) -> str:
        """Of the files whose path contains `part`, one."""
        return sorted(path for path in self.files if part in path)[index]


def specimen(loop: SimLoop, fill: Fill, *, segment_bytes: int = 8192, settled: bool = True) -> Specimen:
    """Fill a store and take its files as the death of the process leaves them.

    `settled`: it was idle before, so that its last line says that all was synced.
    """

    async def make() -> Specimen:
        image = new_image()
        store = FileStore(ROOT, segment_bytes=segment_bytes, disk=SimDisk(image))
        await store.open()
        history = await fill(store)
        if settled:
            await store._engine.settle()
        files = files_of(image)
        await store.close()
        return Specimen(files, history)

    return loop.run(make())


def files_of(image: Image) -> Files:
    return {path: bytes(inode.data) for path, inode in image.files().items()}


def image_of(files: Files) -> Image:
    image = Image()
    folders = {"": image.top}
    for path, data in files.items():
        above, _, name = path.rpartition("/")
        folder = folders.get(above) or _folder(folders, above)
        folder.names[name] = folder.durable[name] = Inode(data)
    return image


def _folder(folders: dict[str, Folder], path: str) -> Folder:
    """The folder at a path, made with those above it."""
    if path not in folders:
        above, _, name = path.rpartition("/")
        folder = _folder(folders, above)
        folder.names[name] = folder.durable[name] = folders[path] = Folder()
    return folders[path]


async def twenty_records(store: FileStore) -> list[tuple[str, str | None]]:
    """Three sessions in turn, short and long texts of every kind, levels mixed, one deleted and made again."""
    history: list[tuple[str, str | None]] = []
    texts = ("", "x" * 90, 'line\nend \x00 "q"', "é \ud800", '{"seq":1,"sum":"00000000"}')
    leases = {session: await store.acquire(session, create=True) for session in SESSIONS}
    for number in range(20):
        session = SESSIONS[number % 3]
        if number == 11:
            await store.delete(leases["ben"])
            history.append(("ben", None))
            leases["ben"] = await store.acquire("ben", create=True)
        text = f"{number} {texts[number % 5]}"
        say(store, leases[session], text)
        history.append((session, text))
        if number % 4 == 3:
            await store.flush("synced")
        elif number % 2:
            await store.flush("written")
    await store.flush("synced")
    return history


async def twenty_records_cut(store: FileStore) -> list[tuple[str, str | None]]:
    """The same, in journals."""
    history = await twenty_records(store)
    await store.close()
    await store.open()
    while await store._engine.cutter.cut():
        pass
    assert store.health().live_segments == 0
    return history


# --- opening what was damaged -----------------------------------------------------------------------------------------


class Opened(NamedTuple):
    """What a store holds, and what it says it tore off."""

    found: Found
    torn: tuple[TornTail, ...] = ()
    disk: SimDisk | None = None


def opened(loop: SimLoop, files: Files, *, segment_bytes: int = 8192, quick: bool = True) -> Opened:
    """Open a store on files, read every session, close it."""
    disk = SimDisk(image_of(files))
    disk.trusts_pages = quick
    return loop.run(_opened(disk, segment_bytes))


async def _opened(disk: SimDisk, segment_bytes: int) -> Opened:
    store = FileStore(ROOT, segment_bytes=segment_bytes, disk=disk)
    try:
        await store.open()
    except (StoreCorrupt, StoreVersionTooNew) as error:
        return Opened(dict.fromkeys(SESSIONS, error), disk=disk)
    found: Found = {}
    torn: tuple[TornTail, ...] = ()
    for session in SESSIONS:
        try:
            found[session], torn = await read(store, session)
        except (SessionTombstoned, SessionUnknown):
            found[session] = ()
        except (StoreCorrupt, StoreVersionTooNew) as error:
            found[session] = error
    store._engine.let_go()
    return Opened(found, torn, disk)


async def read(store: FileStore, session: str) -> tuple[tuple[str, ...], tuple[TornTail, ...]]:
    """The texts of a session, whose records must be numbered and chained as they should, and what was torn off."""
    lease = await store.acquire(session, create=False)
    loaded = await store.load(lease)
    store.release(lease)
    records = loaded.records
    assert [record.seq for record in records] == list(range(1, len(records) + 1))
    assert [record.prev for record in records] == [NO_SUM, *(record.sum for record in records)][: len(records)]
    assert {record.kind for record in records} <= {"said"}
    return tuple(text_of(record) for record in records), loaded.report.torn


class Living:
    """An open store whose files are damaged while it lives: what it reads is what is there now."""

    def __init__(self, loop: SimLoop, files: Files, *, segment_bytes: int = 8192) -> None:
        self.loop = loop
        self.image = image_of(files)
        self.store = FileStore(ROOT, segment_bytes=segment_bytes, disk=SimDisk(self.image))
        loop.run(self.store.open())

    def put(self, path: str, data: bytes) -> None:
        self.image.file(path).data[:] = data

    def found(self, *sessions: str) -> Found:
        """What these sessions hold."""

        async def find() -> Found:
            found: Found = {}
            for session in sessions:
                try:
                    found[session], _ = await read(self.store, session)
                except (StoreCorrupt, StoreVersionTooNew) as error:
                    found[session] = error
            return found

        return self.loop.run(find())

    def close(self) -> None:
        self.store._engine.let_go()


def refused(found: Found) -> set[str]:
    return {session for session, texts in found.items() if isinstance(texts, PersistenceError)}


def wrong(found: Found, states: dict[str, set[tuple[str, ...]]]) -> list[str]:
    """The sessions that hold what they never held, or something out of order."""
    return [
        session
        for session, texts in found.items()
        if not isinstance(texts, PersistenceError) and texts not in states[session]
    ]


# --- lines of the log -------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """One line of a segment."""

    start: int
    end: int
    synced_bytes: int
    """What it says of how far the segment is synced; 0 for the header."""
    entry: int
    """How many changes of the history are in the segment up to it."""


def lines_of(data: bytes) -> list[Line]:
    lines: list[Line] = []
    start = entry = 0
    for line in data.rstrip(b"\0").splitlines(keepends=True):
        assert verify(line)
        synced_bytes = 0
        if start:
            read = decode_log_line(line)
            synced_bytes, entry = read.w, entry + bool(read.birth)
        lines.append(Line(start, start + len(line), synced_bytes, entry))
        start += len(line)
    return lines


def promised(lines: list[Line], first: int, last: int) -> int:
    """How many changes are shown to be synced by lines that lie wholly outside of the damaged bytes first to last.

    The documented limit: what no sound line shows to be synced may be lost as a torn end.
    """
    shown = max((line.synced_bytes for line in lines if line.end <= first or line.start > last), default=0)
    return max((line.entry for line in lines if line.end <= shown), default=0)
