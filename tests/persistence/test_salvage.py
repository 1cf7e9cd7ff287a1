"""Salvage in a running store, and that one damaged session keeps no other from loading."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
from pathlib import Path

import pytest
import structlog

from session_actor.persistence import Fenced, FileStore, LogCorrupt, PersistenceError, StoreCorrupt
from session_actor.persistence.checking.verify import check
from session_actor.persistence.repair.repair import repair

from .conformance_tools import listed, opened
from .disks import TroubledDisk
from .stores import SMALL, copied, cut_all, fill, flip, journals, loaded, push, segments

ALL = list(range(1, 46))


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    await fill(tmp_path / "store")
    return tmp_path / "store"


def break_journal(root: Path, session: str, seq: int) -> None:
    path = next(path for path in journals(root, session) if b'\n{"seq":%d,' % seq in path.read_bytes())
    data = path.read_bytes()
    flip(path, data.index(b'"at"', data.index(b'\n{"seq":%d,' % seq)) + 3)


def break_log(root: Path, session: str, *, owner: bool) -> None:
    """Damage the second line of a session in the log; `owner`: so that whose it was cannot be told."""
    path = segments(root)[-1]
    data = path.read_bytes()
    at = data.index(b'"s":"%b"' % session.encode())
    at = data.index(b'"s":"%b"' % session.encode(), at + 1)
    flip(path, at + 1 if owner else data.index(b'"user_input"', at) + 3)


# --- one of a thousand ------------------------------------------------------------------------------------------------


async def thousand(root: Path) -> list[str]:
    """A thousand sessions: their first records in journals, one more of each tenth in the log, all synced."""
    names = [f"s{number:03}" for number in range(1000)]
    async with opened(FileStore(root), working=False) as store:
        for name in names:
            push(store, await store.acquire(name, create=True), 2)
        await store.flush("synced")
    await cut_all(root)
    living = root.with_name("living")
    root.rename(living)
    async with opened(FileStore(living), working=False) as store:
        for name in names[::10]:
            lease = await store.acquire(name, create=False)
            await store.load(lease)
            push(store, lease)
            await store.flush("written")
        await store.flush("synced")
        store._engine.writer.write_watermark()
        await store.flush("synced")
        copied(living, root.name)
    return names


async def refused(root: Path, names: list[str], step: int = 1) -> list[str]:
    found = []
    async with opened(FileStore(root), working=False) as store:
        assert await listed(store) == names
        for name in names[::step]:
            try:
                assert (await store.load(await store.acquire(name, create=False))).records
            except StoreCorrupt:
                found.append(name)
    return found


async def test_one_damaged_session_keeps_no_other_of_a_thousand_from_loading(tmp_path):
    root = tmp_path / "store"
    names = await thousand(root)
    whole = copied(root, "whole")
    break_journal(root, "s500", 2)
    data = segments(root)[-1].read_bytes()
    at = data.index(b'"s":"s200"')
    flip(segments(root)[-1], data.index(b'"user_input"', at) + 3)
    assert await refused(root, names) == ["s200", "s500"]
    flip(segments(whole)[-1], at + 1)
    async with opened(FileStore(whole, cut_at_close=0), working=False) as store:
        with pytest.raises(LogCorrupt):
            await store.acquire("s200", create=False)
    assert repair(whole, write=True, salvage="readable").left == []  # it has looked at all of them again
    assert await refused(whole, names, 10) == []


# --- in a running store -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["asked for", "loaded"])
async def test_a_salvage_whose_caller_has_left_is_completed(root, when):
    break_journal(root, "a", 17)
    disk = TroubledDisk()
    recovery = "readable" if when == "loaded" else "strict"
    async with opened(FileStore(root, disk=disk, recovery=recovery, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        gate = disk.hold("rename")
        job = store.load(lease, snapshots=False) if when == "loaded" else store.salvage(lease, "readable")
        task = asyncio.create_task(job)
        await asyncio.to_thread(disk.entered["rename"].wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()
        await asyncio.gather(*store._tasks)
        again = await store.acquire("a", create=False)
        found = await store.load(again, snapshots=False)
        assert [record.seq for record in found.records] == ALL  # a gap stands for the 17th
        push(store, again)
        await store.flush("synced")
    assert not check(root).damaged


@pytest.mark.parametrize("recovery", ["prefix", "readable"])
async def test_a_damaged_journal_is_salvaged_when_it_is_loaded(root, recovery):
    break_journal(root, "a", 17)
    async with opened(FileStore(root, recovery=recovery, **SMALL)) as store:
        lease = await store.acquire("a", create=False)
        found = await store.load(lease, snapshots=False)
        assert lease.appended_seq == found.records[-1].seq == (45 if recovery == "readable" else 16)
        assert [(gap.first, gap.last, gap.why) for gap in found.report.gaps] == (
            [(17, 17, "missing")] if recovery == "readable" else []
        )
        assert all(Path(place).exists() for place in found.report.kept_at)
        assert found.report.kept_at
        push(store, lease, 60)
        await store.flush("synced")
        again = await store.load(lease, snapshots=False)
        assert again.report.gaps == found.report.gaps
        assert again.report.kept_at == ()
        for session in "bc":
            assert (await store.load(await store.acquire(session, create=False), snapshots=False)).report.clean
    last = found.records[-1].seq + 60
    assert (await loaded(root, *"abc")) == {"a": list(range(1, last + 1)), "b": ALL, "c": ALL}
    assert not check(root).damaged


@pytest.mark.parametrize("recovery", ["prefix", "readable"])
@pytest.mark.parametrize("owner", [False, True])
async def test_a_damaged_log_is_salvaged_when_the_store_is_opened(root, recovery, owner):
    break_log(root, "b", owner=owner)
    async with opened(FileStore(root, recovery=recovery, **SMALL)) as store:
        lease = await store.acquire("b", create=False)
        found = await store.load(lease, snapshots=False)
        assert found.records[-1].seq == (45 if recovery == "readable" else 41)
        assert len(found.report.gaps) == (recovery == "readable")
        assert any(path.endswith(".damaged") for path in found.report.kept_at)
        push(store, lease, 5)
        await store.flush("synced")
    assert await loaded(root, *"ac") == {"a": ALL, "c": ALL}
    assert not check(root).damaged


async def test_strict_recovery_changes_nothing(root):
    break_journal(root, "a", 17)
    before = {path: path.read_bytes() for path in journals(root, "a")[:-1]}
    async with opened(FileStore(root, **SMALL), working=False) as store:
        with pytest.raises(StoreCorrupt):
            await store.load(await store.acquire("a", create=False), snapshots=False)
    assert {path: path.read_bytes() for path in before} == before
    assert not (root / "aside").exists()


async def test_a_salvaged_session_can_be_deleted_and_made_again(root):
    break_journal(root, "a", 17)
    async with opened(FileStore(root, recovery="readable", **SMALL)) as store:
        lease = await store.acquire("a", create=False)
        await store.load(lease, snapshots=False)
        await store.delete(lease)
        assert await listed(store) == ["b", "c"]
        lease = await store.acquire("a", create=True)
        push(store, lease, 3)
        await store.flush("synced")
    assert (await loaded(root, "a"))["a"] == [1, 2, 3]
    assert not check(root).damaged


async def test_what_was_appended_and_not_yet_cut_is_kept_by_salvage(root):
    async with opened(FileStore(root, recovery="readable", **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        await store.load(lease)
        push(store, lease, 7)
        break_journal(root, "a", 17)
        lease = await store.acquire("a", create=False)  # as an actor that restarts
        found = await store.load(lease, snapshots=False)
        assert [record.seq for record in found.records] == list(range(1, 53))
        push(store, lease)
    assert (await loaded(root, "a"))["a"] == list(range(1, 54))


async def test_dying_at_any_change_during_salvage_loses_nothing_more(root):
    break_journal(root, "a", 17)
    break_log(root, "b", owner=True)

    async def salvage(at: Path, disk: TroubledDisk) -> None:
        store = FileStore(at, recovery="readable", disk=disk, **SMALL)
        try:
            await store.open()
            for session in "ab":
                await store.load(await store.acquire(session, create=False), snapshots=False)
        finally:
            await store.close()

    disk = TroubledDisk()
    await salvage(copied(root, "whole"), disk)
    expected = await loaded(root.with_name("whole"), *"abc", recovery="readable")
    changes = [number for number, call in enumerate(disk.calls, 1) if call not in {"read", "open", "list"}]
    for dies_at in random.Random(3).sample(changes, 12):
        at = copied(root, str(dies_at))
        with contextlib.suppress(OSError, PersistenceError):
            await salvage(at, TroubledDisk(dies_at=dies_at))
        assert await loaded(at, *"abc", recovery="readable") == expected, dies_at
        assert not check(at).damaged, dies_at


class FailsOnce(TroubledDisk):
    """One call fails as on a full disk; those after it do not."""

    def __init__(self, fails_at: int | None = None) -> None:
        super().__init__()
        self.fails_at = fails_at

    def reach(self, call: str, path: str = "") -> None:
        super().reach(call, path)
        if len(self.calls) == self.fails_at:
            raise OSError(errno.ENOSPC, "No space left on device", path)


async def test_salvage_that_a_full_disk_refuses_changes_nothing_and_may_be_tried_again(root):
    break_journal(root, "a", 17)

    async def salvage(at: Path, fails_at: int = 0) -> int:
        """Salvage until it succeeds, at most twice; returns how many calls it makes."""
        disk = FailsOnce()
        async with opened(FileStore(at, disk=disk, **SMALL), working=False) as store:
            lease = await store.acquire("a", create=False)
            with pytest.raises(StoreCorrupt):
                await store.load(lease, snapshots=False)
            first, before = len(disk.calls), store._engine.catalog.get("a")
            disk.fails_at = first + fails_at if fails_at else None
            try:
                await store.salvage(lease, "readable")
            except OSError:
                if store._engine.catalog.get("a") == before:  # else what was salvaged could not be read yet
                    with pytest.raises(StoreCorrupt):
                        await store.load(lease, snapshots=False)
                    await store.salvage(lease, "readable")
            return len(disk.calls) - first

    count = await salvage(copied(root, "whole"))
    expected = await loaded(root.with_name("whole"), *"abc")
    for fails_at in random.Random(7).sample(range(1, count), 10):
        at = copied(root, str(fails_at))
        await salvage(at, fails_at)
        assert not check(at).damaged, fails_at
        assert await loaded(at, *"abc") == expected, fails_at


async def test_repair_that_a_full_disk_refuses_says_so_and_is_gone_on_with(root):
    break_journal(root, "a", 17)
    break_log(root, "b", owner=True)
    (root / "catalog.db").unlink()
    disk = FailsOnce()
    assert repair(copied(root, "whole"), write=True, salvage="readable", disk=disk).left == []
    expected = await loaded(root.with_name("whole"), *"abc")
    for fails_at in random.Random(9).sample(range(1, len(disk.calls)), 8):
        at = copied(root, str(fails_at))
        with contextlib.suppress(OSError, PersistenceError):
            repair(at, write=True, salvage="readable", disk=FailsOnce(fails_at))
        assert repair(at, write=True, salvage="readable").left == [], fails_at
        assert check(at).list == [], fails_at
        assert await loaded(at, *"abc") == expected, fails_at


@pytest.mark.parametrize(("seq", "kept"), [(45, False), (58, True), (60, True)])
async def test_a_pruned_session_is_salvaged_with_a_snapshot_from_before_the_loss(tmp_path, seq, kept):
    """One from behind it names frames whose records are lost."""
    root = tmp_path / "store"
    await fill(root, "a", 60, in_log=0)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        await store.load(lease)
        pruned = await store.prune(lease, [(1, 30)])
    assert pruned.files
    assert check(root).list == []
    assert repair(copied(root, "lost"), write=True).steps == []
    lost = root.with_name("lost")
    (lost / "catalog.db").unlink()
    assert repair(lost, write=True).left == []
    for at in (root, lost):
        break_journal(at, "a", seq)
        assert repair(at, write=True, salvage="readable").left == []
        async with opened(FileStore(at, **SMALL), working=False) as store:
            lease = await store.acquire("a", create=False)
            found = await store.load(lease)
            assert (found.snapshot is not None) == kept
            assert lease.appended_seq == 60
            push(store, lease, 3)
        assert not check(at).damaged
        async with opened(FileStore(at, **SMALL), working=False) as store:
            found = await store.load(await store.acquire("a", create=False))
            assert (found.snapshot is not None, found.records[-1].seq) == (kept, 63)


@pytest.mark.parametrize("recovery", ["prefix", "readable"])
async def test_a_pruned_session_whose_snapshots_are_lost_keeps_what_is_readable(tmp_path, recovery):
    root = tmp_path / "store"
    await fill(root, "a", 60, in_log=0)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        await store.load(lease)
        pruned = await store.prune(lease, [(1, 30)])
        push(store, lease, 4)
    assert pruned.files
    assert segments(root)
    for path in (root / "snapshots").glob("*/*.ndjson"):
        path.unlink()
    async with opened(FileStore(root, **SMALL), working=False) as store:
        with pytest.raises(StoreCorrupt):
            await store.load(await store.acquire("a", create=False))
    async with opened(FileStore(root, recovery=recovery, **SMALL), working=False) as store:
        found = await store.load(await store.acquire("a", create=False))
        assert found.report.gaps[0].first == 1
        assert [record.seq for record in found.records[1:]] == list(range(found.records[0].seq + 1, 65))
    assert not check(root).damaged


async def test_a_session_that_is_acquired_again_during_its_salvage_is_its_new_owners(root):
    break_journal(root, "a", 17)
    async with opened(FileStore(root, recovery="readable", **SMALL), working=False) as store:
        first = await store.acquire("a", create=False)
        loading = asyncio.ensure_future(store.load(first, snapshots=False))
        await asyncio.sleep(0)
        second = await store.acquire("a", create=False)
        with pytest.raises(Fenced):
            await loading
        found = await store.load(second, snapshots=False)
        assert [record.seq for record in found.records] == ALL
        push(store, second, 2)
    assert (await loaded(root, "a"))["a"] == [*ALL, 46, 47]


@pytest.mark.parametrize(("recovery", "lost"), [("prefix", 29), ("readable", 1)])
async def test_salvage_at_load_is_told_and_logged(root, recovery, lost):
    break_journal(root, "a", 17)
    told = []
    with structlog.testing.capture_logs() as logged:
        async with opened(FileStore(root, **SMALL, recovery=recovery, on_event=told.append), working=False) as store:
            report = (await store.load(await store.acquire("a", create=False), snapshots=False)).report
    (event,) = [event for event in told if event.name == "salvaged"]
    assert event.measurements == {"lost": lost}
    assert event.metadata == {"store": str(root), "session": "a", "kept_at": report.kept_at}
    (line,) = [line for line in logged if line["event"] == "store.salvaged"]
    assert (line["log_level"], line["session"], line["lost"]) == ("warning", "a", lost)
