"""Snapshots on the disk: which are good, what is read with them, what is left of them, and when they are durable."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from pathlib import Path

import pytest

from session_actor.persistence import (
    FileStore,
    Lease,
    LineDamaged,
    NotDurable,
    StoreCorrupt,
    StoreVersionTooNew,
    dumps,
    loads,
)
from session_actor.persistence.format.header import RecordRef
from session_actor.persistence.format.record import close_line
from session_actor.persistence.snapshots.snapshot import decode_snapshot, encode_snapshot

from .conformance_snapshots import save, seqs
from .conformance_tools import opened, push
from .disks import TroubledDisk
from .test_journal_files import cut_all, files, small
from .test_writer import until


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


def slots(root: Path) -> dict[str, Path]:
    return {path.stem[-1]: path for path in (root / "snapshots").glob("*/*.ndjson")}


async def two_snapshots(store: FileStore, *, first: int = 20, second: int = 20, rest: int = 5):
    """A session with two snapshots and records behind them."""
    lease = await store.acquire("user-42", create=True)
    for count in (first, second):
        push(store, lease, count)
        await save(store, lease)
    push(store, lease, rest)
    await store.flush("synced")
    return lease


# --- the file ---------------------------------------------------------------------------------------------------------


def test_a_snapshot_is_read_back_as_it_was_written():
    content = encode_snapshot("user-\ud800", "5e0f" * 4, RecordRef(12, "9ae0daaf"), dumps({"a": ["\ud800", 1.5]}))
    header, snapshot = decode_snapshot(content, "x")
    assert (header.session, header.birth) == ("user-\ud800", "5e0f" * 4)
    assert (snapshot.seq, snapshot.sum, loads(bytes(snapshot.data))) == (12, "9ae0daaf", {"a": ["\ud800", 1.5]})
    assert content.count(b"\n") == 2


def test_every_truncation_and_every_flip_of_one_bit_of_a_snapshot_is_found():
    content = encode_snapshot("user-42", "5e0f" * 4, RecordRef(12, "9ae0daaf"), b'{"heads":[1,2,3]}')
    for length in range(len(content)):
        with pytest.raises(LineDamaged):
            decode_snapshot(content[:length], "x")
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(LineDamaged):
            decode_snapshot(bytes(changed), "x")


def test_data_behind_another_header_are_found():
    one, two = [
        encode_snapshot("user-42", "5e0f" * 4, RecordRef(seq, "9ae0daaf"), b"7").splitlines(True) for seq in (1, 2)
    ]
    for content in (one[0] + two[1], one[0] + one[1] + one[1], one[1] + one[0]):
        with pytest.raises(LineDamaged):
            decode_snapshot(content, "x")


# --- which one is used ------------------------------------------------------------------------------------------------


async def test_the_two_newest_are_kept_and_nothing_else(root):
    async with opened(FileStore(root), working=False) as store:
        lease = await store.acquire("user-42", create=True)
        for _ in range(5):
            push(store, lease, 3)
            await save(store, lease)
        found = [decode_snapshot(path.read_bytes(), "")[1].seq for path in slots(root).values()]
        assert sorted(found) == [12, 15]
        assert len([path for path in (root / "snapshots").rglob("*") if path.is_file()]) == 2
    assert {path.stat().st_mode & 0o777 for path in slots(root).values()} == {0o600}


def rot(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-30] ^= 1
    path.write_bytes(data)


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def other_sum(path: Path) -> None:
    header, snapshot = decode_snapshot(path.read_bytes(), "")
    after = RecordRef(header.after.seq, "12345678")
    path.write_bytes(encode_snapshot(header.session, header.birth, after, bytes(snapshot.data)))


def from_the_future(path: Path) -> None:
    header, snapshot = decode_snapshot(path.read_bytes(), "")
    after = RecordRef(header.after.seq + 1000, "12345678")
    path.write_bytes(encode_snapshot(header.session, header.birth, after, bytes(snapshot.data)))


@pytest.mark.parametrize("spoil", [rot, fifo, folder, link, other_sum, from_the_future])
@pytest.mark.parametrize("closed", [False, True])
async def test_a_spoilt_snapshot_is_passed_over_and_named(root, spoil, closed):
    options = {"cut_at_close": 64 if closed else 0}
    async with opened(small(root, **options), working=False) as store:
        await two_snapshots(store)
    newest, older = sorted(slots(root).values(), key=lambda path: -decode_snapshot(path.read_bytes(), "")[1].seq)
    spoil(newest)
    async with opened(small(root, **options), working=False) as store:
        lease = await store.acquire("user-42", create=False)
        loaded = await store.load(lease)
        assert (loaded.report.snapshot_seq, seqs(loaded), loaded.report.rejected) == (
            20,
            list(range(21, 46)),
            (str(newest),),
        )
        assert not loaded.report.clean
        spoil(older)
        loaded = await store.load(lease)
        assert (loaded.snapshot, seqs(loaded)) == (None, list(range(1, 46)))
        assert sorted(loaded.report.rejected) == sorted([str(newest), str(older)])
        if spoil is folder:
            return
        await save(store, lease, "anew")
        loaded = await store.load(lease)
        assert loaded.report.snapshot_seq == 45


async def test_a_snapshot_of_a_newer_version_is_refused_and_left_as_it_is(root):
    async with opened(FileStore(root), working=False) as store:
        await two_snapshots(store)
    path = slots(root)["a"]
    header, data = path.read_bytes().splitlines(keepends=True)
    newer = close_line(header.replace(b'"version":1', b'"version":2')[:-19])[0] + data
    path.write_bytes(newer)
    async with opened(FileStore(root), working=False) as store:
        lease = await store.acquire("user-42", create=False)
        with pytest.raises(StoreVersionTooNew, match="version 2"):
            await store.load(lease)
    assert path.read_bytes() == newer


async def test_loading_with_a_snapshot_reads_what_lies_behind_it_alone(root):
    async with opened(small(root), working=False) as store:
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 300)
        await cut_all(store)
        await save(store, lease)
        push(store, lease, 4)
    for path in files(root)[:-1]:
        path.unlink()
    async with opened(small(root), working=False) as store:
        loaded = await store.load(await store.acquire("user-42", create=False))
        assert (loaded.report.snapshot_seq, seqs(loaded)) == (300, [301, 302, 303, 304])
        with pytest.raises(StoreCorrupt):
            await store.load(await store.acquire("user-42", create=False), snapshots=False)


async def test_loading_is_right_wherever_the_records_behind_a_snapshot_lie(root):
    """In sealed files, in the newest one, in the log, in memory, and over their borders."""
    async with opened(small(root, cut_at_close=0), working=False) as store:
        lease = await store.acquire("user-42", create=True)
        for turn in range(1, 40):
            push(store, lease, turn % 7 + 1)
            if turn % 3 == 0:
                await store.flush("synced")
            if turn % 10 == 0:
                await cut_all(store)
            if turn % 13 == 5:
                await save(store, lease)
            loaded = await store.load(lease)
            first = loaded.report.snapshot_seq + 1
            assert seqs(loaded) == list(range(first, lease.appended_seq + 1))
            older = await store.load(lease, before=max(loaded.report.snapshot_seq, 1))
            assert seqs(older)[-1] == lease.appended_seq


# --- when -------------------------------------------------------------------------------------------------------------


async def saved_while_a_sync_is_held(store: FileStore, disk: TroubledDisk) -> tuple[Lease, threading.Event]:
    """A session with a queued snapshot of record 4, whose sync goes on when the event is set."""
    lease = await store.acquire("user-42", create=True)
    push(store, lease, 1)
    await store.flush("synced")
    gate = disk.hold("sync")
    push(store, lease, 3)
    store.save(lease, 4, b"7")
    await until(disk.entered["sync"].is_set)
    return lease, gate


async def test_a_snapshot_is_written_after_its_records_are_synced(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk, sync_interval_s=0.01)) as store:
        lease, gate = await saved_while_a_sync_is_held(store, disk)
        assert slots(root) == {}
        del disk.gates["sync"]
        gate.set()
        await until(lambda: slots(root))
        await store.saved(lease, 4)
        assert lease.synced_seq == 4
        assert store.health().last_snapshot_us is not None


async def test_a_session_that_is_changed_faster_than_the_log_is_synced_has_a_snapshot_all_the_same(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk, sync_interval_s=0.01)) as store:
        lease, gate = await saved_while_a_sync_is_held(store, disk)
        for newest in (6, 8, 10):
            push(store, lease, 2)
            store.save(lease, newest, b"8")
        still = disk.hold("sync")
        gate.set()
        await until(lambda: list(root.glob("snapshots/*/*.new")))
        assert (lease.synced_seq, lease.appended_seq) == (4, 10)
        del disk.gates["sync"]
        still.set()
        await store.saved(lease, 10)
        found = {slot: decode_snapshot(path.read_bytes(), "x")[1].seq for slot, path in slots(root).items()}
        assert found == {"a": 4, "b": 10}


@pytest.mark.parametrize("call", ["create", "write", "sync", "rename", "sync_dir", "make_dir"])
async def test_a_disk_that_refuses_a_snapshot_is_told_and_harms_nothing(root, call):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk), working=False) as store:
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 3)
        await store.flush("synced")
        store.save(lease, 3, b"7")
        disk.errors[call] = errno.EIO
        with pytest.raises(NotDurable, match="asked to fail"):
            await store.saved(lease, 3)
        store.admit("synced")
        disk.errors.clear()
        await store.saved(lease, 3)
        assert (await store.load(lease)).report.snapshot_seq == 3


async def test_the_worker_notes_a_failure_and_tries_again(root, monkeypatch):
    monkeypatch.setattr("session_actor.persistence.snapshots.snapshotter.RETRY_S", 0.01)
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk, sync_interval_s=0.01)) as store:
        leases = [await store.acquire(session, create=True) for session in "abc"]
        for lease in leases:
            push(store, lease, 3)
        await store.flush("synced")
        disk.errors["rename"] = errno.ENOSPC
        for lease in leases:
            store.save(lease, 3, b"7")
        await until(lambda: store.health().last_error is not None)
        disk.errors.clear()
        await until(lambda: len(list((root / "snapshots").glob("*/*-a.ndjson"))) == 3)


async def test_one_session_whose_snapshot_cannot_be_written_keeps_no_other_from_its_own(root):
    async with opened(FileStore(root, sync_interval_s=0.01), working=False) as store:
        leases = [await store.acquire(session, create=True) for session in "abc"]
        for lease in leases:
            push(store, lease, 3)
            await save(store, lease)
        for lease in leases:
            push(store, lease, 3)
        blocked = next((root / "snapshots").glob("*/b-*-a.ndjson"))
        blocked.with_name(blocked.name.replace("-a.ndjson", "-b.ndjson.new")).mkdir()
        for lease in leases:
            store.save(lease, 6, b"8")
        for lease in (leases[0], leases[2]):
            await store.saved(lease, 6)
        with pytest.raises(NotDurable):
            await store.saved(leases[1], 6)


async def test_many_snapshots_of_many_sessions_come_down_together(root):
    disk = TroubledDisk()
    async with opened(FileStore(root, disk=disk, sync_interval_s=0.01)) as store:
        leases = [await store.acquire(f"user-{number}", create=True) for number in range(150)]
        for lease in leases:
            push(store, lease, 2)
            store.save(lease, 2, b"7")
        await asyncio.gather(*(store.saved(lease, 2) for lease in leases))
        assert len(list((root / "snapshots").glob("*/*.ndjson"))) == 150
        for lease in leases:
            assert (await store.load(lease)).report.snapshot_seq == 2


async def test_a_snapshot_that_is_queued_when_its_session_is_deleted_is_not_written(root):
    async with opened(FileStore(root, sync_interval_s=1000), working=False) as store:
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 3)
        store.save(lease, 3, b'"private"')
        store.release(lease)
        await store.delete(await store.acquire("user-42", create=False))
        push(store, await store.acquire("user-42", create=True), 1)
    assert [path for path in root.rglob("*") if path.is_file() and b"private" in path.read_bytes()] == []


async def test_a_snapshot_of_a_record_that_could_not_be_stored_is_not_written(root):
    async with opened(FileStore(root), working=False) as store:
        lease = await store.acquire("user-42", create=True)
        push(store, lease, 3)
        store.append(lease, 4, 1, "pushed", {"id": object()}, 10)
        store.save(lease, 4, b'"of what is lost"')
        with pytest.raises(NotDurable):
            await store.flush("synced")
        lease = await store.acquire("user-42", create=False)
        push(store, lease, 1)
        await store.flush("synced")
        with pytest.raises(NotDurable):
            await store.saved(lease, 4)
        assert (await store.load(lease)).snapshot is None
