"""Opening a store after a crash: what is read, what is torn off and kept aside, what is refused."""

from __future__ import annotations

import asyncio
import itertools
import shutil
from pathlib import Path

import pytest

from session_actor.persistence import (
    FileStore,
    JournalCorrupt,
    JournalTruncated,
    LogCorrupt,
    SessionTombstoned,
    StoreCorrupt,
    StoreVersionTooNew,
)
from session_actor.persistence.format.record import close_line

from ..living import copy_living
from .conformance import listed, opened, said, say
from .disks import TroubledDisk


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


async def write(root: Path, *sessions: str, count: int = 5, sync: bool = True, **options) -> None:
    """A store with `count` records in each session, in turn, left as a killed process leaves it."""
    store = FileStore(root.with_name("living"), **options)
    async with opened(store, working=False):
        leases = [await store.acquire(session, create=True) for session in sessions]
        for number, lease in itertools.product(range(count), leases):
            say(store, lease, str(number))
            await store.flush("synced" if sync else "written")
        await copy_living(root.with_name("living"), root)


async def texts(store: FileStore, session: str) -> list[str]:
    return await said(store, await store.acquire(session, create=False))


def segment(root: Path, index: int = 0) -> Path:
    return sorted((root / "log").glob("*.ndjson"))[index]


def journal(root: Path) -> Path:
    (path,) = (root / "journals").glob("*/*.ndjson")
    return path


async def cut(root: Path) -> None:
    """Move everything into the journals."""
    async with opened(FileStore(root), working=False) as store:
        while await store._engine.cutter.cut():
            pass


# --- the log ----------------------------------------------------------------------------------------------------------


async def test_what_a_killed_process_had_written_is_read_and_synced(root):
    await write(root, "a", "b")
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk), working=False) as store:
        assert "sync" in disk.calls
        lease = await store.acquire("a", create=False)
        report = (await store.load(lease)).report
        assert (report.seq, report.log_records, report.journal_records, report.clean) == (5, 5, 0, True)
        assert (lease.appended_seq, lease.written_seq, lease.synced_seq) == (5, 5, 5)
        assert await texts(store, "b") == list("01234")
        assert [(info.id, info.seq) async for info in store.sessions()] == [("a", 5), ("b", 5)]


async def test_a_torn_end_is_dropped_and_kept_aside_and_reported(root):
    await write(root, "a", sync=False)
    data = segment(root).read_bytes().rstrip(b"\0")
    segment(root).write_bytes(data[:-30] + bytes(100))
    async with opened(FileStore(root), working=False) as store:
        lease = await store.acquire("a", create=False)
        loaded = await store.load(lease)
        assert [record.seq for record in loaded.records] == [1, 2, 3, 4]
        (torn,) = loaded.report.torn
        whole = data.rindex(b"\n", 0, -1) + 1
        assert (torn.path, torn.offset, torn.size_bytes) == (str(segment(root)), whole, len(data) - 30 - whole)
        assert Path(torn.kept_at).read_bytes() == data[whole:-30]
        assert Path(torn.kept_at).stat().st_mode & 0o777 == 0o600
        say(store, lease, "again")
    async with opened(FileStore(root), working=False) as store:
        assert await texts(store, "a") == ["0", "1", "2", "3", "again"]
        assert (await store.load(await store.acquire("a", create=False))).report.clean


async def test_records_after_a_torn_end_are_dropped_for_all_sessions(root):
    """The prefix rule: whatever was acknowledged as synced lies before the torn end; what lies behind it was not."""
    await write(root, "a", "b", sync=False)
    data = bytearray(segment(root).read_bytes())
    lines = data.split(b"\n")
    offset = sum(len(line) + 1 for line in lines[:6])
    data[offset + 20] ^= 1
    segment(root).write_bytes(data)
    async with opened(FileStore(root), working=False) as store:
        assert await texts(store, "a") == ["0", "1", "2"]
        assert await texts(store, "b") == ["0", "1"]


