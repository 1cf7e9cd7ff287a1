"""Repairing: without salvage nothing is lost, with it what can be kept is kept, and a second run has nothing to do."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from session_actor.persistence import CatalogCorrupt, FileStore, SessionTombstoned, SessionUnknown, StoreLocked
from session_actor.persistence.checking.verify import check
from session_actor.persistence.repair.repair import repair

from .conformance_tools import listed, opened
from .stores import SMALL, copied, fill, flip, image, journals, loaded, push, stale_index

ALL = list(range(1, 46))


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    await fill(tmp_path / "store")
    return tmp_path / "store"


def mended(root: Path, **options) -> list[str]:
    """Repair, check that this was all, and return the kinds of the steps."""
    repairs = repair(root, write=True, **options)
    assert repairs.left == []
    assert check(root).list == []
    before = image(root)
    again = repair(root, write=True, **options)
    assert (again.steps, again.left) == ([], [])
    assert {name: entry for name, entry in image(root).items() if name != "LOCK"} == {
        name: entry for name, entry in before.items() if name != "LOCK"
    }
    return [step.kind for step in repairs.steps]


async def test_a_sound_store_needs_nothing(root):
    before = image(root)
    repairs = repair(root)
    assert (repairs.steps, repairs.left) == ([], [])
    assert image(root) == before
    assert mended(root) == []


async def test_a_dry_run_changes_nothing(root):
    (root / "catalog.db").unlink()
    flip(journals(root, "a")[0], 300)
    before = image(root)
    repairs = repair(root, salvage="readable")
    assert [step.kind for step in repairs.steps] == ["catalog", "journal"]
    assert not repairs.written
    assert image(root) == before


async def test_a_store_in_use_is_refused(root):
    async with opened(FileStore(root), working=False):
        for write in (False, True):
            with pytest.raises(StoreLocked):
                repair(root, write=write)


# --- without loss -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["missing", "garbage", "empty", "flipped"])
async def test_a_lost_catalog_is_made_anew(root, damage):
    path = root / "catalog.db"
    birth = journals(root, "a")[0].read_bytes().split(b'"birth":"')[1][:16]
    match damage:
        case "missing":
            path.unlink()
        case "flipped":
            flip(path, path.read_bytes().index(birth) + 3)
        case _:
            path.write_bytes(b"garbage" * 1000 if damage == "garbage" else b"")
    assert mended(root) == ["catalog"]
    assert await loaded(root, *"abc") == dict.fromkeys("abc", ALL)
    assert damage == "missing" or (root / "aside" / "catalog.db.damaged").exists()
    async with opened(FileStore(root, **SMALL), working=False) as store:
        assert await listed(store) == list("abc")
        lease = await store.acquire("a", create=False)
        found = await store.load(lease)
        assert found.snapshot is not None
        assert found.snapshot.seq == 39
        push(store, lease, 100)
    assert check(root).list == []


async def test_a_lost_catalog_and_log_leave_what_is_in_the_journals(root):
    (root / "catalog.db").unlink()
    shutil.rmtree(root / "log")
    (root / "log").mkdir(mode=0o700)
    mended(root)
    found = await loaded(root, *"abc")
    assert all(seqs == ALL[: len(seqs)] and len(seqs) >= 40 for seqs in found.values())


async def test_a_deleted_session_does_not_come_back_with_a_new_catalog(tmp_path):
    """Its tombstone is still in the log, and its journal could not be removed."""
    root = tmp_path / "store"
    await fill(root, "ab", in_log=0)
    kept = copied(root, "kept")
    async with opened(FileStore(root, **SMALL), working=False) as store:
        await store.delete(await store.acquire("a", create=False))
        killed = copied(root, "killed")
    for path in journals(kept, "a"):
        target = killed / path.relative_to(kept)
        target.parent.mkdir(exist_ok=True, mode=0o700)
        shutil.copy2(path, target)
    (killed / "catalog.db").unlink()
    repair(killed, write=True)
    assert not journals(killed, "a")
    async with opened(FileStore(killed, **SMALL), working=False) as store:
        assert await listed(store) == ["b"]
        with pytest.raises((SessionTombstoned, SessionUnknown)):
            await store.acquire("a", create=False)


async def test_tombstones_that_can_be_read_in_a_damaged_catalog_count(tmp_path):
    root = tmp_path / "store"
    await fill(root, "ab", in_log=0)
    kept = copied(root, "kept")
    async with opened(FileStore(root, **SMALL), working=False) as store:
        await store.delete(await store.acquire("a", create=False))
    async with opened(FileStore(root, **SMALL), working=False) as store:
        while await store._engine.cutter.cut():
            pass
    for path in journals(kept, "a"):
        shutil.copy2(path, root / path.relative_to(kept))
    birth = journals(root, "b")[0].read_bytes().split(b'"birth":"')[1][:16]
    data = (root / "catalog.db").read_bytes()
    flip(root / "catalog.db", data.index(birth) + 3)
    repair(root, write=True)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        assert await listed(store) == ["b"]


async def test_a_lost_format_is_written_anew(root):
    whole = (root / "FORMAT").read_bytes()
    for content in (None, b"", b"nonsense\n"):
        (root / "FORMAT").unlink() if content is None else (root / "FORMAT").write_bytes(content)
        assert mended(root) == ["format"]
        assert (root / "FORMAT").read_bytes() == whole
    assert await loaded(root, "a") == {"a": ALL}


async def test_a_bad_index_is_made_anew_in_a_new_file(root):
    path = journals(root, "a")[0]
    whole = path.read_bytes()
    flip(path, len(whole) - 40)
    damaged = path.read_bytes()
    assert mended(root) == ["index"]
    assert path.read_bytes() == whole
    assert [kept.read_bytes() for kept in (root / "aside").iterdir()] == [damaged]
    assert await loaded(root, "a") == {"a": ALL}


@pytest.mark.parametrize("left", [0, 1, 30])
async def test_an_index_that_is_cut_off_is_made_anew(root, left):
    path = journals(root, "a")[0]
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.index(b'{"index":') + left])
    assert [finding.kind for finding in check(root).list if finding.severity == "damage"] == ["index"]
    assert mended(root) == ["index"]
    assert path.read_bytes() == whole
    assert await loaded(root, "a") == {"a": ALL}


async def test_leftovers_and_tails_go_and_strangers_stay(root):
    path = journals(root, "a")[-1]
    whole = path.read_bytes()
    path.write_bytes(whole + b"half a line")
    number = int(path.stem.rpartition("-")[2])
    after = path.with_name(path.name.replace(f"-{number}.", f"-{number + 1}."))
    shutil.copy2(path, after)
    header = whole.splitlines(keepends=True)[0]
    after.write_bytes(header)
    (path.parent / "notes.txt").write_text("mine")
    repairs = repair(root, write=True)
    assert sorted(step.kind for step in repairs.steps) == ["leftover", "mode", "tail"]
    assert path.read_bytes() == whole
    assert not after.exists()
    assert (path.parent / "notes.txt").read_text() == "mine"
    assert await loaded(root, "a") == {"a": ALL}


async def test_bad_snapshots_go_aside(root):
    first, _ = sorted((root / "snapshots").glob("*/a-*.ndjson"))
    flip(first, first.stat().st_size - 30)
    damaged = first.read_bytes()
    assert mended(root) == ["snapshot"]
    assert [kept.read_bytes() for kept in (root / "aside").iterdir()] == [damaged]
    assert await loaded(root, "a") == {"a": ALL}


async def test_modes_are_made_private_again(root):
    (root / "log").chmod(0o755)
    journals(root, "a")[0].chmod(0o644)
    assert mended(root) == ["mode"]
    assert journals(root, "a")[0].stat().st_mode & 0o777 == 0o600
    assert (root / "log").stat().st_mode & 0o777 == 0o700


async def test_damage_is_left_alone_without_salvage(root):
    flip(journals(root, "a")[0], 300)
    before = image(root)
    repairs = repair(root, write=True)
    assert repairs.steps == []
    assert kinds_of(repairs.left) == {"journal"}
    after = image(root)
    assert {name: after[name] for name in after if name != "LOCK"} == {
        name: before[name] for name in before if name != "LOCK"
    }


def kinds_of(findings) -> set[str]:
    return {finding.kind for finding in findings}


async def test_repair_works_under_a_running_loop(root):
    flip(journals(root, "a")[0], 300)
    repairs = await asyncio.to_thread(repair, root, write=True, salvage="readable")
    assert repairs.left == []


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM files WHERE number = 1",
        "UPDATE files SET last_frame = last_frame + 1000 WHERE number = 1",
        (
            "INSERT INTO files SELECT * FROM (SELECT session || 'z', birth, number, first_seq, last_seq, first_frame, "
            "last_frame, bytes, index_offset, sum, crc, dropped, row_sum FROM files LIMIT 1)"
        ),
    ],
    ids=["too much", "other", "too little"],
)
async def test_an_index_of_the_catalog_that_is_not_as_its_table_is_found_and_mended(root, change):
    expected = await loaded(root, *"abc")
    stale_index(root / "catalog.db", change)
    assert "catalog" in [finding.kind for finding in check(root).list]
    with pytest.raises(CatalogCorrupt, match="index"):
        async with opened(FileStore(root, **SMALL), working=False):
            pass
    assert mended(root) == ["catalog"]
    assert await loaded(root, *"abc") == expected == dict.fromkeys("abc", ALL)
