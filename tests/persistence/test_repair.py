"""Repairing: without salvage nothing is lost, with it what can be kept is kept, and a second run has nothing to do."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, SessionTombstoned, SessionUnknown, StoreLocked
from session_actor.persistence.repair import repair
from session_actor.persistence.verify import check

from .conformance_tools import listed, opened
from .stores import SMALL, copied, fill, flip, image, journals, kinds, loaded, push, segments

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
    assert mended(root) == ["mode", "mode"]
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


# --- salvage ----------------------------------------------------------------------------------------------------------


def break_record(path: Path, seq: int) -> None:
    data = path.read_bytes()
    flip(path, data.index(b'"at"', data.index(b'{"seq":%d,' % seq)) + 3)


def file_of(root: Path, session: str, seq: int) -> Path:
    return next(path for path in journals(root, session) if b'\n{"seq":%d,' % seq in path.read_bytes())


@pytest.mark.parametrize("seq", [1, 2, 17, 39])
async def test_readable_records_are_kept_with_a_gap(root, seq):
    path = file_of(root, "a", seq)
    break_record(path, seq)
    damaged = path.read_bytes()
    assert mended(root, salvage="readable") == ["journal"]
    found = await loaded(root, *"abc")
    assert found == {"a": ALL, "b": ALL, "c": ALL}  # the gap stands in the place of the record
    assert damaged in [kept.read_bytes() for kept in (root / "aside").iterdir()]
    async with opened(FileStore(root, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        report = (await store.load(lease, snapshots=False)).report
        assert [(gap.first, gap.last) for gap in report.gaps] == [(seq, seq)]
        assert not report.clean
        push(store, lease, 50)
        await store.flush("synced")
    assert check(root).list == []
    assert (await loaded(root, "a"))["a"] == list(range(1, 96))


@pytest.mark.parametrize("seq", [2, 17, 39])
async def test_the_longest_prefix_is_kept(root, seq):
    break_record(file_of(root, "a", seq), seq)
    assert mended(root, salvage="prefix") == ["journal"]
    found = await loaded(root, *"abc")
    assert found == {"a": ALL[: seq - 1], "b": ALL, "c": ALL}
    async with opened(FileStore(root, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        assert (await store.load(lease)).report.clean
        push(store, lease, 50)
        await store.flush("synced")
    assert check(root).list == []
    assert (await loaded(root, "a"))["a"] == list(range(1, seq + 50))


async def test_a_session_whose_first_record_is_lost_has_no_prefix(root):
    break_record(journals(root, "a")[0], 1)
    repairs = repair(root, write=True, salvage="prefix")
    assert kinds_of(repairs.left) == {"journal"}
    assert mended(root, salvage="readable") == ["journal"]


@pytest.mark.parametrize("which", [0, 1, -1])
@pytest.mark.parametrize("damage", ["missing", "short", "empty", "header", "other"])
async def test_lost_files_become_gaps(root, which, damage):
    path = journals(root, "a")[which]
    data = path.read_bytes()
    match damage:
        case "missing":
            path.unlink()
        case "short":
            path.write_bytes(data[: len(data) // 2])
        case "empty":
            path.write_bytes(b"")
        case "header":
            flip(path, 20)
        case "other":
            path.write_bytes(journals(root, "b")[which].read_bytes())
    assert mended(root, salvage="readable") == ["journal"]
    async with opened(FileStore(root, **SMALL), working=False) as store:
        found = await store.load(await store.acquire("a", create=False), snapshots=False)
        assert found.records[-1].seq == 45
        assert bool(found.report.gaps) == (damage != "header")
    assert await loaded(root, *"bc") == {"b": ALL, "c": ALL}


async def test_only_the_sessions_asked_for_are_salvaged(root):
    for session in "ab":
        break_record(file_of(root, session, 17), 17)
    repairs = repair(root, write=True, salvage="prefix", sessions=["b"])
    assert [step.session for step in repairs.steps] == ["b"]
    assert {finding.session for finding in repairs.left} == {"a"}
    assert (await loaded(root, "b"))["b"] == ALL[:16]


def break_line(root: Path, session: str, *, owner: bool) -> None:
    """Damage the third line of a session in the log; `owner`: so that its name cannot be read any more."""
    path = segments(root)[-1]
    data = path.read_bytes()
    at = -1
    for _ in range(3):
        at = data.index(b'"s":"%b"' % session.encode(), at + 1)
    flip(path, at + 1 if owner else data.index(b'"user_input"', at) + 3)


@pytest.mark.parametrize("owner", [False, True])
async def test_damage_in_the_log_is_salvaged(root, owner):
    break_line(root, "b", owner=owner)
    damaged = segments(root)[-1].read_bytes()
    kinds_done = mended(root, salvage="readable")
    assert set(kinds_done) <= {"log", "journal"}
    assert await loaded(root, *"abc") == {"a": ALL, "b": ALL, "c": ALL}
    async with opened(FileStore(root, **SMALL), working=False) as store:
        report = (await store.load(await store.acquire("b", create=False), snapshots=False)).report
        assert [(gap.first, gap.last) for gap in report.gaps] == [(43, 43)]
    assert damaged in [kept.read_bytes() for kept in (root / "aside").iterdir()]


@pytest.mark.parametrize("owner", [False, True])
async def test_damage_in_the_log_is_cut_back_to_the_prefix(root, owner):
    break_line(root, "b", owner=owner)
    mended(root, salvage="prefix")
    assert await loaded(root, *"abc") == {"a": ALL, "b": ALL[:42], "c": ALL}


@pytest.mark.parametrize(
    ("sessions", "owner", "mends"), [("ac", False, False), ("b", False, True), ("abc", True, False)]
)
async def test_the_log_is_left_alone_unless_all_whom_its_damage_concerns_are_asked_for(root, sessions, owner, mends):
    break_line(root, "b", owner=owner)
    repairs = repair(root, write=True, salvage="readable", sessions=list(sessions))
    assert (repairs.left == []) == mends
    assert {finding.kind for finding in check(root).list if finding.severity == "damage"} <= {"log", "log_chain"}
    assert check(root).damaged != mends


async def test_a_lost_end_that_is_known_is_a_gap(root):
    path = segments(root)[-1]
    data = path.read_bytes()
    at = data.rindex(b'"s":"b"')
    flip(path, data.index(b'"user_input"', at) + 3)
    mended(root, salvage="readable")
    assert (await loaded(root, "b"))["b"] == ALL


async def interleaved(root: Path, rounds: int = 50) -> None:
    """Three sessions that write in turn, over several segments of the log."""
    await fill(root, in_log=0)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        leases = [await store.acquire(session, create=False) for session in "abc"]
        for lease in leases:
            await store.load(lease)
        for _ in range(rounds):
            for lease in leases:
                push(store, lease, 3)
            await store.flush("synced")


@pytest.mark.parametrize("which", [0, 1])
async def test_a_lost_segment_is_salvaged(tmp_path, which):
    """Records before and behind it are kept."""
    root = tmp_path / "store"
    await interleaved(root)
    assert len(segments(root)) > 3
    lost = segments(root)[which].read_bytes().count(b'"s":"a"')
    segments(root)[which].unlink()
    mended(root, salvage="readable")
    found = await loaded(root, *"abc")
    assert all(seqs[-1] == 190 for seqs in found.values())
    assert len(found["a"]) == 190 - max(0, lost - 1)


async def test_a_lost_catalog_and_a_lost_segment_keep_what_came_before_it_aside(tmp_path):
    root = tmp_path / "store"
    await interleaved(root)
    first = segments(root)[0].read_bytes()
    segments(root)[1].unlink()
    (root / "catalog.db").unlink()
    assert repair(root, write=True, salvage="readable").left == []
    assert first in [kept.read_bytes() for kept in (root / "aside").iterdir()]
    assert (await loaded(root, "a"))["a"][-1] == 190


async def test_everything_at_once(root):
    (root / "FORMAT").unlink()
    (root / "catalog.db").write_bytes(b"")
    break_record(file_of(root, "a", 17), 17)
    break_line(root, "b", owner=True)
    journals(root, "c")[1].unlink()
    (root / "journals" / "zz").write_text("a file")
    os.mkfifo(root / "journals" / "pipe")
    repairs = repair(root, write=True, salvage="readable")
    assert repairs.left == []
    assert kinds(check(root)) == []
    found = await loaded(root, *"abc")
    assert all(seqs[-1] >= 40 for seqs in found.values())
    assert found["a"] == ALL


async def test_repair_works_under_a_running_loop(root):
    flip(journals(root, "a")[0], 300)
    repairs = await asyncio.to_thread(repair, root, write=True, salvage="readable")
    assert repairs.left == []