async def test_damage_in_the_log_refuses_the_session_that_it_concerns_and_no_other(root):
    await write(root, "a", "b")
    data = bytearray(segment(root).read_bytes())
    offset = data.index(b'"text":"2"')
    data[offset + 9] ^= 1
    segment(root).write_bytes(data)
    before = segment(root).read_bytes()
    async with opened(FileStore(root)) as store:
        with pytest.raises(LogCorrupt) as refused:
            await store.acquire("a", create=False)
        assert refused.value.path == str(segment(root))
        assert refused.value.offset == data.rindex(b"\n", 0, offset) + 1
        assert await texts(store, "b") == list("01234")
        lease = await store.acquire("c", create=True)
        say(store, lease, "new")
        await store.flush("synced")
        await asyncio.sleep(0.05)
    assert segment(root).read_bytes() == before
    async with opened(FileStore(root)) as store:
        with pytest.raises(LogCorrupt):
            await store.acquire("a", create=True)
        assert await texts(store, "c") == ["new"]


async def test_damage_that_hides_its_owner_refuses_whoever_is_not_shown_to_be_whole(root):
    await write(root, "a", "b", "c")
    data = bytearray(segment(root).read_bytes())
    last_of_a = data.rindex(b'"s":"a"')
    data[last_of_a + 5] ^= 1
    segment(root).write_bytes(data)
    async with opened(FileStore(root), working=False) as store:
        with pytest.raises(LogCorrupt):
            await store.acquire("a", create=False)
        assert await texts(store, "b") == list("01234")
        assert await texts(store, "c") == list("01234")


async def test_a_lost_segment_is_damage(root):
    await write(root, "a", count=100, segment_bytes=4096)
    assert len(list((root / "log").glob("*.ndjson"))) > 3
    segment(root, 1).unlink()
    async with opened(FileStore(root), working=False) as store:
        with pytest.raises(StoreCorrupt):
            await texts(store, "a")


@pytest.mark.parametrize("kept", [0, 1, 2])
async def test_segments_that_were_never_synced_may_be_lost_in_any_way(root, kept):
    """Power was lost: of three segments without any synced line, one lost its contents."""
    await write(root, "a", count=100, sync=False, segment_bytes=4096, sync_interval_s=1000)
    segments = sorted((root / "log").glob("*.ndjson"))
    assert len(segments) >= 3
    for path in segments:
        data = path.read_bytes()
        assert data.count(b'"w":0,') == data.count(b'"w":')
    segments[kept].write_bytes(bytes(4096))
    async with opened(FileStore(root), working=False) as store:
        found = await texts(store, "a") if await listed(store) else []
        assert found == [str(number) for number in range(len(found))]
        assert bool(found) == (kept > 0)
    async with opened(FileStore(root), working=False) as store:
        assert (await texts(store, "a") if found else []) == found


async def test_leftovers_of_what_was_never_begun_are_removed(root):
    await write(root, "a")
    for name in ("spare", "takeover"):
        (root / "log" / name).write_bytes(b"\0" * 100)
    async with opened(FileStore(root), working=False) as store:
        assert await texts(store, "a") == list("01234")
        assert sorted(path.name for path in (root / "log").iterdir()) == ["00000001.ndjson"]


async def test_a_segment_of_a_newer_version_is_refused_and_left_as_it_is(root):
    await write(root, "a")
    line, _ = close_line(b'{"format":"session-actor-log","version":2,"number":2')
    newer = root / "log" / "00000002.ndjson"
    newer.write_bytes(line)
    before = {path: path.read_bytes() for path in (root / "log").iterdir()}
    with pytest.raises(StoreVersionTooNew, match=r"00000002.ndjson needs version 2"):
        await FileStore(root).open()
    assert {path: path.read_bytes() for path in (root / "log").iterdir()} == before


async def test_opening_twice_after_a_crash_finds_the_same(root):
    await write(root, "a", "b", sync=False)
    data = segment(root).read_bytes().rstrip(b"\0")
    segment(root).write_bytes(data[:-3])
    found = []
    for _ in range(3):
        async with opened(FileStore(root), working=False) as store:
            found.append([await texts(store, "a"), await texts(store, "b")])
    assert found == [[list("01234"), list("0123")]] * 3


# --- journals ---------------------------------------------------------------------------------------------------------


async def test_a_journal_is_read_up_to_the_bytes_that_the_catalog_counts(root):
    await write(root, "a")
    await cut(root)
    whole = journal(root).read_bytes()
    journal(root).write_bytes(whole + b'{"seq":6,"at":"the rest of a cut that was not finished"')
    async with opened(FileStore(root), working=False) as store:
        lease = await store.acquire("a", create=False)
        assert (await store.load(lease)).report.journal_records == 5
        say(store, lease, "5")
    await cut(root)
    assert journal(root).read_bytes().startswith(whole)
    async with opened(FileStore(root), working=False) as store:
        assert await texts(store, "a") == list("012345")


