"""Salvage of a damaged log that is cut short, refused in part, or meets births of sessions that were deleted."""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path

import pytest

from session_actor.persistence import FileStore, PersistenceError, SessionTombstoned, SessionUnknown
from session_actor.persistence.checking.tree import LookingDisk
from session_actor.persistence.files.storage import OsDisk
from session_actor.persistence.repair.repair import repair

from .conformance_tools import listed, opened
from .disks import TroubledDisk
from .stores import SMALL, copied, cut_all, flip, kinds, loaded, push, segments, verified

TEN = list(range(1, 11))


async def killed(root: Path, order: str = "abbb") -> Path:
    """What a killed process left: ten records of each session in journals, one more for each letter in the log."""
    async with opened(FileStore(root, **SMALL), working=False) as store:
        for session in sorted(set(order)):
            push(store, await store.acquire(session, create=True), 10)
        await store.flush("synced")
    await cut_all(root)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        for session in order:
            lease = await store.acquire(session, create=False)
            await store.load(lease)
            push(store, lease)
            await store.flush("synced")
        return copied(root, "killed")


def break_line(root: Path, mark: bytes, *, owner: bool = False) -> None:
    """Damage the first line of the log that holds `mark`; `owner`: so that whose it was cannot be told."""
    path = segments(root)[-1]
    data = path.read_bytes()
    at = data.rfind(b'{"w":', 0, data.index(mark))
    flip(path, at + 1 if owner else data.index(b'"at":', at) + 12)


async def open_and_close(root: Path, disk: OsDisk) -> None:
    store = FileStore(root, disk=disk, recovery="readable", **SMALL)
    with contextlib.suppress(OSError, PersistenceError):
        await store.open()
    disk.dies_at = 1
    with contextlib.suppress(OSError, PersistenceError):
        await store.close()


async def test_salvage_of_the_log_may_be_cut_short_anywhere_and_is_begun_again(tmp_path):
    root = await killed(tmp_path / "store")
    break_line(root, b'"s":"a"')
    disk = TroubledDisk()
    await open_and_close(copied(root, "whole"), disk)
    for dies_at in range(2, len(disk.calls), 3):
        at = copied(root, str(dies_at))
        await open_and_close(at, TroubledDisk(dies_at=dies_at))
        found = await loaded(at, "a", "b", recovery="readable")
        assert found == {"a": [*TEN, 11], "b": list(range(1, 14))}, dies_at  # a gap stands for the 11th
        assert kinds(verified(at)) == [], dies_at


# --- beside one whom the disk refuses ---------------------------------------------------------------------------------


class Refusing:
    """A disk that neither reads nor writes what has `part` in its path, as long as it `refuses` that."""

    part = ""
    refuses = ""

    def open(self, path, **how):
        return RefusingFile(self, super().open(path, **how), self.part in path)


class RefusingDisk(Refusing, OsDisk):
    pass


class RefusingLook(Refusing, LookingDisk):
    pass


class RefusingFile:
    def __init__(self, disk: Refusing, file, concerned: bool) -> None:
        self._disk, self._file, self._concerned = disk, file, concerned

    def __getattr__(self, name):
        if self._concerned and name == self._disk.refuses:
            raise OSError(errno.EIO, "Input/output error")
        return getattr(self._file, name)


def refusing(kind: type[Refusing], part: str, what: str) -> Refusing:
    disk = kind()
    disk.part, disk.refuses = part, what
    return disk


@pytest.mark.parametrize("refuses", ["read", "write"])
@pytest.mark.parametrize("owner", [True, False])
async def test_a_damaged_log_is_salvaged_beside_a_journal_that_the_disk_refuses(tmp_path, refuses, owner):
    root = await killed(tmp_path / "store", "abcabc")
    break_line(root, b'"s":"b"', owner=owner)
    disk = refusing(RefusingDisk, "/b-", refuses)
    for _ in range(2):
        async with opened(FileStore(root, disk=disk, recovery="readable", **SMALL), working=False) as store:
            for session in "ac":
                lease = await store.acquire(session, create=False)
                assert [record.seq for record in (await store.load(lease)).records] == list(range(1, 13))
            with pytest.raises((OSError, PersistenceError)):
                await store.load(await store.acquire("b", create=False))
            assert store.health().last_error is not None
    assert kinds(verified(root)) != []
    found = await loaded(root, *"abc", recovery="readable")
    assert found == {session: list(range(1, 13)) for session in "abc"}
    assert kinds(verified(root)) == []


async def test_repair_salvages_a_log_beside_a_journal_that_the_disk_refuses(tmp_path):
    root = await killed(tmp_path / "store", "abcaac")
    break_line(root, b'"s":"b"')
    break_line(root, b'"s":"a"')
    disk = refusing(RefusingLook, "/b-", "read")
    assert repair(root, write=True, salvage="readable", disk=disk).left != []
    assert (await loaded(root, "a", "c")) == {"a": list(range(1, 14)), "c": list(range(1, 13))}
    assert repair(root, write=True, salvage="readable").left == []
    assert await loaded(root, "b") == {"b": list(range(1, 12))}


