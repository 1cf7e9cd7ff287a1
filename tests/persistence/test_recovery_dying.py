"""A process dies at every single system call: nothing that was acknowledged is lost."""

from __future__ import annotations

import contextlib
import errno
import shutil
from pathlib import Path

from session_actor.persistence import FileStore, NotDurable, SessionTombstoned, SessionUnknown

from ..living import copy_living
from .conformance import opened, say
from .disks import Dead, TroubledDisk
from .test_recovery import texts, write


async def use(store: FileStore, acknowledged: dict[str, list[str]]) -> None:
    """Everything that a store does: new sessions, many segments, cuts, a deletion, an id made again."""
    for session in ("kept", "deleted"):
        lease = await store.acquire(session, create=True)
        acknowledged.setdefault(session, [])
        for number in range(6):
            text = f"{number} {'x' * 150}"
            say(store, lease, text)
            await store.flush("written")
            acknowledged[session].append(text)
        await store.flush("synced")
        await store._engine.cutter.cut()
    acknowledged["deleted?"] = acknowledged.pop("deleted")
    await store.delete(lease)
    del acknowledged["deleted?"]
    await store._engine.cutter.cut()
    lease = await store.acquire("deleted", create=True)
    say(store, lease, "again")
    await store.flush("synced")
    acknowledged["deleted"] = ["again"]


async def run_until_death(root: Path, dies_at: int | None) -> tuple[TroubledDisk, dict[str, list[str]]]:
    disk = TroubledDisk(dies_at=dies_at)
    store = FileStore(root, segment_bytes=1000, disk=disk)
    acknowledged: dict[str, list[str]] = {}
    try:
        await store.open()
        await use(store, acknowledged)
    except (Dead, NotDurable):
        pass
    finally:
        with contextlib.suppress(NotDurable):
            await store.close()
    return disk, acknowledged


async def test_dying_at_any_system_call_loses_nothing_that_was_acknowledged(tmp_path, faults):
    disk, acknowledged = await run_until_death(tmp_path / "whole", None)
    assert (len(acknowledged["kept"]), acknowledged["deleted"]) == (6, ["again"])
    total = len(disk.calls)
    for dies_at in faults.some(range(1, total + 1)):
        root = tmp_path / str(dies_at)
        _, acknowledged = await run_until_death(root, dies_at)
        for _ in range(1 + (dies_at % 5 == 0)):
            async with opened(FileStore(root, segment_bytes=1000), working=False) as store:
                for session, expected in acknowledged.items():
                    if session == "deleted?":
                        continue
                    found = await texts(store, session) if expected else []
                    assert found[: len(expected)] == expected, (dies_at, session)
                    assert len(found) <= len(expected) + 1
                if {"deleted", "deleted?"} & acknowledged.keys():
                    continue
                # Gone, or made again by a record that was not yet acknowledged.
                with contextlib.suppress(SessionTombstoned, SessionUnknown):
                    assert await texts(store, "deleted") in (["again"], [f"0 {'x' * 150}"]), dies_at
        shutil.rmtree(root, ignore_errors=True)
    assert total > 80


class FullAside(TroubledDisk):
    """A disk on which nothing that is put aside has room."""

    def open(self, path, *, write=False, create=False):
        file = super().open(path, write=write, create=create)
        return NoRoom(file) if create and "/aside/" in path else file


class NoRoom:
    def __init__(self, file) -> None:
        self._file = file

    def __getattr__(self, name: str):
        return getattr(self._file, name)

    def write(self, data, offset) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


async def torn_early(root: Path) -> None:
    """Power was lost: of many segments without any synced line the second and the last but one lost their contents."""
    await write(root, "a", count=150, sync=False, segment_bytes=4096, sync_interval_s=1000)
    segments = sorted((root / "log").glob("*.ndjson"))
    assert len(segments) > 5
    for path in (segments[1], segments[-2]):
        path.write_bytes(bytes(4096))


async def test_dying_while_segments_that_do_not_count_are_set_aside_is_no_damage(tmp_path, faults):
    torn = tmp_path / "torn"
    await torn_early(torn)
    shutil.copytree(torn, tmp_path / "whole")
    disk = TroubledDisk()
    async with opened(FileStore(tmp_path / "whole", disk=disk), working=False) as store:
        total = len(disk.calls)
        found = await texts(store, "a")
    assert len(found) > 10
    for dies_at in faults.some(range(1, total + 1)):
        root = tmp_path / str(dies_at)
        shutil.copytree(torn, root)
        store = FileStore(root, disk=TroubledDisk(dies_at=dies_at))
        with contextlib.suppress(Dead):
            await store.open()
        with contextlib.suppress(Dead, NotDurable):
            await store.close()
        async with opened(FileStore(root), working=False) as store:
            assert await texts(store, "a") == found, dies_at
        shutil.rmtree(root)


async def test_segments_that_a_full_disk_cannot_set_aside_leave_none_between_them_missing(tmp_path):
    await torn_early(tmp_path / "torn")
    async with opened(FileStore(tmp_path / "torn", disk=FullAside()), working=False) as store:
        found = await texts(store, "a")
        await copy_living(tmp_path / "torn", tmp_path / "killed")
    async with opened(FileStore(tmp_path / "killed"), working=False) as store:
        assert await texts(store, "a") == found
    assert len(found) > 10
