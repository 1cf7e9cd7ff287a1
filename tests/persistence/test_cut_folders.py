"""A folder of journals that takes nothing, or a journal that cannot be gone on with, holds up no other session."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, SessionTombstoned, StoreCorrupt, StoreDegraded
from session_actor.persistence.checking.verify import check
from session_actor.persistence.files.names import journal_path
from session_actor.persistence.repair.repair import repair

from ..living import copy_living
from .conformance_tools import opened, push
from .test_cut_refused import grow, small
from .test_writer import until

SESSIONS = ("bad", "good", "other")


def shelf(root: Path, session: str = "bad") -> Path:
    return (root / "journals" / journal_path(session, 1)).parent


def block(root: Path) -> Path:
    """A file in the place of the folder of one session's journals."""
    folder = shelf(root)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.write_text("in the way")
    return folder


async def seal_and_cut(store: FileStore) -> list[str]:
    """Cut what there is; the refusals."""
    store._engine.log.seal()
    try:
        await store._engine.cutter.cut_all()
    except OSError as error:
        return [str(error)]
    return []


async def held(store: FileStore, *sessions: str) -> dict[str, list[int]]:
    found = {}
    for session in sessions:
        lease = await store.acquire(session, create=False)
        found[session] = [record.seq for record in (await store.load(lease, snapshots=False)).records]
        frames = range(1, lease.appended_seq + 1)
        assert [record.seq for record in store.archive(lease).read(frames)] == list(frames)
    return found


def all_hold(count: int) -> dict[str, list[int]]:
    return {session: list(range(1, count + 1)) for session in SESSIONS}


def damage_in(root: Path) -> list[str]:
    return [finding.kind for finding in check(root).list if finding.severity == "damage"]


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "store"


async def test_a_file_in_the_place_of_a_folder_holds_up_no_session_of_another_folder(root):
    events = []
    async with opened(small(root, on_event=events.append), working=False) as store:
        folder = block(root)
        leases = [await store.acquire(session, create=True) for session in SESSIONS]
        for first in (1, 21):
            await grow(store, leases, first)
            (refusal,) = await seal_and_cut(store)
            assert str(folder) in refusal
            extents = [store._logs[session].extent for session in SESSIONS]
            assert [extent and extent.seq for extent in extents] == [None, *[first + 19] * 2]
            assert store.health().refused_folders == (str(folder),)
        assert await held(store, *SESSIONS) == all_hold(40)
        segments = store.health().live_segments
        folder.unlink()
        assert await seal_and_cut(store) == []
        assert segments == 2
        assert (store.health().live_segments, store.health().refused_folders) == (0, ())
        assert await held(store, *SESSIONS) == all_hold(40)
    assert check(root).list == []


async def test_the_worker_tells_the_folder_by_an_event_and_by_health(root, monkeypatch):
    monkeypatch.setattr("session_actor.persistence.cutting.cutter.RETRY_S", 0.01)
    events = []
    async with opened(small(root, on_event=events.append)) as store:
        folder = block(root)
        leases = [await store.acquire(session, create=True) for session in SESSIONS]
        for first in range(1, 201, 20):
            await grow(store, leases, first)
        await until(lambda: any(event.name == "cut_failed" for event in events))
        told = next(event for event in events if event.name == "cut_failed")
        assert str(folder) in str(told.metadata["error"])
        assert str(folder) in str(store.health().last_error)
        await until(lambda: store.health().refused_folders == (str(folder),))
        store.admit("synced")  # nothing else is refused
        folder.unlink()
        await until(lambda: store.health().live_segments == 1)
        assert store.health().refused_folders == ()


async def test_a_store_whose_folder_is_refused_opens_and_goes_on(root):
    for first in (1, 21, 41):
        async with opened(small(root), working=False) as store:
            if first == 1:
                block(root)
            leases = [await store.acquire(session, create=True) for session in SESSIONS]
            for lease in leases:
                assert len((await store.load(lease, snapshots=False)).records) == first - 1
            await grow(store, leases, first)
            assert len(await seal_and_cut(store)) == 1
    assert set(damage_in(root)) <= {"not_a_folder", "not_a_file"}
    shelf(root).unlink()
    async with opened(small(root), working=False) as store:
        assert await held(store, *SESSIONS) == all_hold(60)
        await grow(store, [await store.acquire("bad", create=False)], 61)
        assert await seal_and_cut(store) == []
        assert await held(store, *SESSIONS) == {
            **all_hold(60),
            "bad": list(range(1, 81)),
        }
    assert check(root).list == []


