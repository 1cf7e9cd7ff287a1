"""Journal files that are not what the catalog counted: another session's, another birth's, another history's."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, JournalCorrupt, JournalTruncated
from session_actor.persistence.checking.verify import check
from session_actor.persistence.repair.repair import repair

from .conformance_tools import opened
from .stores import SMALL, journals, push


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


async def grown(root: Path, session: str, count: int, *, journal_bytes: int = 1 << 20) -> None:
    """A session that is whole in its journal, with a snapshot after its last record."""
    options = {**SMALL, "cut_at_close": 64, "journal_bytes": journal_bytes}
    async with opened(FileStore(root, **options)) as store:
        lease = await store.acquire(session, create=True)
        await store.load(lease)
        push(store, lease, count)
        await store.flush("synced")
        store.save(lease, lease.appended_seq, b'{"snapshot":1}')
        await store.saved(lease, lease.appended_seq)


async def refused(root: Path, *sessions: str) -> None:
    """Neither loading behind a snapshot, nor reading all, nor reading single frames takes the file."""
    async with opened(FileStore(root, **SMALL), working=False) as store:
        for session in sessions:
            lease = await store.acquire(session, create=False)
            for snapshots in (True, False):
                with pytest.raises(JournalCorrupt):
                    await store.load(lease, snapshots=snapshots)
            with pytest.raises(JournalCorrupt):
                store.archive(lease).read([1])


def swap(one: Path, other: Path) -> None:
    between = one.with_suffix(".between")
    one.rename(between)
    other.rename(one)
    between.rename(other)


async def test_newest_files_of_two_sessions_that_were_swapped_are_refused(root):
    for session in "ab":
        await grown(root, session, 40)
    swap(*journals(root, "a"), *journals(root, "b"))
    await refused(root, "a", "b")


async def test_a_longer_file_of_another_session_is_refused(root):
    await grown(root, "a", 40)
    await grown(root, "b", 50)
    shutil.copy(*journals(root, "b"), *journals(root, "a"))
    await refused(root, "a")


async def test_a_file_of_a_deleted_birth_is_refused(root, tmp_path):
    await grown(root, "a", 50)
    shutil.copy(*journals(root, "a"), tmp_path / "kept")
    async with opened(FileStore(root, **SMALL)) as store:
        await store.delete(await store.acquire("a", create=False))
    await grown(root, "a", 40)
    shutil.copy(tmp_path / "kept", *journals(root, "a"))
    await refused(root, "a")


async def test_sealed_files_of_two_sessions_that_were_swapped_are_refused(root):
    for session in "ab":
        await grown(root, session, 80, journal_bytes=2_000)
    swap(journals(root, "a")[1], journals(root, "b")[1])
    async with opened(FileStore(root, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        with pytest.raises(JournalCorrupt):
            store.archive(lease).read(range(1, 80))
        with pytest.raises(JournalCorrupt):
            await store.load(lease, snapshots=False)


async def test_a_file_of_the_same_birth_with_another_end_is_refused(root):
    await grown(root, "a", 20)
    other = shutil.copytree(root, root.with_name("other"))
    await grown(root, "a", 20)
    async with opened(FileStore(other, cut_at_close=64)) as store:
        lease = await store.acquire("a", create=False)
        for seq in range(21, 50):
            store.append(lease, seq, seq, "pushed", b'{"id":%d,"user_input":"another"}' % seq, 200)
    shutil.copy(*journals(other, "a"), *journals(root, "a"))
    async with opened(FileStore(root, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        for snapshots in (True, False):
            with pytest.raises(JournalCorrupt):
                await store.load(lease, snapshots=snapshots)


@pytest.mark.parametrize("damage", ["gone", "shorter", "another's"])
async def test_a_cut_writes_nothing_into_a_file_that_is_not_as_it_left_it_and_loses_nothing(root, damage):
    for session in "ab":
        await grown(root, session, 20)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        leases = [await store.acquire(session, create=False) for session in "ab"]
        for lease in leases:
            push(store, lease, 5)
        await store.flush("synced")
        (path,), (other,) = journals(root, "a"), journals(root, "b")
        kept = path.read_bytes()
        match damage:
            case "gone":
                path.unlink()
            case "shorter":
                path.write_bytes(kept[:-30])
            case _:
                shutil.copy(other, path)
        found = path.read_bytes() if path.exists() else None
        store._engine.log.seal()
        while await store._engine.cutter.cut():
            pass
        assert (path.read_bytes() if path.exists() else None) == found
        assert str(path) in store.health().last_error
        assert [record.seq for record in (await store.load(leases[1], snapshots=False)).records] == list(range(1, 26))
        with pytest.raises(JournalCorrupt if damage == "another's" else JournalTruncated):
            await store.load(leases[0], snapshots=False)
    assert check(root).damaged
    path.write_bytes(kept)
    path.chmod(0o600)
    assert [step.kind for step in repair(root, write=True).steps] == ["index"]
    assert not check(root).list
    async with opened(FileStore(root, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        assert [record.seq for record in (await store.load(lease, snapshots=False)).records] == list(range(1, 26))
        assert len(store.archive(lease).read(range(1, 26))) == 25
