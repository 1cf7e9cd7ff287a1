"""A journal of which a sync was refused is written anew, to another file: nothing is synced a second time."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, Lease
from session_actor.persistence.checking.verify import check
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.files.storage import OsDisk
from session_actor.persistence.journals.journal_anew import temporary_path
from session_actor.persistence.repair.repair import repair

from .conformance_snapshots import ids
from .conformance_tools import opened, push
from .test_journal_files import cut_all

FOLDER = "/" + journal_path("a", 1).partition("/")[0]


class ForgettingDisk(OsDisk):
    """Syncs are refused on request; once one was of a file, no sync of it may say again that all is well."""

    def __init__(self) -> None:
        self.refuses = ""
        """Ends of the names of files or folders of which syncs are refused; empty: of none."""
        self.errno = errno.EIO
        self.forgotten: set[int] = set()
        """Inodes of such files."""
        self.forgives = False
        """It may after all that was not synced was cut off."""
        self.synced_bytes: dict[int, int] = {}
        """How long files were when they were synced, by inode."""
        self.held: list[int] = []
        """Descriptors: the number of an inode that is held is given to no other."""

    def open(self, path, *, write=False, create=False):
        return ForgettingFile(self, super().open(path, write=write, create=create), path)

    def sync_dir(self, path):
        self.refuse(path)
        super().sync_dir(path)

    def hold(self, path: Path) -> int:
        """The inode of a file."""
        self.held.append(os.open(path, os.O_RDONLY))
        return os.fstat(self.held[-1]).st_ino

    def refuse(self, path: str) -> None:
        if self.refuses and path.endswith(self.refuses):
            raise OSError(self.errno, "asked to fail")


class ForgettingFile:
    def __init__(self, disk: ForgettingDisk, file, path: str) -> None:
        self.disk, self.file, self.path = disk, file, path
        self.inode = os.fstat(file._fd).st_ino

    def __getattr__(self, name):
        return getattr(self.file, name)

    def sync(self):
        assert self.inode not in self.disk.forgotten, f"{self.path} is synced again"
        try:
            self.disk.refuse(self.path)
        except OSError:
            self.disk.forgotten.add(self.disk.hold(self.path))
            raise
        self.file.sync()
        self.disk.synced_bytes[self.inode] = self.file.size()

    def truncate(self, length):
        self.file.truncate(length)
        if self.disk.forgives and length <= self.disk.synced_bytes.get(self.inode, 0):
            self.disk.forgotten.discard(self.inode)


@pytest.fixture
def disk() -> Iterator[ForgettingDisk]:
    disk = ForgettingDisk()
    yield disk
    for descriptor in disk.held:
        os.close(descriptor)


def small(root: Path, disk: ForgettingDisk) -> FileStore:
    return FileStore(root, segment_bytes=20_000, journal_bytes=3_000, cut_at_close=0, disk=disk)


def journal(root: Path, number: int = 1) -> Path:
    return root / "journals" / journal_path("a", number)


async def grown(store: FileStore, lease: Lease, first: int, count: int = 20) -> None:
    push(store, lease, count, first=first)
    await store.flush("synced")


async def refused_cuts(store: FileStore, disk: ForgettingDisk, ends: str, count: int = 1) -> None:
    disk.refuses = ends
    for _ in range(count):
        with pytest.raises(OSError, match="asked to fail"):
            await cut_all(store)
    disk.refuses = ""


async def check_all(store: FileStore, lease: Lease) -> None:
    """All is there."""
    loaded = await store.load(lease, snapshots=False)
    assert [record.seq for record in loaded.records] == list(range(1, lease.appended_seq + 1))
    frames = list(range(1, lease.appended_seq + 1))
    assert ids(store.archive(lease).read(frames)) == frames


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("count", [0, 3, 20])
async def test_what_counts_and_what_comes_are_written_to_another_file_in_place_of_the_old_one(
    tmp_path, disk, count, number
):
    """`count`: of records that are in the journal before; with 20 files are sealed by the cut that is tried again."""
    root = tmp_path / "store"
    disk.errno = number
    async with opened(small(root, disk), working=False) as store:
        lease = await store.acquire("a", create=True)
        if count:
            await grown(store, lease, 1, count)
            await cut_all(store)
        newest = max(root.glob("journals/*/*.ndjson"), key=lambda path: int(path.stem.rpartition("-")[2]), default=None)
        before = newest and (disk.hold(newest), newest.read_bytes()[: store._logs["a"].extent.size_bytes])
        await grown(store, lease, count + 1)
        await refused_cuts(store, disk, ".ndjson")
        assert disk.forgotten
        await cut_all(store)
        assert store.health().live_segments <= 1
        if before:
            assert newest.stat().st_ino != before[0]
            assert newest.read_bytes().startswith(before[1])
        await grown(store, lease, count + 21)
        await cut_all(store)
        await check_all(store, lease)
    assert check(root).list == []


@pytest.mark.parametrize("begun", [False, True])
async def test_the_name_of_a_file_is_made_anew_when_the_sync_of_its_folder_was_refused(tmp_path, disk, begun):
    root = tmp_path / "store"
    async with opened(small(root, disk), working=False) as store:
        lease = await store.acquire("a", create=True)
        if begun:
            await grown(store, lease, 1)
            await cut_all(store)
        await grown(store, lease, 1 + 20 * begun)
        await refused_cuts(store, disk, FOLDER)
        inodes = {disk.hold(path) for path in root.glob("journals/*/*.ndjson")}
        counted = store._engine.catalog.files.numbers("a", lease.birth)
        await cut_all(store)
        anew = [path for path in root.glob("journals/*/*.ndjson") if int(path.stem.rpartition("-")[2]) not in counted]
        assert anew
        assert inodes.isdisjoint(path.stat().st_ino for path in anew)
        await check_all(store, lease)
    assert check(root).list == []


async def test_what_is_refused_again_while_it_is_written_anew_leaves_the_old_file_as_it_is(tmp_path, disk):
    root = tmp_path / "store"
    disk.errno = errno.ENOSPC  # with another error the session goes on in a file of its own number
    async with opened(small(root, disk), working=False) as store:
        lease = await store.acquire("a", create=True)
        await grown(store, lease, 1, 3)
        await cut_all(store)
        inode = disk.hold(journal(root))
        await grown(store, lease, 4, 3)
        await refused_cuts(store, disk, ".ndjson")
        await refused_cuts(store, disk, ".ndjson.new", 3)
        assert journal(root).stat().st_ino == inode
        assert not list(root.glob("journals/*/*.new"))
        await cut_all(store)
        assert journal(root).stat().st_ino != inode
        await check_all(store, lease)
    assert check(root).list == []


async def test_a_file_that_is_damaged_is_not_written_anew_but_left_as_it_is(tmp_path, disk):
    root = tmp_path / "store"
    async with opened(small(root, disk), working=False) as store:
        lease = await store.acquire("a", create=True)
        await grown(store, lease, 1, 3)
        await cut_all(store)
        data = bytearray(journal(root).read_bytes())
        data[data.index(b'"id":2,') + 5] ^= 1
        journal(root).write_bytes(data)
        await grown(store, lease, 4, 3)
        await refused_cuts(store, disk, ".ndjson")
        await cut_all(store)
        assert journal(root).read_bytes().startswith(data)
        assert journal(root, 2).exists()
        assert "not those that the catalog counted" in store.health().last_error
    assert any(finding.severity == "damage" for finding in check(root).list)


async def test_what_a_process_that_died_left_of_it_is_told_repaired_and_goes_with_a_deletion(tmp_path):
    root = tmp_path / "store"
    left = Path(temporary_path(str(root / "journals"), "a"))
    async with opened(small(root, ForgettingDisk()), working=False) as store:
        lease = await store.acquire("a", create=True)
        await grown(store, lease, 1, 3)
        await cut_all(store)
    left.write_bytes(journal(root).read_bytes())
    left.chmod(0o600)
    assert [(finding.kind, finding.severity, finding.path) for finding in check(root).list] == [
        ("leftover", "note", str(left))
    ]
    repair(root, write=True)
    assert not left.exists()
    left.write_bytes(journal(root).read_bytes())
    async with opened(small(root, ForgettingDisk()), working=False) as store:
        await store.delete(await store.acquire("a", create=False))
        await cut_all(store)
    assert not left.exists()


@pytest.mark.parametrize(("count", "refused"), [(0, ".ndjson"), (3, ".ndjson"), (0, FOLDER)])
async def test_what_a_process_left_that_is_gone_is_cut_off_or_gives_way_to_a_new_file(tmp_path, disk, count, refused):
    """A sync of it may have been refused. `count`: of records that are in the journal before."""
    root = tmp_path / "store"
    async with opened(small(root, disk), working=False) as store:
        lease = await store.acquire("a", create=True)
        if count:
            await grown(store, lease, 1, count)
            await cut_all(store)
        await grown(store, lease, count + 1, 5)
        await refused_cuts(store, disk, refused)
        inode = disk.hold(journal(root))
    disk.forgives = True
    async with opened(small(root, disk), working=False) as store:
        lease = await store.acquire("a", create=False)
        await cut_all(store)
        assert (journal(root).stat().st_ino == inode) is (count > 0)
        await check_all(store, lease)
    assert check(root).list == []
