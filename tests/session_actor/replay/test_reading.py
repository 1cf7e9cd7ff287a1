"""Reading a store without its lock: which sessions there are, and their records, whatever goes on meanwhile."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from session_actor import (
    FrameUnknown,
    Hook,
    NotAStore,
    SessionDeleted,
    SessionNotFound,
    SessionService,
    StoreVersionTooNew,
    UnusableId,
)
from session_actor.persistence import FileStore, StoreLocked
from session_actor.replay import Replay, read_store
from session_actor.service.reserved import HOOKS

from ...living import copy_living
from .stored import SMALL, image


def small(root: Path, **options) -> FileStore:
    return FileStore(root, **{**SMALL, **options})


async def talk(session, first: int, last: int) -> None:
    for number in range(first, last + 1):
        await session.push(f"text {number}", "x" * (number % 50))


async def test_a_live_store_is_read_and_nothing_of_it_changes(folder):
    store = small(folder, cut_at_close=0)  # open, and nobody runs its workers: it changes nothing by itself
    await store.open()
    try:
        lease = await store.acquire("user-42", create=True)
        for seq in range(1, 302):
            if seq == 200:
                await store.flush("synced")
                while await store._engine.cutter.cut():
                    pass
            store.append(
                lease, seq, 1_700_000_000_000_000 + seq, "said", msgspec.Raw(b'{"text":"%b"}' % (b"x" * 150)), 200
            )
        store.append(await store.acquire("other", create=True), 1, 1_700_000_000_000_000, "said", msgspec.Raw(b"{}"), 9)
        await store.flush("synced")
        for thread in (store._engine._cut_thread, store._engine._write_thread, store._engine._sync_thread):
            await thread.run(lambda: None)  # what was cut is removed, a spare is ready
        before = image(folder)
        with read_store(folder) as reader:
            assert [(info.id, info.seq) for info in reader.sessions()] == [("other", 1), ("user-42", 301)]
            records = reader.records("user-42")
            assert [record.seq for record in records] == list(range(1, 302))
            assert records.damage is None
            assert [record.seq for record in reader.records("user-42", 250)] == list(range(251, 302))
            with pytest.raises(StoreLocked):
                await small(folder).open()
        assert image(folder) == before
        store.append(lease, 302, 1_700_000_000_000_302, "said", msgspec.Raw(b"{}"), 9)
        await store.flush("synced")
    finally:
        await store.close()


async def test_what_the_library_keeps_for_its_hooks_is_no_session_and_no_damage(folder):
    async def bill(ctx) -> None:
        """Runs once."""

    async with SessionService.open(folder, hooks=[Hook("bill", bill, "ended", mandatory=True)]) as service:
        await (await service.session("user-42", create=True)).push("text")
        await service.end("user-42", "done")
    with read_store(folder) as reader:
        assert [info.id for info in reader.sessions()] == ["user-42"]
        kept = list(reader.records(HOOKS))
        with pytest.raises(UnusableId, match="is no session"):
            Replay.of(reader, HOOKS)
        assert Replay.of(reader, "user-42").moment.ended == "done"
    assert kept


async def test_what_was_written_since_is_seen_after_a_refresh(folder):
    async with SessionService.open(small(folder)) as service:
        session = await service.session("user-42", create=True)
        await session.push("one", "1", durability="written")
        with read_store(folder) as reader, Replay.of(reader, "user-42") as replay:
            for number in range(2, 60):
                await session.push(f"text {number}", "x" * 300, durability="written")
            assert reader.session("user-42").seq == 2
            assert replay.refresh() == 58
            assert replay.refresh() == 0
            assert replay.seqs() == range(1, 61)
            assert replay.at(seq=60).get(59).user_input == "text 59"


async def test_a_copy_of_a_closed_store_is_read_like_the_store(folder, tmp_path):
    async with SessionService.open(small(folder)) as service:
        await talk(await service.session("user-42", create=True), 1, 100)
    copy = shutil.copytree(folder, tmp_path / "copy")
    before = image(copy)
    with read_store(copy) as reader:
        assert [info.seq for info in reader.sessions("user")] == [101]
        assert list(reader.sessions("nobody")) == []
        assert len(list(reader.records("user-42"))) == 101
    assert image(copy) == before


async def test_a_store_whose_process_was_killed_is_read_up_to_its_torn_end(folder, tmp_path):
    async with SessionService.open(FileStore(folder)) as service:
        await talk(await service.session("user-42", create=True), 1, 20)
        await service._store.flush("written")
        killed = await copy_living(folder, tmp_path / "killed")
    (segment,) = (killed / "log").glob("*.ndjson")
    data = segment.read_bytes()
    end = len(data.rstrip(b"\0"))
    segment.write_bytes(data[: end - 30] + b"\0" * (len(data) - end + 30))
    before = image(killed)
    with read_store(killed) as reader:
        records = reader.records("user-42")
        assert [record.seq for record in records] == list(range(1, 21))
        assert records.damage is None
    assert image(killed) == before


async def test_a_deleted_session_is_gone_and_its_id_made_again_is_another(folder):
    async with SessionService.open(small(folder, cut_at_close=0)) as service:
        await talk(await service.session("user-42", create=True), 1, 30)
        await service.session("gone", create=True)
        await service.delete("user-42")
        await service.delete("gone")
        with read_store(folder) as reader:
            assert list(reader.sessions()) == []
            with pytest.raises(SessionDeleted):
                reader.session("gone")
        await talk(await service.session("user-42", create=True), 1, 3)
        await service._store.flush("written")
        with read_store(folder) as reader:
            assert [(info.id, info.seq) for info in reader.sessions()] == [("user-42", 4)]
            assert [record.seq for record in reader.records("user-42")] == [1, 2, 3, 4]


async def test_a_session_that_is_deleted_while_it_is_read_says_so(folder):
    async with SessionService.open(small(folder)) as service:
        session = await service.session("user-42", create=True)
        await talk(session, 1, 200)
        await session.flush("synced")
        with read_store(folder) as reader, Replay.of(reader, "user-42") as replay:
            await service.delete("user-42")
            with pytest.raises(SessionDeleted):
                replay.refresh()


async def test_what_is_no_store_or_too_new_is_refused_in_one_sentence(folder, tmp_path):
    with pytest.raises(NotAStore, match="no such directory"):
        read_store(tmp_path / "nowhere")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "a.txt").write_text("Dear")
    with pytest.raises(NotAStore):
        await Replay.open(tmp_path / "letters", "user-42")
    async with SessionService.open(folder) as service:
        await service.session("user-42", create=True)
    with read_store(folder) as reader:
        with pytest.raises(SessionNotFound):
            reader.session("nobody")
        with pytest.raises(UnusableId):
            reader.records("")
    line = (folder / "FORMAT").read_bytes()
    from session_actor.persistence.format.record import close_line

    (folder / "FORMAT").write_bytes(close_line(line[: line.index(b',"sum"')].replace(b":1", b":9"))[0])
    with pytest.raises(StoreVersionTooNew):
        read_store(folder)


@pytest.mark.parametrize("kind", ["damaged", "missing", "hot journal"])
async def test_a_damaged_catalog_hides_no_session(folder, kind):
    async with SessionService.open(small(folder)) as service:
        for name in ("a", "b"):
            await talk(await service.session(name, create=True), 1, 60)
    catalog = folder / "catalog.db"
    data = catalog.read_bytes()
    if kind == "damaged":
        catalog.write_bytes(data[:3000] + b"\xff" * 2000 + data[5000:])
    elif kind == "missing":
        catalog.unlink()
    else:
        (folder / "catalog.db-journal").write_bytes(b"\xd9\xd5\x05\xf9 \xa1c\xd7" + b"\0" * 600)
    before = image(folder)
    with read_store(folder) as reader:
        assert [(info.id, info.seq) for info in reader.sessions()] == [("a", 61), ("b", 61)]
        assert len(list(reader.records("b"))) == 61
    assert image(folder) == before


class Beside:
    """A reader in a thread of its own. What it sees must be what was pushed, in order, and all that was told before."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.told = 0
        self.stop = False
        self.looks = 0
        self.cuts = 0

    def run(self) -> None:
        while not self.stop:
            told = self.told
            with read_store(self.root) as reader:
                info = reader.session("user-42")
                assert info.seq > told
                replay = Replay.of(reader, "user-42")
                assert replay.damage is None, str(replay.damage)
                self.check(replay, told)
                told = self.told
                replay.refresh()
                self.check(replay, told)
            self.looks += 1
            self.cuts += info.size_bytes > 0

    def check(self, replay: Replay, told: int) -> None:
        seqs = replay.seqs()
        assert seqs.stop > told
        for seq in {seqs.start, seqs.start + len(seqs) // 2, seqs[-1]}:
            moment = replay.at(seq=seq)
            numbers = [int(frame.user_input.split()[1]) for frame in moment.stack()]
            assert numbers == list(range(1, len(numbers) + 1))
            assert len(numbers) == min(seq - 1, moment.state.next_id - 1)


async def test_a_reader_beside_a_writer_under_load_never_sees_a_wrong_state(folder):
    async with SessionService.open(small(folder, sync_interval_s=0.05), idle_timeout_s=None) as service:
        session = await service.session("user-42", create=True)
        noise = await service.session("noise", create=True)
        await session.push("text 1", "x", durability="written")
        beside = Beside(folder)
        reading = asyncio.create_task(asyncio.to_thread(beside.run))
        try:
            number = 1
            while beside.looks < 12 and not reading.done():
                number += 1
                await session.push(f"text {number}", "x" * (number % 90), durability="written")
                beside.told = number
                await noise.push("y" * (number % 700), "z")
                if number % 50 == 0:
                    await service.session(f"brief {number}", create=True)
                    await service.delete(f"brief {number}")
                if number % 20 == 0:
                    await asyncio.sleep(0)
        finally:
            beside.stop = True
            await reading
        assert beside.looks >= 12
        assert beside.cuts > 0


async def test_records_that_a_cut_has_moved_are_found_again(folder):
    async with SessionService.open(small(folder, segment_bytes=200_000), idle_timeout_s=None) as service:
        session = await service.session("user-42", create=True)
        await talk(session, 1, 100)
        await session.flush("synced")
        with read_store(folder) as reader, Replay.of(reader, "user-42") as replay:
            service._store._engine.log.seal()
            while await service._store._engine.cutter.cut():
                pass
            for _ in range(100):
                if not (folder / "log" / "00000001.ndjson").exists():
                    break
                await asyncio.sleep(0.01)
            assert not (folder / "log" / "00000001.ndjson").exists()
            assert replay.at(seq=50).get(10).user_input == "text 10"
            with pytest.raises(FrameUnknown):
                replay.at(frame=101)


async def test_many_sessions_are_listed_from_the_catalog_and_the_log(folder):
    store = FileStore(folder, cut_at_close=0, segment_bytes=60_000)
    await store.open()
    try:
        for number in range(620):
            lease = await store.acquire(f"s-{number:05d}", create=True)
            store.append(lease, 1, 1_700_000_000_000_000 + number, "session_created", msgspec.Raw(b"{}"), 50)
        await store.flush("synced")
        while await store._engine.cutter.cut():
            pass
    finally:
        await store.close()
    opened: list[str] = []
    with read_store(folder) as reader:
        disk_open = type(reader._store.disk).open
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                type(reader._store.disk),
                "open",
                lambda disk, path, **how: opened.append(path) or disk_open(disk, path, **how),
            )
            found = list(reader.sessions())
    assert [info.id for info in found] == [f"s-{number:05d}" for number in range(620)]
    assert {info.created_at_us for info in found} == {1_700_000_000_000_000 + number for number in range(620)}
    assert {info.size_bytes > 0 for info in found} == {True, False}
    assert all(os.sep + "log" + os.sep in path for path in opened)
