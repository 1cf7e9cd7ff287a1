"""A journal that the disk refuses again and again holds up no other session, and its own session goes on."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from session_actor.persistence import FileStore
from session_actor.persistence.names import journal_path
from session_actor.persistence.repair import repair
from session_actor.persistence.storage import OsDisk
from session_actor.persistence.verify import check

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
        if refused:
            assert "cut_failed" in events
            assert "asked to fail" in store.health().last_error
        await grow(store, leases, 41)
        assert await cut_until_done(store) == 0
        disk.on = False
        loaded = await store.load(leases[0], snapshots=False)
        assert len(loaded.records) == leases[0].appended_seq
        assert ids(store.archive(leases[0]).read([21, 40, 41, 60])) == [21, 40, 41, 60]
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
