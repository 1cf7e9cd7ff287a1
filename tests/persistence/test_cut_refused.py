"""A journal that the disk refuses again and again holds up no other session, and its own session goes on."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, JournalCorrupt, Lease
from session_actor.persistence.catalog.catalog_files import NO_INDEX
from session_actor.persistence.checking.verify import check
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.files.storage import OsDisk
from session_actor.persistence.repair.repair import repair

from .conformance_snapshots import ids
from .conformance_tools import opened, push
from .test_journal_files import cut_all

SESSIONS = ("bad", "good")


class Refusing(OsDisk):
    """One call on files whose names end so fails, as long as `on`."""

    def __init__(self, name: str, call: str) -> None:
        self.name, self.call, self.on = name, call, True

    def reach(self, path: str, call: str) -> None:
        if self.on and call == self.call and path.endswith(self.name):
            raise OSError(errno.EIO, "asked to fail")

    def open(self, path, *, write=False, create=False):
        self.reach(path, "create" if create else "open")
        return RefusingFile(self, super().open(path, write=write, create=create), path)


class RefusingFile:
    def __init__(self, disk: Refusing, file, path: str) -> None:
        self.disk, self.file, self.path = disk, file, path

    def __getattr__(self, name):
        return getattr(self.file, name)

    def read(self, offset, length):
        self.disk.reach(self.path, "read")
        return self.file.read(offset, length)

    def write(self, data, offset):
        self.disk.reach(self.path, "write")
        self.file.write(data, offset)

    def sync(self):
        self.disk.reach(self.path, "sync")
        self.file.sync()


def small(root: Path, **options) -> FileStore:
    return FileStore(root, segment_bytes=20_000, journal_bytes=3_000, cut_at_close=0, **options)


async def grow(store: FileStore, leases, first: int) -> None:
    for lease in leases:
        push(store, lease, 20, first=first)
    await store.flush("synced")


async def cut_until_done(store: FileStore) -> int:
    """As the worker does: again and again; returns how often the disk refused."""
    refused = 0
    while True:
        try:
            await cut_all(store)
        except OSError as error:
            refused += 1
            if refused == 5 or not error.filename.endswith(".ndjson"):
                raise
        else:
            return refused


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("call", ["open", "read", "write", "sync", "create"])
async def test_a_journal_that_the_disk_refuses_for_good_holds_up_no_session(tmp_path, call, begun):
    events = []
    number = 1 if not begun or call != "create" else 2
    disk = Refusing(journal_path("bad", number), call)
    disk.on = not begun
    store = small(tmp_path / "store", disk=disk, on_event=lambda event: events.append(event.name))
    async with opened(store, working=False):
        leases = [await store.acquire(session, create=True) for session in SESSIONS]
        if begun:
            await grow(store, leases, 1)
            await cut_all(store)
            disk.on = True
        await grow(store, leases, 21)
        refused = await cut_until_done(store)
        assert store.health().live_segments <= 1
        for lease in leases:
            extent = store._logs[lease.session].extent
            assert extent.seq == lease.appended_seq
        anew = begun and call == "sync"  # then another file has the place of the one that is refused
        assert bool(store._engine.catalog.files.without_index("bad", leases[0].birth, 99)) is (
            refused > 0 and begun and not anew
        )
        if refused and not anew:
            assert "cut_failed" in events
            assert "asked to fail" in store.health().last_error
        await grow(store, leases, 41)
        assert await cut_until_done(store) == 0
        disk.on = False
        loaded = await store.load(leases[0], snapshots=False)
        assert len(loaded.records) == leases[0].appended_seq
        frames = list(range(1 if begun else 21, 61))
        assert ids(store.archive(leases[0]).read(frames)) == frames
        assert store.archive(leases[0]).read([61]) == []
    found = check(tmp_path / "store").list
    assert [finding for finding in found if finding.severity == "damage"] == []
    repair(tmp_path / "store", write=True)
    assert [finding.kind for finding in check(tmp_path / "store").list] == []
    async with opened(small(tmp_path / "store"), working=False) as store:
        lease = await store.acquire("bad", create=False)
        assert len((await store.load(lease, snapshots=False)).records) == lease.appended_seq


async def test_a_journal_that_is_refused_once_is_gone_on_with(tmp_path):
    disk = Refusing(journal_path("bad", 1), "sync")
    async with opened(small(tmp_path / "store", disk=disk), working=False) as store:
        leases = [await store.acquire(session, create=True) for session in SESSIONS]
        await grow(store, leases, 1)
        with pytest.raises(OSError, match="asked to fail"):
            await cut_all(store)
        disk.on = False
        await cut_all(store)
    assert check(tmp_path / "store").list == []


async def begun_and_left(store: FileStore, disk: Refusing) -> Lease:
    """A session whose first file the disk refused, so that it got no index and the session went on in another."""
    disk.on = False
    lease = await store.acquire("bad", create=True)
    await grow(store, [lease], 1)
    await cut_all(store)
    disk.on = True
    await grow(store, [lease], 21)
    assert await cut_until_done(store) > 0
    (row, *_) = store._engine.catalog.files.of("bad", lease.birth)
    assert (row.number, row.last_frame) == (1, NO_INDEX)
    return lease


async def test_while_a_journal_is_refused_only_what_is_in_it_cannot_be_read(tmp_path):
    disk = Refusing(journal_path("bad", 1), "read")
    async with opened(small(tmp_path / "store", disk=disk), working=False) as store:
        lease = await begun_and_left(store, disk)
        await grow(store, [lease], 41)
        archive = store.archive(lease)
        assert ids(archive.read([21, 40, 41, 60])) == [21, 40, 41, 60]
        for frames in ([1], [5, 60], [61]):
            with pytest.raises(OSError, match="asked to fail"):
                archive.read(frames)
        disk.on = False
        assert ids(archive.read([1, 5, 20, 60])) == [1, 5, 20, 60]
        assert archive.read([61]) == []


async def test_a_journal_that_was_refused_and_is_damaged_since_is_told_by_whoever_reads_it(tmp_path):
    disk = Refusing(journal_path("bad", 1), "write")
    async with opened(small(tmp_path / "store", disk=disk), working=False) as store:
        lease = await begun_and_left(store, disk)
        (path,) = (tmp_path / "store" / "journals").glob("*/*-1.ndjson")
        data = bytearray(path.read_bytes())
        data[data.index(b'"id":3,') + 5] ^= 1
        path.write_bytes(data)
        assert ids(store.archive(lease).read([21, 40])) == [21, 40]
        with pytest.raises(JournalCorrupt) as caught:
            store.archive(lease).read([2])
        assert caught.value.path == str(path)


class Misreading(Refusing):
    """Nothing fails, but reads of files whose names end so give other bytes than they have, as long as `on`."""

    def open(self, path, *, write=False, create=False):
        file = super().open(path, write=write, create=create)
        return MisreadFile(self, file, path) if path.endswith(self.name) else file


class MisreadFile(RefusingFile):
    def read(self, offset, length):
        data = self.file.read(offset, length)
        return data.replace(b'"id":3,', b'"id":4,') if self.disk.on else data


async def test_a_journal_that_was_read_otherwise_than_it_is_when_it_was_sealed_is_not_taken_for_damaged(tmp_path):
    disk = Misreading(journal_path("bad", 1), "none")
    disk.on = False
    async with opened(small(tmp_path / "store", disk=disk), working=False) as store:
        lease = await store.acquire("bad", create=True)
        await grow(store, [lease], 1)
        await cut_all(store)
        disk.on = True
        await grow(store, [lease], 21)
        await cut_all(store)
        assert store._engine.catalog.files.of("bad", lease.birth)[0].last_frame == NO_INDEX
        with pytest.raises(JournalCorrupt):
            store.archive(lease).read([2])
        disk.on = False
        frames = list(range(1, 41))
        assert ids(store.archive(lease).read(frames)) == frames
        assert ids(await store.archive(lease).fetch([2, 3, 40])) == [2, 3, 40]
