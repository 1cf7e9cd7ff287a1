"""A commit of the catalog that reports an error and happened all the same: nothing is done twice, or on top of it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from session_actor.persistence import FileStore
from session_actor.persistence.catalog.catalog import Catalog, CatalogRow
from session_actor.persistence.catalog.catalog_files import FileRow, put
from session_actor.persistence.checking.verify import check
from session_actor.persistence.files.storage import OsDisk
from session_actor.persistence.format.header import RecordRef, SegmentRef
from session_actor.persistence.repair.repair import repair

from .conformance_tools import opened
from .stores import SMALL, fill, journals, kinds, loaded, push

BIRTH = "5e0f5e0f5e0f5e0f"
ALL = list(range(1, 46))


class LateDisk(OsDisk):
    """The real disk. While `late`, a COMMIT happens and then reports what SQLite does of a sync that is refused.

    While `full`, none happens, and each reports what it does of a full disk.
    """

    late = 0
    full = False

    def connect(self, path, *, create):
        return LateConnection(self, super().connect(path, create=create))


class LateConnection:
    """A connection of a `LateDisk`."""

    def __init__(self, disk: LateDisk, connection: sqlite3.Connection) -> None:
        self._disk = disk
        self._connection = connection

    def __getattr__(self, name):
        return getattr(self._connection, name)

    def execute(self, sql, *parameters):
        if sql == "COMMIT" and self._disk.full:
            self._connection.execute("ROLLBACK")
            full = sqlite3.OperationalError("database or disk is full")
            full.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise full
        found = self._connection.execute(sql, *parameters)
        if sql == "COMMIT" and self._disk.late:
            self._disk.late -= 1
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            raise error
        return found


async def test_segments_that_a_loss_of_power_may_make_count_again_stay_on_a_full_disk_until_there_is_room(tmp_path):
    root, kept, disk = tmp_path / "store", tmp_path / "kept", LateDisk()
    async with opened(FileStore(root, **SMALL), working=False) as store:
        await grown(store, 400)
        shutil.copytree(root / "log", kept)
        while await store._engine.cutter.cut():
            pass
    cut = sorted(path.name for path in kept.glob("*.ndjson") if not (root / "log" / path.name).exists())
    assert cut
    for name in cut:  # as if the process had died before it removed them
        shutil.copy(kept / name, root / "log" / name)
    disk.full = True
    async with opened(FileStore(root, disk=disk, **SMALL), working=False) as store:
        assert len((await store.load(await store.acquire("a", create=False), snapshots=False)).records) == 400
        with pytest.raises(OSError, match="full"):
            await store._engine.cutter.cut()
        assert [name for name in cut if not (root / "log" / name).exists()] == []
        disk.full = False
        await store._engine.cutter.cut()
        assert [name for name in cut if (root / "log" / name).exists()] == []
    assert check(root).list == []
    assert await loaded(root, "a") == {"a": list(range(1, 401))}


def rows(root: Path) -> list[tuple[int, int, int]]:
    with closing(sqlite3.connect(root / "catalog.db")) as connection:
        return connection.execute("SELECT number, first_seq, last_seq FROM files ORDER BY session, number").fetchall()


async def grown(store: FileStore, count: int):
    lease = await store.acquire("a", create=True)
    push(store, lease, count)
    await store.flush("synced")
    return lease


async def test_a_file_that_an_earlier_cut_began_is_sealed_once(tmp_path):
    disk = LateDisk()
    options = {**SMALL, "segment_bytes": 4000, "journal_bytes": 6000}
    async with opened(FileStore(tmp_path / "store", disk=disk, **options), working=False) as store:
        cutter = store._engine.cutter
        await grown(store, 40)
        while await cutter.cut():
            pass
        for _ in range(5):
            await grown(store, 40)
            disk.late = 1
            with pytest.raises(OSError, match="disk I/O error"):
                await cutter.cut()
            before = journals(tmp_path / "store")[-1].stat().st_mtime_ns
            assert await cutter.cut() == 0  # it happened, and that is found out
            assert journals(tmp_path / "store")[-1].stat().st_mtime_ns == before
        health = store.health()
        assert health.live_segments == 1
    found = rows(tmp_path / "store")
    assert len(found) > 2
    assert [first for _, first, _ in found] == [1, *(last + 1 for _, _, last in found[:-1])]
    assert check(tmp_path / "store").list == []
    assert await loaded(tmp_path / "store", "a") == {"a": list(range(1, 241))}


async def test_while_it_is_not_known_nothing_is_cut_and_nothing_is_lost(tmp_path):
    disk = LateDisk()
    options = {**SMALL, "segment_bytes": 4000}
    async with opened(FileStore(tmp_path / "store", disk=disk, **options), working=False) as store:
        lease = await grown(store, 60)
        before = store.health().live_segments
        disk.late = 3
        for _ in range(3):
            with pytest.raises(OSError, match="disk I/O error"):
                await store._engine.cutter.cut()
            assert store.health().live_segments == before
            assert len((await store.load(lease, snapshots=False)).records) == 60
        await store._engine.cutter.cut()
        assert store.health().live_segments < before
    assert check(tmp_path / "store").list == []
    assert await loaded(tmp_path / "store", "a") == {"a": list(range(1, 61))}


async def test_a_process_that_ends_behind_it_leaves_a_store_that_is_whole(tmp_path):
    disk = LateDisk()
    async with opened(FileStore(tmp_path / "store", disk=disk, **SMALL), working=False) as store:
        await grown(store, 400)
        disk.late = 1
        with pytest.raises(OSError, match="disk I/O error"):
            await store._engine.cutter.cut()
    assert check(tmp_path / "store").damaged is False
    assert await loaded(tmp_path / "store", "a") == {"a": list(range(1, 401))}
    assert check(tmp_path / "store").list == []


async def test_a_deletion_whose_commit_happened_is_one(tmp_path):
    disk = LateDisk()
    async with opened(FileStore(tmp_path / "store", disk=disk, **SMALL), working=False) as store:
        lease = await grown(store, 40)
        while await store._engine.cutter.cut():
            pass
        disk.late = 1
        await store.delete(lease)
        assert [push(store, await store.acquire("a", create=True), 3)] == [None]
        await store.flush("synced")
    assert check(tmp_path / "store").damaged is False
    assert await loaded(tmp_path / "store", "a") == {"a": [1, 2, 3]}


# --- the catalog ------------------------------------------------------------------------------------------------------


def a_file(number: int, first: int, last: int) -> FileRow:
    return FileRow("a", BIRTH, number, first, last, first, last, 2000, 1900, "9ae0daaf", 1)


def a_row(seq: int) -> CatalogRow:
    return CatalogRow("a", BIRTH, 1_769_851_800_000_001, 3, 100, seq, "9ae0daaf", 1)


CHANGES = {
    "cut": lambda catalog: catalog.commit_cut([a_row(20)], [], 4, [a_file(2, 8, 14)], SegmentRef(4, 100)),
    "bury": lambda catalog: catalog.commit_cut([], [("a", BIRTH)], 3),
    "drop": lambda catalog: catalog.files.drop(
        "a", BIRTH, [a_file(1, 1, 7)], forgotten=[], base=RecordRef(7, "9ae0daaf")
    ),
    "log end": lambda catalog: catalog.note_log_end(SegmentRef(9, 9)),
    "forget": lambda catalog: catalog.files.forget_from("a", BIRTH, 1),
}


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_happened_and_is_made_once_more_is_made_once(tmp_path, change, version):
    dumps = []
    for late in (0, 1):
        disk, path = LateDisk(), tmp_path / f"{late}.db"
        catalog = Catalog(path, disk)
        catalog.open(create=True)
        catalog.commit_cut([a_row(7)], [], 2, [a_file(1, 1, 7)] if version == 2 else [])
        disk.late = late
        if late:
            changes = catalog.changes
            try:
                CHANGES[change](catalog)
            except OSError:
                assert catalog.changes == changes + 1
        CHANGES[change](catalog)
        catalog.settle()
        catalog.check()
        catalog.files.check()
        catalog.close()
        dumps.append(dump(path))
    assert dumps[0] == dumps[1]


def test_a_catalog_is_settled_after_a_commit_that_failed_and_when_another_process_made_it(tmp_path):
    disk = LateDisk()
    catalog = Catalog(tmp_path / "catalog.db", disk)
    catalog.open(create=True)
    before = catalog.changes
    catalog.settle()
    assert catalog.changes == before
    catalog.close()
    catalog = Catalog(tmp_path / "catalog.db", disk)
    catalog.open(create=True)
    steps = []
    for late in (1, 0, 0):
        before, disk.late = catalog.changes, late
        try:
            catalog.settle()
        except OSError:
            steps.append("failed")
        else:
            steps.append(catalog.changes - before)
    catalog.close()
    assert steps == ["failed", 1, 0]


# --- stores that were hit before --------------------------------------------------------------------------------------


def spoil(root: Path, session: str, index: int) -> None:
    """Let a row say what a second sealing of a file once made of it."""
    catalog = Catalog(root / "catalog.db")
    catalog.open(create=False)
    row = catalog.get(session)
    file = catalog.files.of(session, row.birth)[index]
    bad = FileRow(file.session, file.birth, file.number, file.last_seq + 1, *astuple(file)[4:])
    catalog.commit_cut([], [], catalog.first_live_segment(), [bad])
    catalog.close()


def astuple(file: FileRow) -> tuple:
    return tuple(getattr(file, name) for name in file.__struct_fields__)


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    await fill(tmp_path / "store")
    return tmp_path / "store"


@pytest.mark.parametrize("index", [0, 1, -1])
async def test_a_session_whose_row_cannot_be_is_loaded_and_its_frames_are_read(root, index):
    spoil(root, "a", index)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        assert [record.seq for record in (await store.load(lease, snapshots=False)).records] == ALL
        assert len(store.archive(lease).read(ALL)) == len(ALL)
        push(store, lease, 60)
        await store.flush("synced")
        while await store._engine.cutter.cut():
            pass
        assert len((await store.load(lease, snapshots=False)).records) == 105


@pytest.mark.parametrize("index", [0, 1, -1])
async def test_verify_tells_of_such_a_row_and_repair_mends_it_from_the_file(root, index):
    sound = rows(root)
    spoil(root, "a", index)
    assert rows(root) != sound
    findings = check(root)
    assert kinds(findings) == ["journal_row"]
    assert "it begins with record" in findings.list[0].what
    assert [step.kind for step in repair(root, write=True).steps] == ["journal_row"]
    assert check(root).list == []
    assert rows(root) == sound
    assert await loaded(root, "a") == {"a": ALL}


@pytest.mark.parametrize("ahead", [0, 1])
async def test_a_row_of_a_sealed_file_that_is_not_before_the_newest_is_told_and_forgotten(root, ahead):
    sound = rows(root)
    catalog = Catalog(root / "catalog.db")
    catalog.open(create=False)
    row = catalog.get("a")
    file = catalog.files.of("a", row.birth)[-1]
    bad = FileRow("a", row.birth, row.journal + ahead, *astuple(file)[3:])
    with catalog._writing() as connection:
        put(connection, bad)
    catalog.close()
    assert kinds(check(root)) == ["journal_row"]
    assert [step.kind for step in repair(root, write=True).steps] == ["journal_row"]
    assert check(root).list == []
    assert rows(root) == sound
    assert await loaded(root, "a") == {"a": ALL}