async def test_a_full_disk_stops_the_salvage_of_a_log(tmp_path):
    root = await killed(tmp_path / "store")
    break_line(root, b'"s":"a"')
    disk = TroubledDisk()
    disk.errors["create"] = errno.ENOSPC
    with pytest.raises(OSError, match="asked to fail"):
        await FileStore(root, disk=disk, recovery="readable", **SMALL).open()
    assert (await loaded(root, "a", recovery="readable"))["a"] == [*TEN, 11]


@pytest.mark.parametrize("recovery", ["strict", "prefix", "readable"])
@pytest.mark.parametrize("order", ["abaab", "aab"])
async def test_damage_of_records_that_are_in_their_journal_concerns_nobody(tmp_path, recovery, order):
    """They are in the log all the same, since another's journal was refused when it was cut."""
    root = await killed(tmp_path / "store", order)
    disk = refusing(RefusingDisk, "/b-", "write")
    async with opened(FileStore(root, disk=disk, **SMALL), working=False) as store:
        with pytest.raises(OSError, match="Input/output"):
            await store._engine.cutter.cut()
        lease = await store.acquire("a", create=False)
        await store.load(lease)
        push(store, lease)
        await store.flush("synced")
        root = copied(root, "left")
    path = segments(root)[0]
    data = path.read_bytes()
    flip(path, data.index(b'"at":', data.index(b'"s":"a"')) + 12)
    expected = {session: list(range(1, 11 + order.count(session) + (session == "a"))) for session in "ab"}
    assert kinds(verified(root)) == []
    assert await loaded(root, "a", "b", recovery=recovery) == expected
    assert await loaded(root, "a", "b") == expected
    assert kinds(verified(root)) == []
    assert not (root / "aside").exists()


class Keeping(OsDisk):
    """A disk that removes no journal."""

    def unlink(self, path):
        if "/journals/" in path:
            raise OSError(errno.EIO, "Input/output error", path)
        super().unlink(path)


# --- births -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("recovery", ["strict", "prefix", "readable"])
async def test_a_session_whose_tombstone_is_damaged_stays_deleted_where_the_catalog_knows_it(tmp_path, recovery):
    root = tmp_path / "store"
    await killed(root)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        await store.delete(await store.acquire("a", create=False))
        lease = await store.acquire("b", create=False)
        await store.load(lease)
        push(store, lease)
        await store.flush("synced")
        push(store, lease)
        await store.flush("synced")
        root = copied(root, "dead")
    break_line(root, b'"kind":"store.deleted"')
    assert kinds(verified(root)) == []
    assert repair(copied(root, "mended"), write=True, salvage="readable").left == []
    for at in (root, root.with_name("mended")):
        async with opened(FileStore(at, recovery=recovery, **SMALL), working=False) as store:
            assert await listed(store) == ["b"]
            with pytest.raises(SessionTombstoned):
                await store.acquire("a", create=False)
            push(store, await store.acquire("a", create=True), 2)
    assert await loaded(root, "a", "b") == {"a": [1, 2], "b": list(range(1, 16))}


@pytest.mark.parametrize("recovery", ["strict", "readable"])
async def test_a_session_that_was_made_again_counts_though_the_tombstone_of_the_first_is_lost(tmp_path, recovery):
    root = tmp_path / "store"
    await killed(root)
    async with opened(FileStore(root, disk=Keeping(), **SMALL), working=False) as store:
        await store.delete(await store.acquire("a", create=False))  # the catalog cannot forget it
        push(store, await store.acquire("a", create=True), 3)
        await store.flush("synced")
        push(store, await store.acquire("a", create=False), 1)
        await store.flush("synced")
        root = copied(root, "dead")
    break_line(root, b'"kind":"store.deleted"')
    assert kinds(verified(root)) == []
    assert await loaded(root, "a", recovery=recovery) == {"a": [1, 2, 3, 4]}
    assert kinds(verified(root)) == []


async def test_a_session_that_was_deleted_made_again_and_salvaged_is_there_after_a_kill(tmp_path):
    root = tmp_path / "store"
    await killed(root)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        await store.delete(await store.acquire("a", create=False))
        lease = await store.acquire("a", create=True)
        push(store, lease, 3)
        await store.salvage(lease, "readable")
        root = copied(root, "dead")
    assert await loaded(root, "a") == {"a": [1, 2, 3]}
    assert kinds(verified(root)) == []


async def test_damage_of_a_birth_that_nobody_knows_concerns_all(tmp_path):
    root = tmp_path / "store"
    await killed(root)
    async with opened(FileStore(root, **SMALL), working=False) as store:
        push(store, await store.acquire("new", create=True))
        push(store, await store.acquire("a", create=False))
        await store.flush("synced")
        push(store, await store.acquire("a", create=False))
        await store.flush("synced")
        root = copied(root, "dead")
    break_line(root, b'"s":"new"')
    assert kinds(verified(root)) == ["log"]
    async with opened(FileStore(root, recovery="readable", **SMALL), working=False) as store:
        with pytest.raises(SessionUnknown):
            await store.acquire("new", create=False)
    assert kinds(verified(root)) == []
