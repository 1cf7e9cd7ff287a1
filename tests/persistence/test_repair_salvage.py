"""Repairing with salvage: what can be kept of a damaged session is kept, and what is lost is told."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from session_actor.persistence import FileStore
from session_actor.persistence.checking.verify import check
from session_actor.persistence.repair.repair import repair

from .conformance_tools import opened
from .stores import SMALL, copied, cut_all, fill, flip, image, journals, kinds, loaded, push, segments
from .test_repair import kinds_of, mended

ALL = list(range(1, 46))


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    await fill(tmp_path / "store")
    return tmp_path / "store"


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


@pytest.mark.parametrize(
    ("salvage", "says", "dropped"),
    [("prefix", "kept: records up to 16; lost: 29", 29), ("readable", "kept: records up to 45; lost: 1 (17)", 0)],
)
async def test_the_dry_run_says_what_would_be_lost_and_it_comes_so(root, salvage, says, dropped):
    """The files behind the damaged one, and the log, count as well."""
    break_record(file_of(root, "a", 17), 17)
    before = image(root)
    (would,) = repair(root, salvage=salvage).steps
    assert would.what.endswith(f"; {says}")
    assert image(root) == before
    (did,) = repair(copied(root, "mended"), salvage=salvage, write=True).steps
    assert did.what == would.what
    async with opened(FileStore(root, **SMALL, recovery=salvage), working=False) as store:
        assert (await store.load(await store.acquire("a", create=False), snapshots=False)).report.dropped == dropped


@pytest.mark.parametrize("salvage", ["prefix", "readable"])
async def test_the_dry_run_counts_what_is_lost_in_the_log_too(tmp_path, salvage):
    root = tmp_path / "store"
    await fill(root, "a", in_log=150)
    (path, *_) = [path for path in segments(root) if b'{"seq":50,' in path.read_bytes()]
    break_record(path, 50)
    (would,) = repair(root, salvage=salvage).steps
    (did,) = repair(root, salvage=salvage, write=True).steps
    assert would.what.rpartition("; kept: ")[2] == did.what.rpartition("; kept: ")[2] != ""
    lost = "lost: 141" if salvage == "prefix" else "lost: 1 (50)"
    assert did.what.endswith(lost)


async def test_the_dry_run_says_when_nothing_can_be_kept(root):
    break_record(file_of(root, "a", 1), 1)
    (would,) = repair(root, salvage="prefix").steps
    assert would.what.endswith("; nothing can be kept")


async def test_a_store_that_lost_its_catalog_and_all_journals_is_mended_from_its_log(root):
    (root / "catalog.db").unlink()
    shutil.rmtree(root / "journals")
    left = repair(root, salvage="prefix", write=True).left
    assert [finding.session for finding in left] == list("abc")
    assert repair(root, salvage="readable", write=True).left == check(root).list == []
    assert await loaded(root, *"abc") == dict.fromkeys("abc", ALL[39:])  # the gap, and what is behind it


async def test_journals_that_somebody_removed_keep_no_new_session_from_being_kept(root):
    shutil.rmtree(root / "journals")
    async with opened(FileStore(root, **SMALL), working=False) as store:
        push(store, await store.acquire("new", create=True), 20)
        await store.flush("synced")
    await cut_all(root)
    assert await loaded(root, "new") == {"new": list(range(1, 21))}
    assert journals(root, "new") != []


@pytest.mark.parametrize("salvage", ["prefix", "readable"])
async def test_one_repair_does_all_that_can_be_done_though_nothing_can_be_kept_of_some(root, salvage):
    """The files of two sessions were swapped; a third is mended."""
    for one, other in zip(journals(root, "a"), journals(root, "b"), strict=True):
        ours, theirs = one.read_bytes(), other.read_bytes()
        one.write_bytes(theirs)
        other.write_bytes(ours)
    break_record(file_of(root, "c", 17), 17)
    first = repair(root, salvage=salvage, write=True)
    assert ("journal", "c") in [(step.kind, step.session) for step in first.steps]
    assert "leftover" not in [step.kind for step in first.steps]
    again = repair(root, salvage=salvage, write=True)
    assert (again.steps, again.left) == ([], first.left)
    assert {finding.kind for finding in check(root).list} <= {"journal"}
    assert (first.left == []) == (salvage == "readable")


async def test_a_session_is_loaded_and_goes_on_when_the_loss_was_at_the_beginning_of_a_file(root):
    """Then salvage leaves a newest file that holds no record yet."""
    path = journals(root, "a")[1]
    first = next(seq for seq in ALL if b'\n{"seq":%d,' % seq in path.read_bytes())
    break_record(path, first)
    repair(root, salvage="prefix", write=True)
    assert check(root).list == []
    assert await loaded(root, "a") == {"a": ALL[: first - 1]}
    async with opened(FileStore(root, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        await store.load(lease)
        push(store, lease, 3)
    await cut_all(root)
    assert check(root).list == []
    assert await loaded(root, "a") == {"a": ALL[: first + 2]}
