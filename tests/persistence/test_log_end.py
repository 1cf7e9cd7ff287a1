"""How far the log was on the disk is noted in the catalog: what of that is missing is damage, however it went."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, LogCorrupt
from session_actor.persistence.checking.verify import check
from session_actor.persistence.files.storage import OsDisk
from session_actor.persistence.repair.repair import repair

from .conformance_snapshots import seqs
from .conformance_tools import opened, push
from .disks import TroubledDisk
from .stores import copied, segments
from .test_writer import until


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


def small(root: Path, **options) -> FileStore:
    return FileStore(root, segment_bytes=4_000, cut_at_close=0, **options)


def lose_newest(found: list[Path]) -> None:
    found[-1].unlink()


def lose_all(found: list[Path]) -> None:
    for path in found:
        path.unlink()


def lose_middle(found: list[Path]) -> None:
    found[-2].unlink()


def empty(found: list[Path]) -> None:
    found[-1].write_bytes(b"")


def zero(found: list[Path]) -> None:
    found[-1].write_bytes(bytes(found[-1].stat().st_size))


def halve(found: list[Path]) -> None:
    data = found[-1].read_bytes()
    found[-1].write_bytes(data[: data.index(b"\n", len(data) // 2) + 1])


def spoil_end(found: list[Path]) -> None:
    data = found[-1].read_bytes().rstrip(b"\0")
    found[-1].write_bytes(data[:-300] + b"x" * 300)


LOSSES = [lose_newest, lose_all, lose_middle, empty, zero, halve, spoil_end]


async def filled(root: Path) -> None:
    async with opened(small(root), working=False) as store:
        lease = await store.acquire("a", create=True)
        for _ in range(10):
            push(store, lease, 5)
            await store.flush("synced")
    assert len(segments(root)) > 2


async def refused(root: Path) -> bool:
    """Whether the session is refused; then nothing that goes on in the store makes that forgotten."""
    async with opened(small(root)) as store:
        other = await store.acquire("another", create=True)
        await store.load(other)
        push(store, other, 60)
        await store.flush("synced")
        while await store._engine.cutter.cut():
            pass
        try:
            lease = await store.acquire("a", create=False)
            found = seqs(await store.load(lease))
        except LogCorrupt:
            return True
        assert found == list(range(1, 51))
        return False


@pytest.mark.parametrize("lose", LOSSES)
async def test_what_is_missing_of_the_log_after_a_close_is_damage_and_stays_so(root, lose):
    await filled(root)
    assert check(root).list == []
    lose(segments(root))
    assert "log" in {finding.kind for finding in check(root).list if finding.severity == "damage"}
    assert await refused(root)
    assert await refused(root)
    assert check(root).damaged
    repaired = repair(root, write=True, salvage="readable")
    assert repaired.left == []
    assert not check(root).damaged


async def test_a_log_that_is_whole_is_not_refused(root):
    await filled(root)
    assert not await refused(root)
    assert not await refused(root)
    assert not check(root).damaged


@pytest.mark.parametrize("lose", [lose_newest, lose_all, empty, zero])
async def test_what_was_there_at_the_last_cut_is_missed_after_a_crash(root, lose):
    async with opened(small(root), working=False) as store:
        lease = await store.acquire("a", create=True)
        for _ in range(10):
            push(store, lease, 5)
            await store.flush("synced")
        while await store._engine.cutter.cut():
            pass
        await store._engine.run_cut(lambda: None)  # what was cut is removed
        crashed = copied(root, "crashed")
    lose(segments(crashed))
    assert check(crashed).damaged
    assert await refused(crashed)


@pytest.mark.parametrize("lose", [lose_newest, lose_all, lose_middle, empty, zero])
async def test_what_was_there_when_a_cut_failed_is_missed_after_a_crash(root, lose, monkeypatch):
    """So the log may grow for long, and none of its segments can go without a trace."""
    monkeypatch.setattr("session_actor.persistence.cutting.cutter.RETRY_S", 0.01)
    disk = TroubledDisk()
    async with opened(small(root, disk=disk)) as store:
        lease = await store.acquire("a", create=True)
        push(store, lease, 1)
        await store.flush("synced")
        disk.errors["make_dir"] = errno.EIO  # that of the first journal
        monkeypatch.setattr(store._engine.log, "_disk", OsDisk())
        push(store, lease, 60, first=2)
        await store.flush("synced")
        await until(lambda: len(store._engine.log.sealed) > 2)
        noted = store._engine.catalog.log_end
        await until(lambda: noted() == store._engine.log.durable_end())
        crashed = copied(root, "crashed")
        disk.errors.clear()
    lose(segments(crashed))
    assert await refused(crashed)
    assert check(crashed).damaged


async def test_what_was_written_since_the_last_note_can_go_without_a_trace(root):
    """Nothing tells a segment that is removed then from one that a crash kept from being begun."""
    async with opened(small(root), working=False) as store:
        lease = await store.acquire("a", create=True)
        push(store, lease, 2)
        await store.flush("synced")
        crashed = copied(root, "crashed")
    lose_newest(segments(crashed))
    assert not check(crashed).damaged
    async with opened(small(crashed), working=False) as store:
        assert not [info async for info in store.sessions()]


async def test_an_unfinished_end_behind_what_was_noted_is_no_damage(root):
    await filled(root)
    async with opened(small(root), working=False) as store:
        lease = await store.acquire("a", create=False)
        await store.load(lease)
        push(store, lease, 3)
        await store.flush("written")
        crashed = copied(root, "crashed")
    newest = segments(crashed)[-1]
    newest.write_bytes(newest.read_bytes().rstrip(b"\0")[:-20])
    assert not check(crashed).damaged
    async with opened(small(crashed), working=False) as store:
        lease = await store.acquire("a", create=False)
        assert seqs(await store.load(lease)) == list(range(1, 53))


async def with_snapshot(root: Path) -> None:
    """Record 3 is the only one of its session in segment 2, behind a snapshot in segment 3."""
    async with opened(small(root), working=False) as store:
        lease, other = await store.acquire("a", create=True), await store.acquire("other", create=True)
        push(store, lease, 2)
        await store.flush("synced")
        store._engine.log.seal()
        await store._engine.cutter.cut()
        for _ in range(3):
            push(store, lease, 1, first=lease.appended_seq + 1)
            push(store, other, 20, first=other.appended_seq + 1)
            await store.flush("synced")
            store._engine.log.seal()
        store.save(lease, 4, b"{}")
        await store.saved(lease, 4)


async def test_a_frame_whose_record_is_lost_below_a_snapshot_is_not_just_absent(root):
    await with_snapshot(root)
    segments(root)[0].unlink()
    async with opened(small(root), working=False) as store:
        lease = await store.acquire("a", create=False)
        assert seqs(await store.load(lease)) == [5]
        archive = store.archive(lease)
        with pytest.raises(LogCorrupt, match="missing"):
            archive.read([3])
        assert [record.seq for record in archive.read([1, 4])] == [1, 4]


async def test_the_copy_of_another_segment_proves_nothing(root):
    await with_snapshot(root)
    first, *_, newest = segments(root)
    newest.write_bytes(first.read_bytes())
    async with opened(small(root), working=False) as store:
        with pytest.raises(LogCorrupt):
            await store.acquire("a", create=False)


async def test_a_frame_is_not_said_to_be_nowhere_while_a_record_of_the_log_is_missing(tmp_path):
    async with opened(FileStore(tmp_path / "store"), working=False) as store:
        lease = await store.acquire("a", create=True)
        push(store, lease, 15)
        await store.flush("synced")
        assert [record.seq for record in store.archive(lease).read([4, 99])] == [4]
        (spans,) = store._engine.log.current.spans.values()
        spans[6:8] = spans[8:10]  # as when a line is copied over another
        assert [record.seq for record in store.archive(lease).read([5])] == [5]
        with pytest.raises(LogCorrupt, match="record 4 of 'a' should be there"):
            store.archive(lease).read([4])
