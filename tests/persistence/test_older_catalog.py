"""A catalog that is older than the journals: what it does not count is told, never overwritten, and counted again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, StoreCorrupt
from session_actor.persistence.checking.verify import check
from session_actor.persistence.repair.repair import repair

from .conformance_tools import opened
from .stores import SMALL, copied, cut_all, journals, kinds, loaded, push


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


async def day(root: Path, count: int, *, journal_bytes: int, snapshot: bool = False, cut_at_close: int = 64) -> None:
    options = {**SMALL, "cut_at_close": cut_at_close, "journal_bytes": journal_bytes}
    async with opened(FileStore(root, **options)) as store:
        lease = await store.acquire("a", create=True)
        await store.load(lease)
        push(store, lease, count)
        await store.flush("synced")
        if snapshot:
            store.save(lease, lease.appended_seq, b'{"snapshot":1}')
            await store.saved(lease, lease.appended_seq)


def found(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in journals(root)}


@pytest.mark.parametrize("journal_bytes", [1 << 20, 2_000])
@pytest.mark.parametrize("snapshot", [False, True])
async def test_records_that_an_older_catalog_does_not_count_are_told_and_counted_by_repair(
    root, journal_bytes, snapshot
):
    await day(root, 20, journal_bytes=journal_bytes, snapshot=snapshot)
    older = (root / "catalog.db").read_bytes()
    await day(root, 50, journal_bytes=journal_bytes)
    whole = found(root)
    (root / "catalog.db").write_bytes(older)
    async with opened(FileStore(root, **SMALL)) as store:
        lease = await store.acquire("a", create=False)
        for snapshots in (True, False):
            with pytest.raises(StoreCorrupt, match="older than the journal"):
                await store.load(lease, snapshots=snapshots)
    assert found(root) == whole
    assert "uncounted" in kinds(check(root))
    assert repair(root, write=True).steps[0].kind == "uncounted"
    assert not check(root).list
    assert found(root) == whole
    assert await loaded(root, "a") == {"a": list(range(1, 71))}


async def test_a_cut_overwrites_no_record_that_the_log_does_not_have(root):
    await day(root, 20, journal_bytes=1 << 20)
    older = (root / "catalog.db").read_bytes()
    await day(root, 50, journal_bytes=1 << 20)
    (root / "catalog.db").write_bytes(older)
    whole = found(root)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        push(store, await store.acquire("a", create=False), 5)
        await store.flush("synced")
        store._engine.log.seal()
        with pytest.raises(StoreCorrupt, match="older than the journal"):
            await store._engine.cutter.cut()
    assert found(root) == whole


async def test_what_an_unfinished_cut_left_is_no_damage_and_is_cut_again(root):
    await day(root, 20, journal_bytes=2_000)
    await day(root, 50, journal_bytes=2_000, cut_at_close=0)
    cut = copied(root, "cut")
    await cut_all(cut)
    for path in journals(cut):
        shutil.copy2(path, root / path.relative_to(cut))
    assert kinds(check(root)) == []
    assert await loaded(root, "a") == {"a": list(range(1, 71))}
    await cut_all(root)
    assert not check(root).list
    assert await loaded(root, "a") == {"a": list(range(1, 71))}


async def test_what_repair_cuts_off_is_kept_aside(root):
    await day(root, 20, journal_bytes=1 << 20)
    (path,) = journals(root)
    whole = path.read_bytes()
    path.write_bytes(whole + b"half a line")
    assert [step.kind for step in repair(root, write=True).steps] == ["tail"]
    assert path.read_bytes() == whole
    assert [kept.read_bytes() for kept in (root / "aside").iterdir()] == [b"half a line"]


@pytest.mark.parametrize("journal_bytes", [1 << 20, 2_000])
async def test_salvage_keeps_what_an_older_catalog_does_not_count(root, journal_bytes):
    await day(root, 20, journal_bytes=journal_bytes)
    older = (root / "catalog.db").read_bytes()
    await day(root, 50, journal_bytes=journal_bytes)
    (root / "catalog.db").write_bytes(older)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        await store.salvage(lease, "readable")
        records = (await store.load(lease, snapshots=False)).records
        assert [record.seq for record in records] == list(range(1, 71))
    repair(root, write=True)
    assert not check(root).list
    assert await loaded(root, "a") == {"a": list(range(1, 71))}


async def test_a_new_session_takes_no_file_of_one_that_an_older_catalog_does_not_know(root):
    await day(root, 0, journal_bytes=1 << 20)
    older = (root / "catalog.db").read_bytes()
    await day(root, 20, journal_bytes=1 << 20)
    ((path, whole),) = found(root).items()
    (root / "catalog.db").write_bytes(older)
    await day(root, 10, journal_bytes=1 << 20)
    assert path.read_bytes() == whole
    assert await loaded(root, "a") == {"a": list(range(1, 11))}
    assert kinds(check(root)) == ["orphan"]
    repair(root, write=True)
    assert not check(root).list
    assert [kept.read_bytes() for kept in (root / "aside").iterdir()] == [whole]
    assert await loaded(root, "a") == {"a": list(range(1, 11))}
