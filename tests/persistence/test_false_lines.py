"""Lines whose sums fit, and which are no records: whoever meets one is told where, never a bare `LineDamaged`."""

from __future__ import annotations

import re
from pathlib import Path
from zlib import crc32

import msgspec
import pytest

from session_actor.persistence import FileStore, JournalCorrupt, LogCorrupt, NotDurable, StoreCorrupt
from session_actor.persistence.catalog.catalog import Catalog
from session_actor.persistence.format.record import close_line, verify

from .conformance_tools import opened, push
from .stores import check, segments
from .test_journal_files import cut_all, files, small

LINE = re.compile(rb'(.*?)(\{"seq":.*?"sum":"[0-9a-f]{8}"\})(?:,"sum":"[0-9a-f]{8}"\})?\n')
"""A line of a journal, or one of the log and the record in it."""


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


def falsify(path: Path, seq: int) -> int:
    """Make record `seq` of a file something else, whose sums fit; returns where it begins."""
    lines = path.read_bytes().splitlines(keepends=True)
    index = next(index for index, line in enumerate(lines) if b'{"seq":%d,' % seq in line)
    start, record = LINE.fullmatch(lines[index]).groups()
    false = close_line(re.sub(rb'"prev":"[0-9a-f]{8}"', b'"prev":1234567890', record)[:-18])[0]
    offset = sum(map(len, lines[:index])) + len(start)
    lines[index] = close_line(start + false[:-1])[0] if start else false
    for later in range(index + 1, len(lines) if start else 0):  # each line of the log names the sum of the one before
        named = re.sub(rb'"p":"[0-9a-f]{8}"', b'"p":"%b"' % lines[later - 1][-11:-3], lines[later], count=1)
        lines[later] = close_line(named[:-19])[0] if verify(lines[later]) else lines[later]
    path.write_bytes(b"".join(lines))
    return offset


async def in_files(root: Path, seq: int) -> tuple[Path, int]:
    """A store, closed, in whose journal a record is false; the catalog counts the file as it is now."""
    async with opened(small(root), working=False) as store:
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 60)
        await cut_all(store)
    path = next(path for path in files(root) if b'{"seq":%d,' % seq in path.read_bytes())
    offset = falsify(path, seq)
    catalog = Catalog(root / "catalog.db")
    catalog.open(create=False)
    row = catalog.get("user-42")
    total = crc32(path.read_bytes())
    if path == files(root)[-1]:
        catalog.commit_cut([msgspec.structs.replace(row, crc=total)], [], catalog.first_live_segment())
    else:
        sealed = next(file for file in catalog.files.of("user-42", row.birth) if file.first_seq <= seq <= file.last_seq)
        catalog.commit_cut([], [], catalog.first_live_segment(), [msgspec.structs.replace(sealed, crc=total)])
    catalog.close()
    return path, offset


@pytest.mark.parametrize("seq", [5, 59], ids=["sealed", "newest"])
async def test_a_false_line_of_a_journal_is_told_with_its_place(root, seq):
    path, offset = await in_files(root, seq)
    async with opened(small(root), working=False) as store:
        lease = await store.acquire("user-42", create=False)
        archive = store.archive(lease)
        for wanted in ([seq], range(1, 61)):
            with pytest.raises(JournalCorrupt) as caught:
                archive.read(wanted)
            assert (caught.value.path, caught.value.offset) == (str(path), offset)
            with pytest.raises(JournalCorrupt):
                await archive.fetch(wanted)
        with pytest.raises(JournalCorrupt) as caught:
            await store.load(lease)
        assert caught.value.path == str(path)
        store.save(lease, seq, b"{}")
        with pytest.raises(NotDurable, match="StoreCorrupt"):
            await store.saved(lease, seq)
    assert [finding.path for finding in check(root).list] == [str(path)]


async def in_log(store: FileStore, root: Path, seq: int) -> str:
    async with opened(store, working=False):
        push(store, await store.acquire("user-42", create=True), 20)
        push(store, await store.acquire("other", create=True), 20)
        await store.flush("synced")
    (path,) = segments(root)
    falsify(path, seq)
    return str(path)


@pytest.mark.parametrize("seq", [1, 20], ids=["oldest", "newest"])
async def test_a_false_record_at_an_end_of_the_log_is_told_at_once(root, seq):
    store = FileStore(root, cut_at_close=0)
    path = await in_log(store, root, seq)
    async with opened(store, working=False):
        with pytest.raises(LogCorrupt) as caught:
            await store.acquire("user-42", create=False)
        assert caught.value.path == path


async def test_a_false_record_of_the_log_is_told_with_its_place(root):
    store = FileStore(root, cut_at_close=0)
    path = await in_log(store, root, 7)
    async with opened(store, working=False):
        lease = await store.acquire("user-42", create=False)
        with pytest.raises(LogCorrupt) as caught:
            await store.load(lease)
        assert caught.value.path == path
        with pytest.raises(LogCorrupt):
            store.archive(lease).read([7])
        with pytest.raises(LogCorrupt):
            await store.archive(lease).fetch([7])
        store.save(lease, 7, b"{}")
        with pytest.raises(NotDurable, match="StoreCorrupt"):
            await store.saved(lease, 7)


async def test_a_snapshot_before_a_false_line_is_not_followed_by_a_bare_error(root):
    path, _ = await in_files(root, 58)
    async with opened(small(root), working=False) as store:
        lease = await store.acquire("user-42", create=False)
        store.save(lease, 57, b"{}")
        await store.saved(lease, 57)
        with pytest.raises(StoreCorrupt) as caught:
            await store.load(lease)
        assert Path(caught.value.path).parent == path.parent
