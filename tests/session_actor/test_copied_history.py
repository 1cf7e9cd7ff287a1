"""Copies of whole histories: from cold sessions, in their time, in small pieces, with snapshots of their own."""

from __future__ import annotations

import asyncio

import pytest

from session_actor import CallTimeout, MemoryStore, SessionService
from session_actor.server import loading, snapshots
from session_actor.state import history

from .live import Archive
from .test_snapshots import filled, rested


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Snapshots after every ten records."""
    monkeypatch.setattr(snapshots, "EVERY_RECORDS", 10)
    monkeypatch.setattr(snapshots, "RESTING_RECORDS", 1)


@pytest.fixture(params=["memory", "file"])
def store(request, tmp_path):
    """Either store."""
    return MemoryStore() if request.param == "memory" else tmp_path / "conversations"


async def test_a_fork_of_a_cold_session_has_all_of_it(store):
    async with SessionService.open(store, max_live=1) as service:
        session, frames = await filled(service)
        await rested(service, session)

        whole = await service.fork("user-42", "copy")
        assert list(await whole.stack()) == frames
        part = await service.fork("user-42", "part", 50)
        assert list(await part.stack()) == frames[:50]


@pytest.mark.parametrize("at", [None, 50])
async def test_a_fork_has_its_time_for_reading_too(at):
    class Slow(MemoryStore):
        """Its disk does not answer once it is stuck."""

        stuck = False

        def archive(self, lease):
            store, archive = self, super().archive(lease)

            class Stuck(Archive):
                async def fetch(self, ids):
                    if store.stuck:
                        await asyncio.Event().wait()
                    return await archive.fetch(ids)

                def read(self, ids):
                    return archive.read(ids)

            return Stuck([])

    store = Slow()
    async with SessionService.open(store, max_live=1) as service:
        session, frames = await filled(service)
        await rested(service, session)
        await session.head()
        store.stuck = True
        with pytest.raises(CallTimeout, match="nothing was copied"):
            await service.fork("user-42", "copy", at, timeout_s=0.01)
        store.stuck = False
        copy = await service.fork("user-42", "copy", at)
        assert list(await copy.stack()) == frames[:at]


async def test_a_copied_history_has_a_snapshot_at_once(store):
    async with SessionService.open(store, max_live=1) as service:
        await filled(service)
        copy = await service.fork("user-42", "copy")
        await rested(service, copy)
        await copy.push("on", "")

        assert copy.recovery.snapshot_seq == 3


@pytest.mark.parametrize(("frames", "seq"), [(150, 3), (snapshots.EVERY_RECORDS, 6)])
async def test_a_copy_has_its_snapshot_by_its_frames_however_few_records_hold_them(tmp_path, frames, seq):
    """When it rests, or at once."""
    async with SessionService.open(tmp_path / "conversations") as service:
        await filled(service, frames)
        copy = await service.fork("user-42", "copy")
        if frames == snapshots.EVERY_RECORDS:
            await service._store.saved(copy._cell.lease, seq)
    async with SessionService.open(tmp_path / "conversations") as service:
        copy = await service.session("copy")
        assert (copy.recovery.snapshot_seq, copy.recovery.journal_records) == (seq, 0)


async def test_a_long_copied_history_is_applied_piece_by_piece(monkeypatch):
    class NoSnapshots(MemoryStore):
        def save(self, lease, seq, data):
            pass

    turns: list[int] = []

    async def others():
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    monkeypatch.setattr(history, "CHUNK_FRAMES", 10_000)  # as copies were once made: one record
    monkeypatch.setattr(loading, "CHUNK_FRAMES", 10)
    monkeypatch.setattr(loading, "FRAMES_PER_TURN", 10)
    async with SessionService.open(NoSnapshots()) as service:
        _, frames = await filled(service, 200)
        copy = await service.fork("user-42", "copy")
        await service._lifetime.population._passivate(copy._cell)
        task = asyncio.create_task(others())
        assert list(await copy.stack()) == frames
        task.cancel()
        assert copy.recovery.queue_records == 3
        assert len(turns) >= 20
