"""Files of journals that the catalog does not count: whose they are and what they hold decides what becomes of them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, StoreCorrupt
from session_actor.persistence.checking.verify import check
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.format.header import JournalHeader, RecordRef, encode_journal_header
from session_actor.persistence.repair.repair import repair

from .conformance_tools import AT_US, opened
from .stores import SMALL, copied, cut_all, flip, journals, kinds, loaded, push, segments

BIRTH = "00000000000000ff"


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


async def grow(root: Path, count: int, *, cut: bool, journal_bytes: int = 2_000, load: bool = True) -> None:
    async with opened(FileStore(root, **{**SMALL, "journal_bytes": journal_bytes}), working=False) as store:
        lease = await store.acquire("a", create=True)
        if load:
            await store.load(lease)
        push(store, lease, count)
        await store.flush("synced")
        while cut and (store._engine.log.seal() or await store._engine.cutter.cut()):
            pass


async def new_birth(root: Path, count: int) -> None:
    """The session is deleted and made again."""
    async with opened(FileStore(root, **SMALL), working=False) as store:
        await store.delete(await store.acquire("a", create=False))
    await grow(root, count, cut=False)
    await cut_all(root)


def catalog(root: Path) -> bytes:
    return (root / "catalog.db").read_bytes()


def found(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in journals(root)}


def kept(root: Path) -> set[bytes]:
    folder = root / "aside"
    return {path.read_bytes() for path in folder.iterdir()} if folder.exists() else set()


def path_of(root: Path, number: int) -> Path:
    return root / "journals" / journal_path("a", number)


async def before_its_first_cut(root: Path) -> None:
    """15 records are cut, 5 are in the log, and the catalog knows of nothing."""
    await grow(root, 0, cut=False)
    older = catalog(root)
    await grow(root, 15, cut=False)
    await cut_all(root)
    await grow(root, 5, cut=False)
    (root / "catalog.db").write_bytes(older)


async def test_repair_counts_a_journal_that_is_older_than_the_first_cut_of_its_catalog(root):
    await before_its_first_cut(root)
    files = found(root)
    assert "uncounted" in kinds(check(root))
    assert [step.kind for step in repair(root, write=True).steps] == ["uncounted"]
    assert not check(root).list
    assert found(root) == files
    assert await loaded(root, "a") == {"a": list(range(1, 21))}


async def test_a_cut_writes_no_journal_from_the_middle(root):
    await before_its_first_cut(root)
    files = found(root)
    with pytest.raises(StoreCorrupt, match="the log goes on with record 16"):
        await cut_all(root)
    assert found(root) == files


@pytest.mark.parametrize("recovery", ["prefix", "readable"])
async def test_salvage_when_a_session_is_loaded_takes_the_journal_that_no_catalog_counts(root, recovery):
    await before_its_first_cut(root)
    assert await loaded(root, "a", recovery=recovery) == {"a": list(range(1, 21))}
    repair(root, write=True)
    assert not check(root).list
    assert await loaded(root, "a") == {"a": list(range(1, 21))}


@pytest.mark.parametrize("count", [10, 60])
async def test_repair_takes_the_birth_that_is_there_where_nothing_is_left_of_the_one_that_the_catalog_has(root, count):
    await grow(root, 5, cut=False)
    await cut_all(root)
    older = catalog(root)
    await new_birth(root, count)
    files = found(root)
    (root / "catalog.db").write_bytes(older)
    assert set(kinds(check(root))) == {"journal", "uncounted"}
    repair(root, write=True)
    assert not check(root).list
    assert (found(root), kept(root)) == (files, set())
    assert await loaded(root, "a") == {"a": list(range(1, count + 1))}


async def test_the_same_while_it_has_records_in_the_log(root):
    await grow(root, 5, cut=False)
    await cut_all(root)
    older = catalog(root)
    await new_birth(root, 30)
    await grow(root, 5, cut=False)
    (root / "catalog.db").write_bytes(older)
    repair(root, write=True)
    assert not check(root).list
    assert await loaded(root, "a") == {"a": list(range(1, 36))}


async def test_files_of_another_birth_go_aside_when_a_damaged_session_is_salvaged_and_no_earlier(root):
    await grow(root, 5, cut=False)
    await cut_all(root)
    older = catalog(root)
    await new_birth(root, 60)
    (root / "catalog.db").write_bytes(older)
    flip(path_of(root, 1), 5)  # it is not known any more whose it is
    files = found(root)
    assert repair(root, write=True).steps == []
    assert found(root) == files
    repair(root, write=True, salvage="readable")
    assert not check(root).damaged
    assert {data for name, data in files.items() if name != path_of(root, 1).name} <= kept(root)


async def test_a_session_that_goes_on_by_an_older_catalog_passes_over_files_of_another_birth(root):
    await grow(root, 5, cut=False)
    await cut_all(root)
    older = catalog(root)
    await new_birth(root, 60)
    files = found(root)
    (root / "catalog.db").write_bytes(older)
    await grow(root, 3, cut=False, load=False)
    await cut_all(root)
    assert files.items() <= found(root).items()
    assert len(found(root)) == len(files) + 1


async def test_salvage_writes_over_no_file_that_nobody_counts(root):
    await grow(root, 10, cut=False)
    await cut_all(root)
    header, _ = encode_journal_header(JournalHeader("a", BIRTH, 2, RecordRef(7, "0123abcd")))
    path_of(root, 2).write_bytes(header + b"".join(path_of(root, 1).read_bytes().splitlines(keepends=True)[8:]))
    path_of(root, 2).chmod(0o600)
    whole = path_of(root, 2).read_bytes()
    flip(path_of(root, 1), 400)
    await loaded(root, "a", recovery="readable")
    assert path_of(root, 2).read_bytes() == whole


async def test_a_journal_whose_newest_file_is_damaged_does_not_go_on_over_what_the_catalog_does_not_count(root):
    await grow(root, 10, cut=False)
    await cut_all(root)
    older = catalog(root)
    await grow(root, 40, cut=False)
    await cut_all(root)
    files = found(root)
    (root / "catalog.db").write_bytes(older)
    flip(path_of(root, 1), 5)
    damaged = found(root)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        lease = await store.acquire("a", create=False)
        for seq in range(11, 71):
            store.append(lease, seq, seq, "pushed", b'{"id":%d,"user_input":"another"}' % seq, 200)
        await store.flush("synced")
    with pytest.raises(StoreCorrupt, match="older than the journal"):
        await cut_all(root)
    assert found(root) == damaged
    assert len(files) > 1


async def test_what_lies_behind_damage_in_what_is_not_counted_is_not_overwritten(root):
    await grow(root, 5, cut=False, journal_bytes=1 << 20)
    await cut_all(root)
    older, size = catalog(root), path_of(root, 1).stat().st_size
    await grow(root, 20, cut=True, journal_bytes=1 << 20)
    (root / "catalog.db").write_bytes(older)
    flip(path_of(root, 1), size + 20)
    whole = path_of(root, 1).read_bytes()
    await grow(root, 3, cut=False, journal_bytes=1 << 20)
    with pytest.raises(StoreCorrupt, match="older than the journal"):
        await cut_all(root)
    assert path_of(root, 1).read_bytes() == whole
    repair(root, write=True)
    assert whole[size:] in kept(root)


async def test_what_an_unfinished_cut_left_is_removed_only_where_the_log_has_it(root):
    await grow(root, 10, cut=False)
    await cut_all(root)
    await grow(root, 40, cut=False)
    cut = copied(root, "cut")
    await cut_all(cut)
    for path in journals(cut):
        target = root / path.relative_to(cut)
        target.write_bytes(path.read_bytes())
        target.chmod(0o600)
    whole = path_of(root, 3).read_bytes()
    short = copied(root, "short")
    assert "leftover" in kinds(check(root), "note")
    repair(root, write=True)
    assert not path_of(root, 3).exists()
    for path in segments(short):
        path.unlink()
    (short / "catalog.db").write_bytes(catalog(root))
    repair(short, write=True, salvage="readable")
    left = {path.read_bytes() for path in short.rglob("*.ndjson*")}
    assert any(whole.splitlines()[-2] in data for data in left)


async def test_a_snapshot_of_a_birth_that_the_catalog_does_not_know_goes_aside(root):
    await grow(root, 0, cut=False)
    older = catalog(root)
    async with opened(FileStore(root, **{**SMALL, "cut_at_close": 64})) as store:
        lease = await store.acquire("a", create=True)
        await store.load(lease)
        push(store, lease, 10)
        await store.flush("synced")
        store.save(lease, 10, b'{"snapshot":1}')
        await store.saved(lease, 10)
    (snapshot,) = (root / "snapshots").glob("*/a-*.ndjson")
    whole = snapshot.read_bytes()
    (root / "catalog.db").write_bytes(older)
    repair(root, write=True)
    assert not check(root).list
    assert whole in kept(root)


async def test_a_cut_of_two_segments_overwrites_no_file_of_another_history(root):
    """The records of the first are those that differ, and the second is what needs the file."""

    async def say(counts: list[int], text: bytes, journal_bytes: int) -> None:
        async with opened(FileStore(root, **{**SMALL, "journal_bytes": journal_bytes}), working=False) as store:
            lease = await store.acquire("a", create=True)
            for count in counts:
                for seq in range(lease.appended_seq + 1, lease.appended_seq + 1 + count):
                    store.append(lease, seq, AT_US + seq, "pushed", b'{"id":%d,"user_input":"%b"}' % (seq, text), 200)
                await store.flush("synced")
                store._engine.log.seal()
            with contextlib.suppress(StoreCorrupt):
                await store._engine.cutter.cut()

    await say([6], b"before", 2_000)
    older = (root / "catalog.db").read_bytes()
    await say([5], b"counted", 900)
    (path,) = [path for path in journals(root) if path.stem.endswith("-2")]
    whole = path.read_bytes()
    (root / "catalog.db").write_bytes(older)
    await say([5, 10], b"other", 2_000)
    assert path.read_bytes() == whole