@pytest.mark.parametrize("lost", [1, 100, None])
async def test_a_journal_shorter_than_the_catalog_says_is_truncated(root, lost):
    await write(root, "a")
    await cut(root)
    path = journal(root)
    size = path.stat().st_size
    if lost is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-lost])
    async with opened(FileStore(root), working=False) as store:
        with pytest.raises(JournalTruncated) as refused:
            await texts(store, "a")
        assert (refused.value.path, refused.value.expected_bytes) == (str(path), size)
        assert refused.value.found_bytes == (0 if lost is None else size - lost)


async def test_damage_inside_a_journal_names_its_place(root):
    await write(root, "a")
    await cut(root)
    path = journal(root)
    data = bytearray(path.read_bytes())
    offset = data.index(b'"text":"3"')
    data[offset + 8] ^= 4
    path.write_bytes(data)
    async with opened(FileStore(root), working=False) as store:
        with pytest.raises(JournalCorrupt) as refused:
            await texts(store, "a")
        assert (refused.value.path, refused.value.seq) == (str(path), 4)
        assert refused.value.offset == data.rindex(b"\n", 0, offset) + 1
    assert path.read_bytes() == data


async def test_every_flipped_bit_of_a_journal_is_found(root):
    await write(root, "a", count=2)
    await cut(root)
    path = journal(root)
    whole = path.read_bytes()
    async with opened(FileStore(root), working=False) as store:
        for position in range(len(whole)):
            data = bytearray(whole)
            data[position] ^= 1 << (position * 3 % 8)
            path.write_bytes(data)
            with pytest.raises(StoreCorrupt):
                await texts(store, "a")
        path.write_bytes(whole)
        assert await texts(store, "a") == ["0", "1"]


async def test_the_journal_of_another_session_is_not_taken(root):
    await write(root, "a", "b")
    await cut(root)
    one, two = sorted((root / "journals").glob("*/*.ndjson"))
    both = one.read_bytes(), two.read_bytes()
    one.write_bytes(both[1])
    two.write_bytes(both[0])
    async with opened(FileStore(root), working=False) as store:
        for session in "ab":
            with pytest.raises(JournalCorrupt, match="another session"):
                await texts(store, session)


async def test_one_damaged_journal_keeps_no_other_session_from_loading_or_being_cut(root):
    await write(root, "a", "b")
    await cut(root)
    damaged = next(path for path in (root / "journals").glob("*/a-*.ndjson"))
    damaged.unlink()
    async with opened(FileStore(root), working=False) as store:
        lease = await store.acquire("b", create=False)
        await store.load(lease)
        say(store, lease, "5")
        with pytest.raises(JournalTruncated):
            await texts(store, "a")
    await cut(root)
    async with opened(FileStore(root), working=False) as store:
        assert await texts(store, "b") == list("012345")


# --- deleted sessions -------------------------------------------------------------------------------------------------


async def test_records_of_a_deleted_birth_never_come_back(root):
    """The process dies when the tombstone is synced, before any file is removed."""
    await write(root, "a")
    await cut(root)
    store = FileStore(root)
    await store.open()
    lease = await store.acquire("a", create=False)
    await store.load(lease)
    say(store, lease, "5")
    store._engine.cutter.forget = lambda log: asyncio.sleep(0)
    await store.delete(lease)
    again = await store.acquire("a", create=True)
    say(store, again, "new")
    await store.flush("synced")
    copy = root.with_name("copy")
    shutil.copytree(root, copy)
    await store.close()
    async with opened(FileStore(copy), working=False) as store:
        assert await texts(store, "a") == ["new"]
        assert list((copy / "journals").glob("*/*")) == []
    await cut(copy)
    async with opened(FileStore(copy), working=False) as store:
        assert await texts(store, "a") == ["new"]


async def test_a_deleted_session_stays_deleted_when_its_tombstone_is_cut(root):
    async with opened(FileStore(root), working=False) as store:
        lease = await store.acquire("a", create=True)
        say(store, lease, "first")
        await store.delete(lease)
    await cut(root)
    assert list((root / "log").iterdir()) == []
    async with opened(FileStore(root), working=False) as store:
        with pytest.raises(SessionTombstoned):
            await store.acquire("a", create=False)
        assert await listed(store) == []