async def test_a_catalog_that_is_lost_meanwhile_is_made_anew_without_a_loss(root, tmp_path):
    async with opened(small(root), working=False) as store:
        folder = block(root)
        leases = [await store.acquire(session, create=True) for session in SESSIONS]
        for first in (1, 21):
            await grow(store, leases, first)
            assert len(await seal_and_cut(store)) == 1
        await copy_living(root, tmp_path / "copy")
        folder.unlink()
    copy = tmp_path / "copy"
    (copy / "catalog.db").unlink()
    shelf(copy).unlink()
    repair(copy, write=True)
    assert damage_in(copy) == []
    async with opened(small(copy), working=False) as store:
        assert await held(store, *SESSIONS) == all_hold(40)
        assert await seal_and_cut(store) == []
        assert await held(store, *SESSIONS) == all_hold(40)
    assert damage_in(copy) == []


async def test_a_session_of_a_refused_folder_is_deleted_and_stays_so(root):
    async with opened(small(root), working=False) as store:
        block(root)
        leases = [await store.acquire(session, create=True) for session in SESSIONS]
        await grow(store, leases, 1)
        await store.delete(leases[0])
        assert len(await seal_and_cut(store)) == 1
        assert store._logs["good"].extent.seq == 20
        with pytest.raises(SessionTombstoned):
            await store.acquire("bad", create=False)
    async with opened(small(root), working=False) as store:
        with pytest.raises(SessionTombstoned):
            await store.acquire("bad", create=False)
        lease = await store.acquire("bad", create=True)
        push(store, lease, 5)
        await store.flush("synced")
        assert len(await seal_and_cut(store)) == 1
        shelf(root).unlink()
        assert await seal_and_cut(store) == []
        assert store.health().live_segments == 0
        assert await held(store, *SESSIONS) == {
            "bad": [1, 2, 3, 4, 5],
            "good": list(range(1, 21)),
            "other": list(range(1, 21)),
        }
    assert check(root).list == []


async def test_a_journal_that_an_older_catalog_does_not_count_holds_up_no_other(root, tmp_path):
    async with opened(small(root), working=False) as store:
        leases = [await store.acquire(session, create=True) for session in SESSIONS]
        await grow(store, leases, 1)
        assert await seal_and_cut(store) == []
        await copy_living(root, tmp_path / "older")
        await grow(store, leases[:1], 21)
        assert await seal_and_cut(store) == []
    older = tmp_path / "older"
    for newer in shelf(root).iterdir():
        shutil.copy(newer, shelf(older))
    async with opened(small(older), working=False) as store:
        leases = [await store.acquire(session, create=False) for session in SESSIONS]
        push(store, leases[0], 5, first=21)
        await grow(store, leases[1:], 21)
        store._engine.log.seal()
        with pytest.raises(StoreCorrupt, match="older than the journal"):
            await store._engine.cutter.cut_all()
        assert [store._logs[session].extent.seq for session in SESSIONS] == [20, 40, 40]
        assert store.health().refused_folders == (str(shelf(older)),)
        with pytest.raises(StoreCorrupt, match="older than the journal"):
            await store._engine.cutter.cut_all()


async def test_the_log_grows_no_further_than_it_may_and_goes_on_when_the_folder_takes_its_records(root, monkeypatch):
    monkeypatch.setattr("session_actor.persistence.cutting.cutter.RETRY_S", 0.01)
    monkeypatch.setattr("session_actor.persistence.cutting.cutter.MOST_SEGMENTS", 3)
    events = []
    async with opened(small(root, on_event=lambda event: events.append(event.name))) as store:
        folder = block(root)
        leases = [await store.acquire(session, create=True) for session in SESSIONS]
        count = 0
        with pytest.raises(StoreDegraded, match=str(folder)):  # noqa: PT012 - it takes some rounds
            for count in range(2000):
                store.admit("async")
                push(store, leases[count % 3], 1, first=count // 3 + 1)
                await store.flush("synced")
        assert 4 <= store.health().live_segments <= 6
        assert store.health().degraded_since_us is not None
        assert len(await held(store, "good")) == 1
        folder.unlink()
        await until(lambda: store.health().degraded_since_us is None)
        store.admit("async")
        await until(lambda: store.health().live_segments == 1)
        assert [len(frames) for frames in (await held(store, *SESSIONS)).values()] == [
            (count + 2 - place) // 3 for place in range(3)
        ]
    assert [name for name in events if name in {"degraded", "healthy"}] == ["degraded", "healthy"]
    assert check(root).list == []
