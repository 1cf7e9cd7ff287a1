"""What no store can promise, shown: a disk that lies, a host that turns the whole store back, and the like."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, NotDurable, SessionTombstoned
from session_actor.persistence.format.record import decode_record, encode_log_line, encode_owner, encode_record

from ..living import copy_living
from .conformance_tools import opened, said, say
from .disks import CachedDisk, Kernel
from .log_lines import decode_log_line


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


class LyingDisk(CachedDisk):
    """From when it `lies`, it says that it has what it was given, and does not."""

    lies = False

    def open(self, path, *, write=False, create=False):
        file = super().open(path, write=write, create=create)
        sync = file.sync
        file.sync = lambda: None if self.lies else sync()
        return file


async def test_a_host_that_lies_about_flushing_loses_what_was_acknowledged_as_synced(root):
    kernel = Kernel()
    disk = LyingDisk(kernel)
    store = FileStore(root, disk=disk)
    await store.open()
    lease = await store.acquire("user-42", create=True)
    say(store, lease, "on the disk")
    await store.flush("synced")
    disk.lies = True
    say(store, lease, "on a lying disk")
    await store.flush("synced")
    disk.dead = True
    say(store, lease, "never written")
    with pytest.raises(NotDurable):
        await store.close()
    kernel.lose_power(root)
    async with opened(FileStore(root)) as again:
        assert await said(again, await again.acquire("user-42", create=False)) == ["on the disk"]


async def test_a_store_that_its_host_turned_back_as_a_whole_opens_as_it_was_then(root, tmp_path):
    store = FileStore(root)
    async with opened(store):
        say(store, await store.acquire("user-42", create=True), "yesterday")
    shutil.copytree(root, tmp_path / "copy")
    async with opened(store):
        lease = await store.acquire("user-42", create=False)
        await store.load(lease)
        await store.delete(lease)
        with pytest.raises(SessionTombstoned):
            await store.acquire("user-42", create=False)
    shutil.rmtree(root)
    shutil.move(tmp_path / "copy", root)
    async with opened(store):
        lease = await store.acquire("user-42", create=False)
        assert await said(store, lease) == ["yesterday"]
        assert (await store.load(lease)).report.clean


async def test_rot_behind_the_last_watermark_looks_like_a_torn_end_and_is_reported_as_one(root):
    disk = LyingDisk(Kernel())
    store = FileStore(root, disk=disk)
    await store.open()
    lease = await store.acquire("user-42", create=True)
    say(store, lease, "one", "two")
    await store.flush("synced")  # the newest line cannot say of itself that it is synced
    disk.dead = True
    say(store, lease, "never written")
    with pytest.raises(NotDurable):
        await store.close()
    (segment,) = (root / "log").glob("*.ndjson")
    data = segment.read_bytes()
    segment.write_bytes(data.replace(b'"two"', b'"tvo"'))
    async with opened(FileStore(root)) as again:
        lease = await again.acquire("user-42", create=False)
        loaded = await again.load(lease)
        assert len(loaded.records) == 1
        assert [torn.offset for torn in loaded.report.torn] == [data.index(b"\n", data.index(b'"one"')) + 1]


async def left_behind(root: Path, *texts: str) -> Path:
    """Make a store as a process leaves it that is killed when it has said this; returns the one segment of its log."""
    living = root.with_name("living")
    async with opened(FileStore(living), working=False) as store:
        say(store, await store.acquire("user-42", create=True), *texts)
        await store.flush("written")
        await copy_living(living, root)
    (segment,) = (root / "log").glob("*.ndjson")
    return segment


async def test_who_writes_to_the_files_and_makes_the_sums_fit_is_not_found(root):
    segment = await left_behind(root, "one", "two")
    lines = segment.read_bytes().rstrip(b"\0").splitlines(keepends=True)
    logged = decode_log_line(lines[-1])
    record = decode_record(bytes(logged.r) + b"\n")
    forged, _ = encode_record(record.seq, record.at_us, record.kind, b'{"text":"forged"}', record.prev)
    lines[-1], _ = encode_log_line(logged.w, logged.p, encode_owner(logged.session, logged.birth), forged)
    segment.write_bytes(b"".join(lines))
    async with opened(FileStore(root)) as again:
        lease = await again.acquire("user-42", create=False)
        assert await said(again, lease) == ["one", "forged"]
        assert (await again.load(lease)).report.clean


async def test_a_torn_end_that_was_kept_aside_keeps_the_text_of_a_session_that_is_deleted_later(root):
    segment = await left_behind(root, "one", "secret")
    data = segment.read_bytes()
    segment.write_bytes(data[: data.index(b'"secret"') + 10])
    async with opened(FileStore(root)) as store:
        lease = await store.acquire("user-42", create=False)
        await store.load(lease)
        await store.delete(lease)
    assert [path.parent.name for path in root.rglob("*") if path.is_file() and b'"secret"' in path.read_bytes()] == [
        "aside"
    ]
