"""Journals in many files: when one is sealed, what its index says, and that old stores go on."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, JournalCorrupt, JournalTruncated, Record
from session_actor.persistence.catalog.catalog_files import NO_INDEX
from session_actor.persistence.format.frame_index import MAX_FRAME, Runs, frames_in, frames_of
from session_actor.persistence.format.header import decode_journal_header
from session_actor.persistence.format.record import decode_record, encode_record, verify
from session_actor.persistence.journals.journal_index import FrameIndex, IndexBuilder, decode_index

from .conformance_snapshots import ids, seqs
from .conformance_tools import copied, opened, push, say

GOLDEN = Path(__file__).parent / "golden" / "store-v1"


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


def small(root: Path, **options) -> FileStore:
    return FileStore(root, segment_bytes=20_000, journal_bytes=2_000, **options)


async def cut_all(store: FileStore) -> None:
    await store.flush("synced")
    store._engine.log.seal()
    while await store._engine.cutter.cut():
        pass


async def grown(store: FileStore, count: int = 100):
    """A session whose journal has many files."""
    lease = await store.acquire("user-42", create=True)
    push(store, lease, count, between=1)
    await cut_all(store)
    return lease


def files(root: Path) -> list[Path]:
    found = (root / "journals").glob("*/*.ndjson")
    return sorted(found, key=lambda path: int(path.stem.rsplit("-", 1)[1]))


async def test_a_cut_fills_files_and_each_names_the_record_before_it(root):
    async with opened(small(root), working=False) as store:
        lease = await grown(store)
        assert len(files(root)) > 5
        before = (0, "00000000")
        for number, path in enumerate(files(root), 1):
            header, *lines = path.read_bytes().splitlines(keepends=True)
            found = decode_journal_header(header, str(path))
            assert (found.number, found.continues.seq, found.continues.sum) == (number, *before)
            records = [decode_record(line) for line in lines if not line.startswith(b'{"index":')]
            assert len(records) == len(lines) - (number < len(files(root)))
            before = records[-1].seq, records[-1].sum
        sizes = [path.stat().st_size for path in files(root)]
        assert all(2_000 <= size < 2_700 for size in sizes[:-1])
        (info,) = [info async for info in store.sessions()]
        assert info.size_bytes == sum(sizes)
        assert seqs(await store.load(lease)) == list(range(1, 201))


async def test_the_index_says_where_each_frame_of_a_file_lies(root):
    async with opened(small(root), working=False) as store:
        lease = await store.acquire("user-42", create=True)
        say(store, lease, *"abc")
        copied(store, lease, [3, 5, 6, 9])
        push(store, lease, 30, first=10, between=1)
        push(store, lease, 30, first=50)
        await cut_all(store)
        seen: list[int] = []
        for path in files(root)[:-1]:
            data = path.read_bytes()
            line = data[data.rindex(b"\n", 0, -1) + 1 :]
            assert verify(line)
            found = decode_index(line, str(path))
            index = FrameIndex(found.frames, found.copied)
            frames = [frame for first, last in index.frames() for frame in range(first, last + 1)]
            for frame in frames:
                offset, length = index.place(frame)
                assert frame in frames_in(data[offset : offset + length])
            assert [index.place(frame) for frame in (0, 4, 1000)] == [None] * 3
            seen += sorted(frames)
        assert seen == [frame for frame in [3, 5, 6, 9, *range(10, 40), *range(50, 80)] if frame <= seen[-1]]


def test_an_index_costs_few_bytes_a_frame():
    builder, offset = IndexBuilder(), 0
    for frame in range(1, 3001):
        for length, frames in ((300 + frame % 90, [frame]), (150, [])):
            builder.add(offset, length, frames)
            offset += length
    assert len(builder.line("5e0f5e0f5e0f5e0f", 1)) < 10 * 3000


async def test_a_session_goes_on_in_the_file_where_it_was_after_reopening(root):
    for turn in range(8):
        async with opened(small(root), working=False) as store:
            lease = await store.acquire("user-42", create=True)
            loaded = await store.load(lease)
            assert seqs(loaded) == list(range(1, 20 * turn + 1))
            assert loaded.report.journal_records == 20 * turn
            push(store, lease, 20)
    assert len(files(root)) > 3


async def test_a_store_of_the_first_version_is_opened_read_and_goes_on(root):
    shutil.copytree(GOLDEN, root)
    for turn in range(3):
        async with opened(FileStore(root, segment_bytes=4096, journal_bytes=2_000), working=False) as store:
            lease = await store.acquire("user-42", create=False)
            loaded = await store.load(lease)
            assert seqs(loaded) == list(range(1, 34 + 20 * turn))
            archive = store.archive(lease)
            assert ids(archive.read(range(1, 1000))) == list(range(1, 34 + 20 * turn))
            push(store, lease, 20)
            other = await store.acquire("lone \ud800", create=False)
            assert len((await store.load(other)).records) == 31
    found = files(root)
    assert found[0].stat().st_size > 2_000
    assert len(found) > 3


@pytest.mark.parametrize("which", ["first", "middle", "newest"])
async def test_a_damaged_file_is_told_by_its_name_and_only_where_it_is_read(root, which):
    async with opened(small(root), working=False) as store:
        lease = await grown(store)
        push(store, lease, 3)
        await store.flush("synced")
        store.save(lease, lease.appended_seq, b"7")
        await store.saved(lease, lease.appended_seq)
        damaged = files(root)[{"first": 0, "middle": 3, "newest": -1}[which]]
        data = bytearray(damaged.read_bytes())
        at = data.index(b'"kind":"pushed"')
        (frame,) = frames_in(bytes(data), data.rindex(b"\n", 0, at) + 1)
        data[at + 30] ^= 4
        damaged.write_bytes(data)
        with pytest.raises(JournalCorrupt) as caught:
            await store.load(lease, snapshots=False)
        assert caught.value.path == str(damaged)
        assert (await store.load(lease)).report.snapshot_seq == lease.appended_seq
        archive = store.archive(lease)
        with pytest.raises(JournalCorrupt):
            archive.read(range(frame - 2, frame + 3))
        far = 95 if which != "newest" else 1
        assert ids(archive.read([far])) == [far]


async def test_an_archive_is_read_on_the_loop_and_off_it_at_once_while_the_journal_grows(root):
    async with opened(small(root, sync_interval_s=0.01)) as store:
        lease = await grown(store)
        archive = store.archive(lease)

        async def off_the_loop(first: int) -> None:
            for frame in range(first, 101, 7):
                wanted = range(max(1, frame - 20), frame + 1)
                assert ids(await archive.fetch(wanted)) == list(wanted)

        async def on_the_loop() -> None:
            for frame in range(100, 0, -3):
                assert ids(archive.read([frame, 101 - frame])) == sorted({frame, 101 - frame})
                push(store, lease, 3, first=1000 - 9 * frame)
                await store.flush("synced")

        await asyncio.gather(*(off_the_loop(first) for first in (1, 30, 60)), on_the_loop())


async def test_a_lost_file_is_told_by_its_name(root):
    async with opened(small(root), working=False) as store:
        lease = await grown(store)
        files(root)[2].unlink()
        with pytest.raises(JournalTruncated, match=r"-3\.ndjson"):
            await store.load(lease)
        with pytest.raises(JournalTruncated, match=r"-3\.ndjson"):
            store.archive(lease).read(range(1, 100))
        assert ids(store.archive(lease).read([1])) == [1]


async def test_a_file_that_was_damaged_before_it_is_sealed_stops_no_cut_and_is_told(root):
    async with opened(small(root), working=False) as store:
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 5)
        await cut_all(store)
        path = files(root)[0]
        data = bytearray(path.read_bytes())
        data[data.index(b'"id":3') + 5] ^= 1
        path.write_bytes(data)
        push(store, lease, 60)
        await cut_all(store)
        assert len(files(root)) > 3
        (row, *_) = store._engine.catalog.files.of("user-42", lease.birth)
        assert (row.last_frame, row.index_offset) == (NO_INDEX, row.bytes)
        with pytest.raises(JournalCorrupt) as caught:
            store.archive(lease).read([3])
        assert caught.value.path == str(path)
        assert ids(store.archive(lease).read([40, 65])) == [40, 65]


async def test_deleting_removes_every_file_and_what_an_unfinished_cut_left(root):
    async with opened(small(root), working=False) as store:
        lease = await grown(store)
        store.save(lease, 200, b"7")
        await store.saved(lease, 200)
        newest = files(root)[-1]
        number = int(newest.stem.rsplit("-", 1)[1])
        for left in (1, 2):
            shutil.copy(newest, newest.with_name(newest.name.replace(f"-{number}.", f"-{number + left}.")))
        (slot,) = (root / "snapshots").glob("*/*.ndjson")
        shutil.copy(slot, f"{slot}.new")
        await store.delete(lease)
        assert [path for path in root.rglob("*user_42*") if path.is_file()] == []
        assert store._engine.catalog.files.numbers("user-42", lease.birth) == []


def line(kind: str, data: bytes) -> bytes:
    return encode_record(7, 1, kind, data, "00000000")[0]


@pytest.mark.parametrize(
    ("kind", "data", "frames"),
    [
        ("pushed", b'{"id":12,"parent":3}', [12]),
        ("pushed", b'{"id":12}', [12]),
        ("added", b'{"id":12}', [12]),
        ("added", b'{"id":12,"user_input":"x"}', [12]),
        ("added", b'{ "id": 12 }', [12]),
        ("adde", b'{"id":12}', []),
        ("added.x", b'{"id":12}', []),
        ("pushed", b'{ "id": 12 }', [12]),
        ("pushed", b'{"text":"{\\"id\\":3,","id":12}', [12]),
        ("pushed", b'{"id":1.5,"a":1}', []),
        ("pushed", b'{"id":1e3,"a":1}', []),
        ("pushed", b'{"id":0}', []),
        ("pushed", b'{"id":-5}', []),
        ("pushed", b'{"id":%d}' % (MAX_FRAME + 1), []),
        ("pushed", b'{"id":%d}' % MAX_FRAME, [MAX_FRAME]),
        ("pushed", b'[{"id":3}]', []),
        ("history_copied", b'{"frames":[{"frame":{"id":9}},{"frame":{"id":2}}]}', [2, 9]),
        ("history_copied", b'{"id":4}', []),
        ("popped", b'{"id":4,"n":1}', []),
        ("pushed_more", b'{"id":4}', []),
    ],
)
def test_frames_are_told_alike_from_a_line_and_from_its_data(kind, data, frames):
    record: Record = decode_record(line(kind, data))
    assert frames_of(record.kind, record.data) == frames
    assert frames_in(line(kind, data)) == frames
    assert frames_in(b"x" * 5 + line(kind, data), 5) == frames


def test_runs_cover_what_is_in_one_of_them():
    runs = Runs([(10, 20), (1, 3), (4, 5), (15, 30)])
    assert [runs.cover(*run) for run in [(1, 5), (10, 30), (1, 10), (5, 6), (0, 1), (31, 31)]] == [
        True, True, False, False, False, False,
    ]  # fmt: skip
    assert 7 not in runs
    assert 4 in runs
    assert 1 not in Runs([])
